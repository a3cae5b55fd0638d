"""Untrusted addresses: every text has parts or none, and parsing never fails."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coder.domain.foundation.web_addresses import canonical_host, host_of_origin, shares_cookies, split_untrusted


@given(st.text(alphabet="htps:/[]@?#.x1%\u2100\x00 \\", max_size=40) | st.text(max_size=40))
def test_arbitrary_address_splits(text: str) -> None:
    parts = split_untrusted(text)
    assert parts.port is None or 0 <= parts.port <= 65535
    assert host_of_origin(text) == canonical_host(parts.netloc, parts.scheme)


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("http://A.b:81", "a.b:81"),
        ("http://A.b:80", "a.b"),
        ("https://a.b:443", "a.b"),
        ("null", ""),
        ("http://[", ""),
        ("http://a:99999", ""),
        ("http://a@b", "a@b"),
    ],
)
def test_the_host_of_an_origin(origin: str, host: str) -> None:
    assert host_of_origin(origin) == host


@pytest.mark.parametrize(
    ("netloc", "scheme", "canonical"),
    [
        ("Coder.Test", "https", "coder.test"),
        ("coder.test:443", "https", "coder.test"),
        ("coder.test:0443", "wss", "coder.test"),
        ("coder.test:", "https", "coder.test"),
        ("coder.test:80", "HTTP", "coder.test"),
        ("coder.test:80", "ws", "coder.test"),
        ("coder.test:80", "https", "coder.test:80"),
        ("coder.test:443", "http", "coder.test:443"),
        ("coder.test:443", "", "coder.test:443"),
        ("coder.test:0", "https", "coder.test:0"),
        ("coder.test:4430", "https", "coder.test:4430"),
        ("[::1]:443", "https", "[::1]"),
        ("[::1]", "https", "[::1]"),
        ("[::443]", "https", "[::443]"),
        ("", "https", ""),
        ("x@coder.test:443", "https", "x@coder.test"),
        ("coder.test:" + "9" * 5000, "https", "coder.test:" + "9" * 5000),
    ],
)
def test_default_port_is_dropped(netloc: str, scheme: str, canonical: str) -> None:
    assert canonical_host(netloc, scheme) == canonical
    assert canonical_host(canonical, scheme) == canonical


@pytest.mark.parametrize(
    ("host", "other", "shared"),
    [
        ("coder.test", "coder.test", True),
        ("coder.test:1", "coder.test:2", True),
        ("app.coder.test", "coder.test", True),
        ("app.coder.test", "dev.coder.test:443", True),
        ("evil.example", "coder.test", False),
        ("coder.test.evil.example", "coder.test", False),
        ("127.0.0.1:1", "127.0.0.1:2", True),
        ("128.0.0.1", "127.0.0.1", False),
        ("[::1]:1", "[::1]", True),
        ("localhost:1", "localhost", True),
        ("other", "coder", False),
    ],
)
def test_near_origins(host: str, other: str, shared: bool) -> None:
    assert shares_cookies(host, other) is shared
    assert shares_cookies(other, host) is shared
