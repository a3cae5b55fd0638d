"""IPv4 packets as IPv6 packets between mapped addresses (::ffff:a.b.c.d), and back.

Lives here: the two translations, and cutting an IPv4 packet into fragments. Inside the stack there is one kind of
packet and one kind of address; IPv4 exists at its edge only.
Does not live here: choosing addresses (stack/), IPv6 itself (ip.py).
Obeys: RFC 791, RFC 792, RFC 6864 (identification), and the tables of RFC 7915 where ICMP differs.

TCP and UDP checksums need no change: the words a mapped address adds are 0 and 0xFFFF, both zero in one's complement.
"""

from __future__ import annotations

from struct import Struct

from coder.mesh.core.errors import WireError
from coder.mesh.core.wire import icmp, ip

# Without options. Received ones are skipped by the header length: RFC 1122 section 3.2.1.8 has a host ignore unknown
# options.
HEADER_SIZE = 20
PROTOCOL_ICMP = 1
MAPPED = bytes(10) + b"\xff\xff"
MAX_PAYLOAD = 0xFFFF - HEADER_SIZE
"""The length field counts the header, which IPv6's does not."""
GROWTH = ip.HEADER_SIZE - HEADER_SIZE
"""Bytes by which a packet grows when it is translated (fragments: 8 more)."""

_HEADER = Struct("!BBHHHBBH4s4s")
_FRAGMENT = Struct("!BxHI")
_PROTOCOL_FRAGMENT = 44
_DONT_FRAGMENT = 0x4000
_MORE_FRAGMENTS = 0x2000
_OFFSET = 0x1FFF

_ECHO_REPLY, _UNREACHABLE, _ECHO, _TIME_EXCEEDED = 0, 3, 8, 11
_CODE_PORT, _CODE_TOO_BIG, _CODE_HOST = 3, 4, 1
_TIME_EXCEEDED_6 = 3


def is_ipv4(address: bytes) -> bool:
    """Return whether a 16-byte address stands for an IPv4 address."""
    return address.startswith(MAPPED)


def address16(address: bytes) -> bytes:
    """Return 16 bytes of an address of 4 or 16."""
    return MAPPED + address if len(address) == 4 else address


def to_ipv6_untrusted(data: bytes) -> bytes:
    """Return an IPv4 packet as IPv6. Raises WireError when it is none, or of a kind a host has no use for.

    Padding is cut off. A fragment gets IPv6's fragment header.
    """
    # The header checksum is not checked: the tunnel has authenticated every byte (docs/decisions/tcp.md).
    protocol, source, destination, payload, identification, fragment = _parse(data)
    if protocol == PROTOCOL_ICMP:
        protocol = ip.PROTOCOL_ICMP6
        # Later fragments have no ICMP header. For the first the type is translated; its checksum, which spans all
        # fragments, is not checked behind the tunnel.
        if not fragment & _OFFSET:
            payload = _icmp_to_6(payload)
    if fragment & (_MORE_FRAGMENTS | _OFFSET):
        # A whole packet of IPv4 has at most 65,535 bytes with its header (RFC 791 section 3.1). Larger fragments would
        # be reassembled to a packet that cannot be translated back ("ping of death").
        if ((fragment & _OFFSET) << 3) + len(payload) > MAX_PAYLOAD:
            raise WireError("long_packet")
        more = 1 if fragment & _MORE_FRAGMENTS else 0
        payload = _FRAGMENT.pack(protocol, (fragment & _OFFSET) << 3 | more, identification) + payload
        protocol = _PROTOCOL_FRAGMENT
    # An IPv4 length counts the header, an IPv6 length does not: with the fragment header a full one no longer fits.
    if len(payload) > 0xFFFF:
        raise WireError("long_packet")
    return ip.header(protocol, MAPPED + source, MAPPED + destination, len(payload)) + payload


def from_ipv6(packet: bytes) -> bytes:
    """Return the IPv4 packet of a whole (unfragmented) IPv6 packet between mapped addresses."""
    protocol, payload = packet[6], packet[ip.HEADER_SIZE :]
    if protocol == ip.PROTOCOL_ICMP6:
        protocol, payload = PROTOCOL_ICMP, _icmp_to_4(payload)
    # RFC 6864 section 4: with "do not fragment" set the identification means nothing, and may be zero.
    return _header(protocol, packet[20:24], packet[36:40], len(payload), _DONT_FRAGMENT, 0) + payload


def split(packet: bytes, mtu: int, identification: int) -> list[bytes]:
    """Return an IPv4 packet without options, or its fragments when it is larger than the MTU."""
    if len(packet) <= mtu:
        return [packet]
    # RFC 791: offsets count in units of eight bytes.
    room = (mtu - HEADER_SIZE) & ~7
    body = packet[HEADER_SIZE:]
    out = []
    for at in range(0, len(body), room):
        piece = body[at : at + room]
        fragment = at >> 3 | (_MORE_FRAGMENTS if at + room < len(body) else 0)
        head = _header(packet[9], packet[12:16], packet[16:20], len(piece), fragment, identification)
        out.append(head + piece)
    return out


