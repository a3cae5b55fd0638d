"""Addresses on the public Internet: the only ones to which the server connects when a user chose the address.

The rules follow IANA's registries of special-purpose addresses. Python's `is_global` alone is not enough:
it knows the registries of its release, and calls unassigned ranges of IPv6 global.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

_UNICAST = ip_network("2000::/3")
"""Global unicast (RFC 4291 section 2.4). Outside of it are loopback, ::/96, IPv4-translated addresses
(::ffff:0:0:0/96), NAT64 (64:ff9b::/96, 64:ff9b:1::/48), segment routing (5f00::/16), fc00::/7, fe80::/10 and
fec0::/10."""
_SPECIAL = tuple(map(ip_network, ("192.0.0.0/24", "192.88.99.0/24", "2001:db8::/32", "3fff::/20")))
"""Special ranges inside unicast ranges that not every release of Python knows: protocol assignments, relays of 6to4,
documentation."""


def is_public(address: str) -> bool:
    """Return whether an address is public: not this machine, a private network or a cloud's metadata service.

    An address that embeds an IPv4 address (mapped, 6to4, Teredo) is as public as that. Raises ValueError for text that
    is no address.
    """
    parsed = ip_address(address.partition("%")[0])
    inner = _embedded(parsed) if isinstance(parsed, IPv6Address) else None
    if inner is not None:
        return is_public(str(inner))
    if isinstance(parsed, IPv6Address) and parsed not in _UNICAST:
        return False
    return parsed.is_global and not parsed.is_multicast and not any(parsed in network for network in _SPECIAL)


def _embedded(address: IPv6Address) -> IPv4Address | None:
    return address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
