"""Transport addresses: an IP address and a port, as text, as 18 wire bytes and as socket arguments.

Lives here: one value type for STUN, disco, candidates and sockets.
Does not live here: overlay addresses inside the tunnel (16 plain bytes everywhere).
Obeys: the recorded texts of disco.json; IPv4 is written ::ffff:a.b.c.d in 16-byte form (RFC 4291, 2.5.5.2).
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import NamedTuple

from coder.mesh.core.errors import WireError

# RFC 4291 section 2.5.5.2. With one form for both families no table can hold the same address twice.
_MAPPED = bytes(10) + b"\xff\xff"
_MAX_PORT = 0xFFFF


class UdpAddress(NamedTuple):
    """Destination of datagrams.

    A tuple of a canonical address text and a port: hashable in C, and the form sockets use.
    """

    host: str
    "`192.0.2.1` or `2001:db8::1`: always the shortest form."
    port: int

    @property
    def ip(self) -> IPv4Address | IPv6Address:
        """Return the parsed address."""
        return ip_address(self.host)

    @property
    def is_ipv4(self) -> bool:
        """Return whether the IPv4 socket carries it."""
        return ":" not in self.host

    @property
    def ip16(self) -> bytes:
        """Return 16 bytes, IPv4 mapped; an IPv6 zone is left out."""
        ip = self.ip
        return _MAPPED + ip.packed if ip.version == 4 else ip.packed

    @property
    def wire(self) -> bytes:
        """Return 18 bytes: `ip16`, then the port, big endian."""
        return self.ip16 + self.port.to_bytes(2, "big")

    @property
    def cookie_source(self) -> bytes:
        """Return the source that binds a WireGuard cookie: address bytes, then the port, little endian (as
        upstream)."""
        # Only we check our cookies (WireGuard paper, section 5.4.7), so any order of bytes would do.
        return self.ip.packed + self.port.to_bytes(2, "little")

    def __str__(self) -> str:
        return f"{self.host}:{self.port}" if self.is_ipv4 else f"[{self.host}]:{self.port}"


def endpoint(host: str, port: int) -> UdpAddress:
    """Return the UdpAddress of a socket's report: zone cut off, mapped IPv4 unmapped.

    Raises ValueError for other texts.
    """
    ip = ip_address(host.partition("%")[0])
    # A dual-stack socket reports IPv4 senders as mapped: kept so, one peer would be two candidates.
    if isinstance(ip, IPv6Address) and ip.ipv4_mapped is not None:
        ip = ip.ipv4_mapped
    # The text is normalized: two spellings of one address have to be one key.
    return UdpAddress(str(ip), port)


def endpoint_of_bytes(packed: bytes, port: int) -> UdpAddress:
    """Return the UdpAddress of 4 or 16 address bytes; mapped IPv4 is unmapped."""
    if len(packed) == 16 and packed.startswith(_MAPPED):
        packed = packed[12:]
    return UdpAddress(str(ip_address(packed)), port)


def parse_endpoint_untrusted(text: str) -> UdpAddress:
    """Parse `192.0.2.1:80` or `[2001:db8::1]:80`. Raises WireError otherwise."""
    host, colon, digits = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    # `isdigit` accepts the digits of every script, and `int` is slow over thousands of them.
    if not colon or not digits.isascii() or not digits.isdigit() or len(digits) > 5:
        raise WireError("bad_endpoint")
    port = int(digits)
    if port > _MAX_PORT or bracketed != (":" in host):
        raise WireError("bad_endpoint")
    try:
        return endpoint(host[1:-1] if bracketed else host, port)
    except ValueError as error:
        raise WireError("bad_endpoint") from error