def _parse(data: bytes) -> tuple[int, bytes, bytes, bytes, int, int]:
    """Return (protocol, source, destination, payload, identification, flags and offset)."""
    if len(data) < HEADER_SIZE:
        raise WireError("short_packet")
    first, _, size, identification, fragment, _, protocol, _, source, destination = _HEADER.unpack_from(data)
    begin = (first & 15) * 4
    # An IHL below five words would have the payload begin inside the header (RFC 791 section 3.1).
    if first >> 4 != 4 or begin < HEADER_SIZE:
        raise WireError("not_ipv4")
    if not begin <= size <= len(data):
        raise WireError("truncated_packet")
    return protocol, source, destination, bytes(data[begin:size]), identification, fragment


def _header(protocol: int, source: bytes, destination: bytes, size: int, fragment: int, identification: int) -> bytes:
    total = HEADER_SIZE + size
    bare = _HEADER.pack(0x45, 0, total, identification, fragment, ip.HOP_LIMIT, protocol, 0, source, destination)
    check = 0xFFFF - ip.ones_sum(bare)
    return bare[:10] + check.to_bytes(2, "big") + bare[12:]


def _icmp_to_6(payload: bytes) -> bytes:
    message = icmp.parse_untrusted(payload)  # the layout is ICMPv6's
    kind, code, parameter, body = message
    if kind in (_ECHO, _ECHO_REPLY):
        kind = icmp.ECHO_REQUEST if kind == _ECHO else icmp.ECHO_REPLY
        return icmp.Message(kind, 0, parameter, body).body_bytes()
    # RFC 7915 section 4.2: the MTU grows by as much as the packet will when it is translated.
    if kind == _UNREACHABLE and code == _CODE_TOO_BIG:
        return icmp.Message(icmp.TOO_BIG, 0, (parameter & 0xFFFF) + GROWTH, _quote_to_6(body)).body_bytes()
    if kind == _UNREACHABLE:
        # The stack only distinguishes "port unreachable" from everything else, so the other codes of RFC 7915 are
        # merged.
        code = icmp.CODE_PORT_UNREACHABLE if code == _CODE_PORT else 0
        return icmp.Message(icmp.UNREACHABLE, code, 0, _quote_to_6(body)).body_bytes()
    if kind == _TIME_EXCEEDED:
        return icmp.Message(_TIME_EXCEEDED_6, code, 0, _quote_to_6(body)).body_bytes()
    raise WireError("unknown_type")


def _quote_to_6(data: bytes) -> bytes:
    """Translate the beginning of one of our packets in an error's quote, whose length field exceeds the quote."""
    # Only the header is required: RFC 792 lets a router quote just eight bytes behind it.
    if len(data) < HEADER_SIZE or data[0] >> 4 != 4:
        raise WireError("bad_quote")
    begin = (data[0] & 15) * 4
    size = max(int.from_bytes(data[2:4], "big") - begin, 0)
    protocol = ip.PROTOCOL_ICMP6 if data[9] == PROTOCOL_ICMP else data[9]
    return ip.header(protocol, MAPPED + data[12:16], MAPPED + data[16:20], size) + data[begin:]


def _icmp_to_4(payload: bytes) -> bytes:
    message = icmp.parse_untrusted(payload)
    kind, code, parameter, body = message
    if kind in (icmp.ECHO_REQUEST, icmp.ECHO_REPLY):
        kind = _ECHO if kind == icmp.ECHO_REQUEST else _ECHO_REPLY
    elif kind == icmp.TOO_BIG:
        # The reverse: the MTU shrinks by as much as the packet does (RFC 7915 section 5.2).
        kind, code, parameter, body = _UNREACHABLE, _CODE_TOO_BIG, max(parameter - GROWTH, 0), _quote_to_4(body)
    else:
        code = _CODE_PORT if code == icmp.CODE_PORT_UNREACHABLE else _CODE_HOST
        kind, parameter, body = _UNREACHABLE, 0, _quote_to_4(body)
    data = icmp.Message(kind, code, parameter, body).body_bytes()
    # ICMP of IPv4 has no pseudo header (RFC 792), that of IPv6 has one (RFC 4443 section 2.3).
    check = 0xFFFF - ip.ones_sum(data)
    return data[:2] + check.to_bytes(2, "big") + data[4:]


def _quote_to_4(body: bytes) -> bytes:
    size = int.from_bytes(body[4:6], "big")
    protocol = PROTOCOL_ICMP if body[6] == ip.PROTOCOL_ICMP6 else body[6]
    return _header(protocol, body[20:24], body[36:40], size, _DONT_FRAGMENT, 0) + body[ip.HEADER_SIZE :]
