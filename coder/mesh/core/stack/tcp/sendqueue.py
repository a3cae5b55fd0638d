"""Send queue: the application's own chunks, never copied into a ring.

Lives here: finding the bytes of a sequence range. Does not live here: what was sent when (scoreboard.py).
"""

from __future__ import annotations

from bisect import bisect_right

_JOIN = 16_384
"""Writes smaller than this are joined with the chunk before, so that a million one-byte writes are few chunks."""


class SendQueue:
    """Chunks by absolute sequence number; `start` is the first byte kept, `end` one behind the last."""

    __slots__ = ("_bases", "_chunks", "end", "start")

    def __init__(self, start: int) -> None:
        self.start = start
        self.end = start
        self._chunks: list[bytes] = []
        # Number of each chunk's first byte, for bisecting.
        self._bases: list[int] = []

    def __len__(self) -> int:
        return self.end - self.start

    def append(self, data: bytes) -> None:
        """Queue a chunk (kept, not copied, unless it is small)."""
        if not data:
            return
        # A reference is enough, as `bytes` are immutable. Only small writes are joined.
        chunks = self._chunks
        if chunks and len(data) + len(chunks[-1]) <= _JOIN:
            # Copies the last chunk, up to 16 KiB of it: cheaper than a further chunk in every later search.
            chunks[-1] += data
        else:
            self._bases.append(self.end)
            chunks.append(data)
        self.end += len(data)

    def release(self, upto: int) -> None:
        """Release whole chunks below `upto`, which may be one more than `end`: the acknowledgement of a FIN."""
        chunks = self._chunks
        bases = self._bases
        # The usual case of a conversation: everything is acknowledged, and no search is needed.
        if upto >= self.end:
            chunks.clear()
            bases.clear()
            self.start = self.end
            return
        released = 0
        for base, chunk in zip(bases, chunks, strict=True):
            if base + len(chunk) > upto:
                break
            released += 1
        if released:
            del chunks[:released]
            del bases[:released]
        # A chunk that is acknowledged in part stays whole: cutting it would copy the rest with every acknowledgement.
        self.start = max(self.start, upto)

    def at(self, seq: int) -> tuple[bytes, int]:
        """Return (chunk holding `seq`, sequence number of its first byte); an empty chunk at `end`."""
        if seq >= self.end:
            return b"", self.end
        index = bisect_right(self._bases, seq) - 1
        # The whole chunk: the hot loop cuts many segments from it.
        return self._chunks[index], self._bases[index]

    def slice(self, seq: int, size: int) -> bytes:
        """Return `size` bytes from `seq`, or fewer at the end."""
        if seq >= self.end or not size:
            return b""
        # A bulk transfer holds up to 4 MiB in chunks of 64 KiB: six comparisons.
        index = bisect_right(self._bases, seq) - 1
        chunk = self._chunks[index]
        first = seq - self._bases[index]
        part = chunk[first : first + size]
        if len(part) == size:
            return part
        parts = [part]
        missing = size - len(part)
        for chunk in self._chunks[index + 1 :]:
            parts.append(chunk[:missing])
            missing -= len(parts[-1])
            if not missing:
                break
        return b"".join(parts)

    def clear(self) -> None:
        """Drop everything (the connection is dead)."""
        self._chunks.clear()
        self._bases.clear()
        self.start = self.end
