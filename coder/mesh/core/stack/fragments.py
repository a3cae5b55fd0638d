"""Fragmentation and reassembly of datagrams larger than the tunnel's MTU.

Lives here: both directions, for UDP and ICMP (TCP never needs it). Does not live here: delivery of the result
(demux.py).
Obeys: RFC 8200 section 4.5, RFC 5722 (overlapping fragments are refused), RFC 8021 (no atomic fragments).
"""

from __future__ import annotations

from struct import Struct

from coder.mesh.core.errors import WireError
from coder.mesh.core.wire import ip
from coder.mesh.fair_shares import FairShares

PROTOCOL = 44
_HEADER = Struct("!BxHI")
# The offset counts units of eight bytes in the upper 13 bits: masked, not shifted, it is the offset in bytes.
_OFFSET, _MORE = 0xFFF8, 1
_SIZE = 8
# RFC 8200 section 4.5: abandoned 60 seconds after the first fragment came.
_LIFETIME = 60.0
_MAX_PACKETS = 64
"""Ours: packets under reassembly at a time, of all peers; with 64 KB each at most 4 MB. Each peer has its share
(fair_shares.py), of which the oldest is dropped."""
_MAX_PIECES = 512
"""Ours: fragments of one packet. Packets of 256 bytes, the smallest we send (routes.py), need 316 for the largest
datagram. Pieces of eight bytes would be 8192, each compared with all before it, and each with bookkeeping many times
its size."""
# RFC 8200 section 4.5: an offset and length that would make a larger payload are an error, not a jumbogram.
_MAX_PACKET = 65_535


def split(packet: bytes, mtu: int, identification: int) -> list[bytes]:
    """Return the packet, or its fragments when it is larger than the MTU. Raises WireError for malformed packets.

    A fragment can be split further: its pieces keep the identification of the original datagram and count their offsets
    from its own. Only a last fragment has a last piece.
    """
    if len(packet) <= mtu:
        return [packet]
    protocol, begin, is_last, body = packet[6], 0, True, packet[ip.HEADER_SIZE :]
    if protocol == PROTOCOL:
        protocol, offset_field, identification = _HEADER.unpack_from(body)
        begin, is_last, body = offset_field & _OFFSET, not offset_field & _MORE, body[_SIZE:]
        if begin + len(body) > _MAX_PACKET or (not is_last and len(body) & 7):
            raise WireError("bad_fragment")
    # RFC 8200 4.5: offsets count in units of eight bytes.
    room = (mtu - ip.HEADER_SIZE - _SIZE) & ~7
    out = []
    for at in range(0, len(body), room):
        piece = body[at : at + room]
        more = 0 if is_last and at + room >= len(body) else _MORE
        # Traffic class and hop limit are copied to each fragment: a congestion mark or a counted hop applies to each.
        head = packet[:4] + (_SIZE + len(piece)).to_bytes(2, "big") + bytes([PROTOCOL]) + packet[7 : ip.HEADER_SIZE]
        out.append(head + _HEADER.pack(protocol, begin + at | more, identification) + piece)
    return out


class _Partial:
    """A packet under reassembly."""

    __slots__ = ("begun", "have", "pieces", "size", "source")

    def __init__(self, source: bytes, begun: float) -> None:
        self.source = source
        self.begun = begun
        self.pieces: dict[int, bytes] = {}
        self.have = 0
        self.size = -1
        "Known once the last fragment arrived."


class Assembler:
    """Reassembles fragments of all peers, in bounded memory and time."""

    __slots__ = ("_shares", "waiting")

    def __init__(self) -> None:
        self.waiting: dict[bytes, _Partial] = {}
        "The oldest first."
        self._shares: FairShares[bytes] = FairShares(_MAX_PACKETS)

    def add(self, packet: ip.Packet, now: float) -> ip.Packet | None:
        """Add a fragment; return the whole packet when it was the last one missing.

        Raises WireError for malformed fragments.
        """
        if len(packet.payload) <= _SIZE:
            raise WireError("short_fragment")
        protocol, offset_field, _ = _HEADER.unpack_from(packet.payload)
        offset, more = offset_field & _OFFSET, offset_field & _MORE
        data = packet.payload[_SIZE:]
        if offset + len(data) > _MAX_PACKET or (more and len(data) & 7):
            raise WireError("bad_fragment")
        # RFC 8200 section 4.5 uses source, destination and identification. The protocol is added for translated IPv4,
        # which counts its identifications for each protocol (RFC 791 section 3.2).
        key = packet.source + packet.destination + packet.payload[:1] + packet.payload[4:_SIZE]
        partial = self._find(key, packet.source, now)
        # RFC 5722: an overlap is an attack; the whole packet is dropped, not just the piece.
        if offset in partial.pieces or self._overlaps(partial, offset, len(data)):
            self._drop(key)
            raise WireError("overlapping_fragments")
        # Two last fragments, or data behind the end: `have` would reach `size` with a hole in the middle.
        if not more and any(at + len(piece) > offset for at, piece in partial.pieces.items()):
            self._drop(key)
            raise WireError("bad_fragment")
        if len(partial.pieces) >= _MAX_PIECES:
            self._drop(key)
            raise WireError("too_many_fragments")
        partial.pieces[offset] = data
        partial.have += len(data)
        if not more:
            partial.size = offset + len(data)
        # No two pieces overlap and none lies behind the end, so equal sums mean that nothing is missing.
        if partial.have != partial.size:
            return None
        self._drop(key)
        whole = b"".join(partial.pieces[at] for at in sorted(partial.pieces))
        return ip.Packet(protocol, packet.source, packet.destination, whole)

    def next_expiry(self) -> float | None:
        """Return when the oldest incomplete packet is abandoned."""
        return next(iter(self.waiting.values())).begun + _LIFETIME if self.waiting else None

    def expire(self, now: float) -> None:
        """Abandon old incomplete packets."""
        while self.waiting:
            oldest = next(iter(self.waiting))
            # The same sum as `next_expiry`: a difference could round the other way and spin the timer.
            if now < self.waiting[oldest].begun + _LIFETIME:
                break
            self._drop(oldest)

    def forget(self, source: bytes) -> None:
        """Abandon the incomplete packets of a removed peer."""
        for key in [key for key, partial in self.waiting.items() if partial.source == source]:
            self._drop(key)

    def _find(self, key: bytes, source: bytes, now: float) -> _Partial:
        partials = self.waiting
        # RFC 8200 section 4.5 would have us send Time Exceeded for packets dropped here. The sender cannot act on it,
        # so no clock is kept for it either.
        self.expire(now)
        partial = partials.get(key)
        if partial is None:
            if self._shares.is_full:
                self._drop(self._shares.evictable_for(source) or self._shares.oldest_of(source) or next(iter(partials)))
            partial = partials[key] = _Partial(source, now)
            self._shares.add(source, key)
        return partial

    def _drop(self, key: bytes) -> None:
        self._shares.discard(self.waiting.pop(key).source, key)

    @staticmethod
    def _overlaps(partial: _Partial, offset: int, size: int) -> bool:
        end = offset + size
        if 0 <= partial.size < end:
            return True
        return any(at < end and offset < at + len(piece) for at, piece in partial.pieces.items())
