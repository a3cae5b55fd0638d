"""Which addresses are on the public Internet: registries of special-purpose addresses, and embedded addresses."""

from __future__ import annotations

import ipaddress

import pytest

from coder.domain.network.public_addresses import is_public

PRIVATE = (
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.88.99.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
    "255.255.255.255/32",
)
SPECIAL = (
    "::/96",
    "::1/128",
    "::ffff:0:0:0/96",
    "64:ff9b::/96",
    "64:ff9b:1::/48",
    "100::/64",
    "2001:2::/48",
    "2001:db8::/32",
    "3fff::/20",
    "5f00::/16",
    "fc00::/7",
    "fe80::/10",
    "fec0::/10",
    "ff00::/8",
)
PUBLIC = ("1.1.1.1", "8.8.8.8", "192.0.1.1", "223.255.255.254")
PUBLIC_6 = ("2606:4700:4700::1111", "2a00:1450:4001:830::200e", "2400:cb00::1")


def _ends(network: str) -> list[str]:
    parsed = ipaddress.ip_network(network)
    return [str(parsed[0]), str(parsed[parsed.num_addresses // 2]), str(parsed[-1])]


def _embeddings(inner: str) -> list[str]:
    """Return the IPv6 addresses that embed an IPv4 address and that a host or network delivers to it."""
    value = int(ipaddress.IPv4Address(inner))
    mapped, sixtofour = (0xFFFF << 32) | value, (0x2002 << 112) | (value << 80)
    teredo = (0x20010000 << 96) | (value ^ 0xFFFFFFFF)
    return [str(ipaddress.IPv6Address(number)) for number in (mapped, sixtofour, teredo)]


@pytest.mark.parametrize("network", PRIVATE)
def test_private_networks(network: str) -> None:
    for address in _ends(network):
        assert [text for text in (address, *_embeddings(address)) if is_public(text)] == []


@pytest.mark.parametrize("network", SPECIAL)
def test_special_ipv6_networks(network: str) -> None:
    assert [address for address in _ends(network) if is_public(address)] == []
    assert [address for address in _ends(network) if is_public(f"{address}%eth0")] == []


@pytest.mark.parametrize("inner", ["127.0.0.1", "10.1.2.3", "169.254.169.254", *PUBLIC])
def test_translated_addresses(inner: str) -> None:
    """A translator of the operator's network leads anywhere, also for public inner addresses."""
    value = int(ipaddress.IPv4Address(inner))
    prefixes = ("::", "::ffff:0:0:0", "64:ff9b::", "64:ff9b:1::", "64:ff9b:1:fffe::", "fec0::", "5f00::")
    translated = [str(ipaddress.IPv6Address(int(ipaddress.IPv6Address(prefix)) | value)) for prefix in prefixes]
    assert [address for address in translated if is_public(address)] == []


def test_public_addresses() -> None:
    embedded = [address for inner in PUBLIC for address in _embeddings(inner)]
    assert [address for address in (*PUBLIC, *PUBLIC_6, *embedded) if not is_public(address)] == []
