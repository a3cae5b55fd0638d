"""UDP datagrams over IPv6.

Lives here: the eight header bytes. Does not live here: sockets (stack/datagrams.py).
Obeys: RFC 768, RFC 8200 section 8.1 (the checksum is not optional over IPv6).
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from coder.mesh.core.errors import WireError
from coder.mesh.core.wire import ip

HEADER_SIZE = 8
_HEADER = Struct("!HHHH")


class Datagram(NamedTuple):
    """A UDP datagram."""

    source_port: int
    port: int
    "Destination port."
    payload: bytes

    # Two nodes of our own kind may leave the checksum out (docs/decisions/tcp.md), which RFC 8200 section 8.1 forbids
    # on a network; inside an authenticated tunnel it proves nothing.
    def encode(self, source: bytes, destination: bytes, with_checksum: bool = True) -> bytes:
        """The whole IPv6 packet."""
        size = HEADER_SIZE + len(self.payload)
        body = _HEADER.pack(self.source_port, self.port, size, 0) + self.payload
        if with_checksum:
            body = body[:6] + ip.checksum(ip.PROTOCOL_UDP, source, destination, body).to_bytes(2, "big") + body[8:]
        return ip.header(ip.PROTOCOL_UDP, source, destination, size) + body


def parse_untrusted(payload: bytes) -> Datagram:
    """From an IPv6 payload; WireError when shorter than it says."""
    if len(payload) < HEADER_SIZE:
        raise WireError("short_datagram")
    source_port, port, size, _ = _HEADER.unpack_from(payload)
    # Shorter than the payload is accepted, as everywhere: RFC 768 leaves what lies behind the length to nobody.
    if not HEADER_SIZE <= size <= len(payload):
        raise WireError("bad_udp_length")
    return Datagram(source_port, port, payload[HEADER_SIZE:size])
