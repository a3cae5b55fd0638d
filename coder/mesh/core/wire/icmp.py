"""ICMPv6: echo, and the errors a host sends and understands.

Lives here: echo request and reply, destination unreachable, packet too big.
Does not live here: neighbour discovery (a tunnel has no neighbours).
Obeys: RFC 4443.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from coder.mesh.core.errors import WireError
from coder.mesh.core.wire import ip

ECHO_REQUEST = 128
ECHO_REPLY = 129
UNREACHABLE = 1
TOO_BIG = 2
CODE_PROHIBITED = 1
CODE_PORT_UNREACHABLE = 4

_HEADER = Struct("!BBHI")
HEADER_SIZE = 8


class Message(NamedTuple):
    """An ICMPv6 message: type, code and four bytes of parameters, then a body."""

    type: int
    code: int
    parameter: int
    "Bytes 4-8: identifier and sequence of an echo, the MTU of a packet too big."
    body: bytes
    "Echo data, or the beginning of the packet that caused the error."

    @property
    def identifier(self) -> int:
        """Return the identifier of an echo."""
        return self.parameter >> 16

    @property
    def sequence(self) -> int:
        """Return the sequence number of an echo."""
        return self.parameter & 0xFFFF

    def body_bytes(self) -> bytes:
        """Return the message with a checksum of zero."""
        return _HEADER.pack(self.type, self.code, 0, self.parameter) + self.body

    def encode(self, source: bytes, destination: bytes) -> bytes:
        """Return the whole IPv6 packet."""
        data = self.body_bytes()
        check = ip.checksum(ip.PROTOCOL_ICMP6, source, destination, data)
        return (
            ip.header(ip.PROTOCOL_ICMP6, source, destination, len(data))
            + data[:2]
            + check.to_bytes(2, "big")
            + data[4:]
        )


def parse_untrusted(payload: bytes) -> Message:
    """Parse an IPv6 payload. Raises WireError when shorter than a header."""
    if len(payload) < HEADER_SIZE:
        raise WireError("short_message")
    # The checksum is not verified: the tunnel has authenticated everything that arrives here (docs/decisions/tcp.md).
    kind, code, _, parameter = _HEADER.unpack_from(payload)
    return Message(kind, code, parameter, payload[HEADER_SIZE:])


# From the address the datagram was sent to, which is ours: RFC 4443 section 2.2 (a).
def port_unreachable(packet: bytes, source: bytes, destination: bytes) -> bytes:
    """Return the error for a datagram to an unbound port, with a quote within the minimum MTU (RFC 4443, 3.1)."""
    # RFC 4443 section 2.4 (c): as much as possible without exceeding 1280 bytes in all.
    quoted = packet[: ip.MIN_MTU - ip.HEADER_SIZE - HEADER_SIZE]
    return Message(UNREACHABLE, CODE_PORT_UNREACHABLE, 0, quoted).encode(source, destination)
