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
MAX_PAYLOAD = 0xFFFF - HEADER_SIZE
"""Maximum of the length field. IPv4 has its own header in the same sixteen bits: 20 bytes less."""
_HEADER = Struct("!HHHH")


class Datagram(NamedTuple):
    """A UDP datagram."""

    source_port: int
    port: int
    "Destination port."
    payload: bytes

    def encode(self, source: bytes, destination: bytes) -> bytes:
        """Return the whole IPv6 packet."""
        size = HEADER_SIZE + len(self.payload)
        body = _HEADER.pack(self.source_port, self.port, size, 0) + self.payload
        # Never zero (`ip.checksum`): zero means "none" in UDP, and IPv6 has receivers drop that (RFC 8200 section 8.1).
        body = body[:6] + ip.checksum(ip.PROTOCOL_UDP, source, destination, body).to_bytes(2, "big") + body[8:]
        return ip.header(ip.PROTOCOL_UDP, source, destination, size) + body


def parse_untrusted(payload: bytes) -> Datagram:
    """Parse an IPv6 payload. Raises WireError when shorter than its length field."""
    if len(payload) < HEADER_SIZE:
        raise WireError("short_datagram")
    source_port, port, size, _ = _HEADER.unpack_from(payload)
    # Shorter than the payload is accepted, as everywhere: RFC 768 does not define bytes behind the length.
    if not HEADER_SIZE <= size <= len(payload):
        raise WireError("bad_udp_length")
    return Datagram(source_port, port, payload[HEADER_SIZE:size])
