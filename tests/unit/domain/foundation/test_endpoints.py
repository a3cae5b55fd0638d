"""Endpoints of servers."""

from __future__ import annotations

import pytest

from coder.domain.foundation.endpoints import HostPort, read_endpoint


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("vpn.example.com:51820", "vpn.example.com", 51820),
        ("localhost:1", "localhost", 1),
        ("my_host.example.:65535", "my_host.example.", 65535),
        ("192.0.2.1:51820", "192.0.2.1", 51820),
        ("[2001:db8::1]:51820", "2001:db8::1", 51820),
    ],
)
def test_read_and_written_again(text: str, host: str, port: int) -> None:
    assert read_endpoint(text) == HostPort(host, port)
    assert str(HostPort(host, port)) == text


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("mail.example.com", "mail.example.com", 587),
        ("mail.example.com:25", "mail.example.com", 25),
        ("[2001:db8::1]", "2001:db8::1", 587),
        ("[2001:db8::1]:25", "2001:db8::1", 25),
    ],
)
def test_missing_port_has_default(text: str, host: str, port: int) -> None:
    assert read_endpoint(text, default_port=587) == HostPort(host, port)


@pytest.mark.parametrize("text", ["", ":25", "mail:", "2001:db8::1", "a b"])
def test_default_port_excuses_nothing_else(text: str) -> None:
    with pytest.raises(ValueError, match=r"no host|1 to 65535|brackets|neither"):
        read_endpoint(text, default_port=587)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no port"),
        ("vpn.example.com", "no port"),
        ("[2001:db8::1]", "no port"),
        ("vpn.example.com:", "1 to 65535"),
        ("vpn.example.com:0", "1 to 65535"),
        ("vpn.example.com:65536", "1 to 65535"),
        ("vpn.example.com:" + "9" * 5000, "1 to 65535"),
        ("vpn.example.com:wg", "1 to 65535"),
        ("vpn.example.com:٣", "1 to 65535"),
        (":51820", "no host"),
        ("2001:db8::1:51820", "brackets"),
        ("2001:db8::1", "brackets"),
        ("[vpn.example.com]:51820", "not an IPv6 address"),
        ("[fe80::1%eth0]:51820", "not an IPv6 address"),
        ("https://vpn.example.com:51820", "scheme"),
        ("vpn.example.com:51820/path", "scheme"),
        ("vpn example:51820", "neither"),
        ("-vpn.example:51820", "neither"),
        ("vpn..example:51820", "neither"),
        ("300.0.2.1:51820", "neither"),
        ("a\nb:51820", "neither"),
    ],
)
def test_invalid_endpoint_reasons(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read_endpoint(text)
