"""Bytes that arrived: in order for the application, out of order until the hole is filled.

Lives here: ordering, overlap, what to report in SACK blocks, what a reader gets.
Does not live here: windows and acknowledgements (tcp_input.py, tcp_output.py).
Obeys: RFC 2018 section 4 (blocks, most recent first), RFC 2883 (duplicates).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

_SMALL = 512
"""Payloads below this are copied together: a view of a one-byte segment would pin three hundred bytes of packet."""
_RECENT = 8
"""Ours: blocks kept in the order of their news. Four at most fit into a header (RFC 2018 section 3); the others step in
where those grow together."""

Piece = bytes | bytearray | memoryview


class Reassembly:
    """Absolute sequence numbers; `next` is RCV.NXT as far as data goes."""

    __slots__ = ("_lefts", "_pieces", "_rights", "_starts", "blocks", "next", "parts", "unread", "waiting")

    def __init__(self, start: int) -> None:
        self.next = start
        self.parts: list[Piece] = []
        "In order, unread; the hot path appends views directly."
        self.unread = 0
        # Two lists side by side: the numbers alone are what is searched.
        self._starts: list[int] = []
        self._pieces: list[Piece] = []
        self.waiting = 0
        "Bytes held out of order."
        # Every range held, in order, with a hole before and behind each; also two lists, and for the same reason.
        self._lefts: list[int] = []
        self._rights: list[int] = []
        self.blocks: list[tuple[int, int]] = []
        "The ranges held out of order that changed last (`_RECENT` of them), the latest first."

    def insert(self, seq: int, data: Piece) -> int:
        """Take bytes at `seq`, already cut to the window; returns how many became readable."""
        late = self.next - seq
        if late > 0:
            # What came first stays: other bytes under numbers that were delivered change nothing.
            data = data[late:]
            seq = self.next
        if not data:
            return 0
        if seq > self.next:
            # Beyond a hole: RFC 9293 section 3.10.7.4 lets us drop it, and SACK makes keeping it worth while.
            self._hold(seq, data)
            return 0
        self.deliver(data)
        return len(data) + (self._drain() if self._starts else 0)

    def appended(self, size: int) -> None:
        """The hot path has put in-order bytes into `parts`."""
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
        """Sequence numbers without bytes: a FIN."""
        self.next += numbers

    def _hold(self, seq: int, data: Piece) -> None:
        starts, pieces = self._starts, self._pieces
        index = bisect_right(starts, seq)
        if index:  # cut what the piece before already has
            covered = starts[index - 1] + len(pieces[index - 1]) - seq
            if covered > 0:
                data = data[covered:]
                seq += covered
        end = seq + len(data)
        # Pieces behind that this one covers whole go; one it covers in part cuts it.
        stop = index
        while stop < len(starts) and starts[stop] + len(pieces[stop]) <= end:
            self.waiting -= len(pieces[stop])
            stop += 1
        if stop < len(starts) and starts[stop] < end:
            data = data[: starts[stop] - seq]
        if not data:
            # All of it was here: nothing is stored, yet its block moves to the front, being the newest news.
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
        """Put the range [left, right), joined with what it touches, in front of the blocks."""
        lefts, rights = self._lefts, self._rights
        # What nearly always comes behind a hole: the next segment.
        if rights and left == rights[-1] and self.blocks[0][1] == left < right:
            rights[-1] = right
            self.blocks[0] = (lefts[-1], right)
            return
        # Touching counts as overlapping: RFC 2018 section 3 wants each block to be a contiguous range, with holes
        # around. Searched and not walked: a peer may open thousands of holes.
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
        # Pieces do not overlap each other, but the first may overlap what came in order meanwhile.
        # Deleted once behind the loop: taking them off one by one would move the lists with each.
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
            # Below RCV.NXT the acknowledgement says it (RFC 2018 section 4).
            self.blocks = [block for block in self.blocks if block[1] > self.next]
            gone = bisect_right(self._rights, self.next)
            del self._lefts[:gone]
            del self._rights[:gone]
            if self._lefts and not self.blocks:
                # Older news than `_RECENT`, yet all there is to report.
                self.blocks = self.held[:_RECENT]
        return self.next - before

    @property
    def pieces(self) -> int:
        """How many pieces are held out of order."""
        return len(self._starts)

    @property
    def held(self) -> list[tuple[int, int]]:
        """All ranges held out of order, in order."""
        return list(zip(self._lefts, self._rights, strict=True))

    def read(self, limit: int) -> bytes:
        """Up to `limit` bytes, joined."""
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
