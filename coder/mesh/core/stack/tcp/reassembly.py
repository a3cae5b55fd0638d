"""Received bytes: in order for the application, out of order until the hole is filled.

Lives here: ordering, overlap, the ranges for SACK blocks, reading.
Does not live here: windows and acknowledgements (tcp_input.py, tcp_output.py).
Obeys: RFC 2018 section 4 (blocks, most recent first), RFC 2883 (duplicates).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

_SMALL = 512
"""Payloads below this are copied together: a view of a one-byte segment would pin three hundred bytes of packet."""
_RECENT = 8
"""Ours: blocks kept in the order of their last change. A header holds four at most (RFC 2018 section 3); the others
replace those that merge."""

Piece = bytes | bytearray | memoryview


class Reassembly:
    """Absolute sequence numbers; `next` is RCV.NXT as far as data goes."""

    __slots__ = ("_lefts", "_pieces", "_rights", "_starts", "blocks", "next", "parts", "unread", "waiting")

    def __init__(self, start: int) -> None:
        self.next = start
        self.parts: list[Piece] = []
        "Unread data in order; the hot path appends views directly."
        self.unread = 0
        # Two parallel lists: only the numbers are searched.
        self._starts: list[int] = []
        self._pieces: list[Piece] = []
        self.waiting = 0
        "Bytes held out of order."
        # All held ranges in order, with a hole before and behind each; two parallel lists for the same reason.
        self._lefts: list[int] = []
        self._rights: list[int] = []
        self.blocks: list[tuple[int, int]] = []
        "The ranges held out of order that changed last (`_RECENT` of them), the latest first."

    def insert(self, seq: int, data: Piece) -> int:
        """Insert bytes at `seq`, already cut to the window; return how many became readable."""
        late = self.next - seq
        if late > 0:
            # Data that came first stays: different bytes under delivered sequence numbers are ignored.
            data = data[late:]
            seq = self.next
        if not data:
            return 0
        if seq > self.next:
            # Beyond a hole: RFC 9293 section 3.10.7.4 allows to drop it, and SACK makes keeping it worth while.
            self._hold(seq, data)
            return 0
        self.deliver(data)
        return len(data) + (self._drain() if self._starts else 0)

    def appended(self, size: int) -> None:
        """Account for in-order bytes that the hot path put into `parts`."""
        self.next += size
        self.unread += size

    def deliver(self, data: Piece) -> None:
        """Append in-order bytes."""
        size = len(data)
        if size < _SMALL:
            last = self.parts[-1] if self.parts else None
            # Bounded, as growing a bytearray copies it now and then, and a reader takes whole parts.
            if isinstance(last, bytearray) and len(last) < 16 * _SMALL:
                last += data
            else:
                # A bytearray, as the next small payload is added to it.
                self.parts.append(bytearray(data))
        else:
            self.parts.append(data)
        self.next += size
        self.unread += size

    def skip(self, numbers: int) -> None:
        """Advance over sequence numbers without bytes: a FIN."""
        self.next += numbers

    def _hold(self, seq: int, data: Piece) -> None:
        starts, pieces = self._starts, self._pieces
        index = bisect_right(starts, seq)
        if index:  # cut the part that the piece before already has
            covered = starts[index - 1] + len(pieces[index - 1]) - seq
            if covered > 0:
                data = data[covered:]
                seq += covered
        end = seq + len(data)
        # Later pieces that this one covers are removed; one it covers in part cuts it.
        stop = index
        while stop < len(starts) and starts[stop] + len(pieces[stop]) <= end:
            self.waiting -= len(pieces[stop])
            stop += 1
        if stop < len(starts) and starts[stop] < end:
            data = data[: starts[stop] - seq]
        if not data:
            # A complete duplicate: nothing is stored, yet its block moves to the front, as it is the most recent.
            self._note(seq, seq)
            return
        if len(data) < _SMALL:
            # Held for as long as the hole is open; a view would pin a whole packet for a few bytes (`_SMALL`).
            data = bytes(data)
        starts[index:stop] = [seq]
        pieces[index:stop] = [data]
        self.waiting += len(data)
        self._note(seq, seq + len(data))

    def _note(self, left: int, right: int) -> None:
        """Put the range [left, right), merged with the ranges it touches, in front of the blocks."""
        lefts, rights = self._lefts, self._rights
        # The usual segment behind a hole: the next one.
        if rights and left == rights[-1] and self.blocks[0][1] == left < right:
            rights[-1] = right
            self.blocks[0] = (lefts[-1], right)
            return
        # Touching counts as overlapping: RFC 2018 section 3 requires each block to be a contiguous range, with holes
        # around. Bisection, no linear search: a peer may open thousands of holes.
        first = bisect_left(rights, left)
        stop = bisect_right(lefts, right)
        if first < stop:
            left = min(left, lefts[first])
            right = max(right, rights[stop - 1])
        if right <= left:
            return
        lefts[first:stop] = [left]
        rights[first:stop] = [right]
        # RFC 2018 section 4: the block with the newest segment comes first, so that a lost acknowledgement loses
        # little.
        others = [block for block in self.blocks if block[1] < left or block[0] > right]
        self.blocks = [(left, right), *others[: _RECENT - 1]]

    def _drain(self) -> int:
        before = self.next
        starts, pieces = self._starts, self._pieces
        used = 0
        # Pieces do not overlap each other, but the first may overlap data that came in order meanwhile. They are
        # deleted together behind the loop: deleting one by one would move the lists each time.
        for seq, piece in zip(starts, pieces, strict=True):
            if seq > self.next:
                break
            used += 1
            self.waiting -= len(piece)
            late = self.next - seq
            if late < len(piece):
                self.deliver(piece[late:] if late else piece)
        if used:
            del starts[:used]
            del pieces[:used]
            # Below RCV.NXT the cumulative acknowledgement reports it (RFC 2018 section 4).
            self.blocks = [block for block in self.blocks if block[1] > self.next]
            delivered = bisect_right(self._rights, self.next)
            del self._lefts[:delivered]
            del self._rights[:delivered]
            if self._lefts and not self.blocks:
                # Older than `_RECENT`, yet all there is to report.
                self.blocks = self.held[:_RECENT]
        return self.next - before

    @property
    def pieces(self) -> int:
        """Number of pieces held out of order."""
        return len(self._starts)

    @property
    def held(self) -> list[tuple[int, int]]:
        """All ranges held out of order, in order."""
        return list(zip(self._lefts, self._rights, strict=True))

    def read(self, limit: int) -> bytes:
        """Return up to `limit` bytes, joined."""
        parts = self.parts
        if self.unread <= limit:
            out = b"".join(parts)
            parts.clear()
            self.unread = 0
            return out
        size = 0
        count = 0
        for part in parts:
            size += len(part)
            count += 1
            if size >= limit:
                break
        taken = parts[:count]
        surplus = size - limit
        if surplus > 0:
            last = taken[-1]
            cut = len(last) - surplus
            taken[-1] = last[:cut]
            # The rest stays a view of the same packet: nothing is copied twice.
            parts[count - 1 : count] = [last[cut:]]
            count -= 1
        del parts[:count]
        out = b"".join(taken)
        self.unread -= len(out)
        return out

    def clear(self) -> None:
        """Drop everything."""
        self.parts.clear()
        self._starts.clear()
        self._pieces.clear()
        self._lefts.clear()
        self._rights.clear()
        self.blocks = []
        self.unread = self.waiting = 0
