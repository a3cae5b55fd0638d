"""Packet rewriting of a router: readdressing, MSS clamping, refusals.

Lives here: IPv6 packets in, IPv6 packets out. Does not live here: which packets may pass
(drivers/wireguard_gateway.py).
Obeys: RFC 1624 (incremental checksums), RFC 4443 (errors), RFC 9293 section 3.2 (the MSS option).
"""

from __future__ import annotations

from coder.mesh.core.wire import icmp, ip

CODE_PROHIBITED = 1
"""Destination unreachable: communication administratively prohibited (RFC 4443, 3.1)."""
_FRAGMENT = 44
_FRAGMENT_SIZE = 8
_SYN = 0x02
_OPTION_END, _OPTION_NOTHING, _OPTION_MSS = 0, 1, 2
_CHECKSUM_AT = {ip.PROTOCOL_TCP: 16, ip.PROTOCOL_UDP: 6, ip.PROTOCOL_ICMP6: 2}
_TCP_HEADERS = ip.HEADER_SIZE + 20
_ICMP_INFORMATIONAL = 128
_ICMP_REDIRECT = 137


def trimmed(packet: bytes) -> bytes:
    """Return the packet without tunnel padding; empty when it is not a whole IPv6 packet."""
    if len(packet) < ip.HEADER_SIZE or packet[0] >> 4 != 6:
        return b""
    size = ip.HEADER_SIZE + (packet[4] << 8 | packet[5])
    # Most packets have no padding: they are returned without a copy.
    if size == len(packet):
        return packet
    return packet[:size] if size < len(packet) else b""


def difference(before: bytes, after: bytes) -> int:
    """Return what replacing address bytes adds to the one's complement sum of a pseudo header, 0..65534."""
    return (ip.ones_sum(after) - ip.ones_sum(before)) % 0xFFFF


def readdress(packet: bytes, source: bytes, destination: bytes, added: int) -> bytes:
    """Return the packet with other addresses; `added` is `difference` of old and new ones. Checksums stay right.

    Errors quote the packet they are about, which travelled in the other direction: its addresses are replaced as well.
    """
    out = bytearray(packet)
    out[8:24] = source
    out[24:40] = destination
    protocol, at = packet[6], ip.HEADER_SIZE
    if protocol == _FRAGMENT:
        if len(out) < at + _FRAGMENT_SIZE or packet[at + 2] or packet[at + 3] & 0xF8:
            return bytes(out)  # a later fragment has no transport header
        protocol, at = packet[at], at + _FRAGMENT_SIZE
    if protocol == ip.PROTOCOL_ICMP6 and len(out) > at and out[at] < _ICMP_INFORMATIONAL:
        return _readdress_error(bytes(out), at, source, destination)
    # Other protocols have no known checksum over addresses; TSMP has none at all.
    checksum_at = _CHECKSUM_AT.get(protocol)
    if checksum_at is not None and len(out) >= at + checksum_at + 2:
        _add_to_checksum(out, at + checksum_at, added)
    return bytes(out)


def _readdress_error(packet: bytes, at: int, source: bytes, destination: bytes) -> bytes:
    """Readdress the quote of an error. `packet` has its own new addresses already; its ICMP message begins at `at`."""
    out = bytearray(packet)
    quoted = at + icmp.HEADER_SIZE
    if len(out) < quoted + ip.HEADER_SIZE or at != ip.HEADER_SIZE:
        return packet
    # The quoted packet travelled in the other direction: its source is the receiver of this error.
    out[quoted + 8 : quoted + 24] = destination
    out[quoted + 24 : quoted + 40] = source
    # Recomputed, not adjusted: the quoted addresses lie inside the checksummed range, and errors are rare. The quote's
    # own checksum, which spans its addresses, is left: it may lie behind the cut, and a reader of a quote cannot check
    # it anyway.
    out[at + 2 : at + 4] = bytes(2)
    check = ip.checksum(ip.PROTOCOL_ICMP6, source, destination, bytes(out[at:]))
    out[at + 2 : at + 4] = check.to_bytes(2, "big")
    return bytes(out)


def _add_to_checksum(packet: bytearray, at: int, added: int) -> None:
    # RFC 1624, equation 3: HC' = ~(~HC + ~m + m'); what was added is the difference of the words.
    total = 0xFFFF - int.from_bytes(packet[at : at + 2], "big") + added
    packet[at : at + 2] = (0xFFFF - total % 0xFFFF).to_bytes(2, "big")


def clamp_mss(packet: bytes, mtu: int) -> bytes:
    """Return a TCP SYN with an MSS of at most what `mtu` allows; other packets are returned unchanged."""
    if packet[6] != ip.PROTOCOL_TCP or len(packet) < _TCP_HEADERS or not packet[ip.HEADER_SIZE + 13] & _SYN:
        return packet
    # RFC 6691 section 2: the MSS counts neither IP nor TCP options, so only the fixed headers are taken off.
    largest = mtu - _TCP_HEADERS
    end = min(ip.HEADER_SIZE + (packet[ip.HEADER_SIZE + 12] >> 4) * 4, len(packet))
    at = _TCP_HEADERS
    while at < end:
        # As in wire/tcp.py, but lenient: a router forwards what it does not understand.
        kind = packet[at]
        if kind == _OPTION_END:
            break
        if kind == _OPTION_NOTHING:
            at += 1
            continue
        size = packet[at + 1] if at + 1 < end else 0
        if size < 2 or at + size > end:
            break  # malformed: its destination decides how to treat it
        if kind == _OPTION_MSS and size == 4:
            return _with_mss(packet, at + 2, largest)
        at += size
    return packet


def _with_mss(packet: bytes, at: int, largest: int) -> bytes:
    announced = int.from_bytes(packet[at : at + 2], "big")
    if announced <= largest:
        return packet
    out = bytearray(packet)
    # An option at an odd offset has its bytes swapped in the sum (RFC 1071, 2B).
    change = largest - announced
    if (at - ip.HEADER_SIZE) & 1:
        change = (largest & 0xFF) * 256 + (largest >> 8) - (announced & 0xFF) * 256 - (announced >> 8)
    out[at : at + 2] = largest.to_bytes(2, "big")
    _add_to_checksum(out, ip.HEADER_SIZE + 16, change % 0xFFFF)
    return bytes(out)


def may_answer(packet: bytes) -> bool:
    """Return whether an error may be sent about this packet: never about errors, later fragments (RFC 4443, 2.4)."""
    at, protocol = ip.HEADER_SIZE, packet[6]
    if protocol == _FRAGMENT:
        return False
    # A redirect is no error by its number, and yet listed in 2.4 (e.2).
    return protocol != ip.PROTOCOL_ICMP6 or (
        len(packet) > at and packet[at] >= _ICMP_INFORMATIONAL and packet[at] != _ICMP_REDIRECT
    )


def prohibited(packet: bytes) -> bytes:
    """Return the refusal of a packet, with its destination as source: nothing behind the router is revealed."""
    return _about(packet, icmp.UNREACHABLE, CODE_PROHIBITED, 0)


def too_big(packet: bytes, mtu: int) -> bytes:
    """Return the answer to a packet larger than the next hop's MTU."""
    return _about(packet, icmp.TOO_BIG, 0, mtu)


def _about(packet: bytes, kind: int, code: int, parameter: int) -> bytes:
    # As much as possible within 1280 bytes in all (RFC 4443 section 2.4, c).
    quoted = packet[: ip.MIN_MTU - ip.HEADER_SIZE - icmp.HEADER_SIZE]
    return icmp.Message(kind, code, parameter, quoted).encode(packet[24:40], packet[8:24])
