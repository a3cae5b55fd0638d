"""IPv6 headers and the Internet checksum.

Lives here: building and reading the 40-byte header of every overlay packet, and the checksum of TCP, UDP and ICMPv6.
Does not live here: extension headers (no overlay node sends them; packets that have any are refused), IPv4 (ip4.py:
addresses are 16 bytes everywhere, IPv4's are mapped).
Obeys: RFC 8200 (header), RFC 1071 (checksum), RFC 6437 (a flow label of zero is allowed).
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from coder.mesh.core.errors import WireError

HEADER_SIZE = 40
ADDRESS_SIZE = 16
PROTOCOL_TCP = 6
PROTOCOL_UDP = 17
PROTOCOL_ICMP6 = 58
# 99 stands for "any private encryption scheme" in the registry of protocol numbers; the tunnel is one.
PROTOCOL_TSMP = 99
# The IANA's recommended default, which every system uses.
HOP_LIMIT = 64
# RFC 8200 section 5: every link carries this much, so an error of at most this size always arrives.
MIN_MTU = 1280

_HEADER = Struct("!IHBB16s16s")
# Version 6, traffic class and flow label zero: RFC 6437 section 2 leaves the label to the sender, and no balancer sits
# between two ends of a tunnel.
_VERSION_6 = 0x60000000


class Packet(NamedTuple):
    """An IPv6 packet without extension headers."""

    protocol: int
    source: bytes
    "16 bytes."
    destination: bytes
    "16 bytes."
    payload: bytes
    "Upper-layer bytes; padding behind the packet is gone."
    ecn: int = 0
    "The two ECN bits of the traffic class (3 = congestion experienced)."

    def encode(self) -> bytes:
        """Return the packet."""
        return header(self.protocol, self.source, self.destination, len(self.payload)) + self.payload


def header(protocol: int, source: bytes, destination: bytes, payload_size: int) -> bytes:
    """Return a header of 40 bytes; `payload_size` is the size of the rest."""
    # Congestion marks are not set: the routers that would mark are outside of the tunnel and cannot see these headers.
    return _HEADER.pack(_VERSION_6, payload_size, protocol, HOP_LIMIT, source, destination)


def parse_untrusted(data: bytes) -> Packet:
    """Split a packet. Raises WireError when it is not IPv6, or shorter than its header says. Padding is cut off."""
    if len(data) < HEADER_SIZE:
        raise WireError("short_packet")
    word, size, protocol, _, source, destination = _HEADER.unpack_from(data)
    if word >> 28 != 6:
        raise WireError("not_ipv6")
    # WireGuard pads plaintexts to 16 bytes (section 5.4.6 of its paper), so longer is normal; the length field has the
    # true end.
    if HEADER_SIZE + size > len(data):
        raise WireError("truncated_packet")
    return Packet(protocol, source, destination, bytes(data[HEADER_SIZE : HEADER_SIZE + size]), word >> 20 & 3)


def ones_sum(data: bytes) -> int:
    """Return the one's complement sum of 16-bit big-endian words, odd lengths padded with zero: 0..65534.

    One big-integer remainder: 2.1 us for 1348 bytes, four times faster than adding unpacked words, because 2^16 = 1
    modulo 65535.
    """
    value = int.from_bytes(data, "big")
    if len(data) & 1:
        # RFC 1071 section 1: the odd byte is the upper half of its word.
        value <<= 8
    return value % 0xFFFF


def checksum(protocol: int, source: bytes, destination: bytes, payload: bytes) -> int:
    """Return the checksum over pseudo header and payload, whose own checksum field is zero.

    Never 0: sum and complement of zero are equal in one's complement, and UDP reserves 0 for "none".
    """
    # RFC 8200 section 8.1: addresses, upper-layer length, three zero bytes and the protocol; the last two are small
    # enough to be added as they are.
    pseudo = ones_sum(source) + ones_sum(destination) + len(payload) + protocol
    # The remainder is 0 to 65534, so the result is 1 to 65535: zero comes out in its other form.
    return 0xFFFF - (pseudo + ones_sum(payload)) % 0xFFFF
