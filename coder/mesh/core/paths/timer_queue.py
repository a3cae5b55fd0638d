"""Timer queue: many deadlines, one clock.

Ten thousand idle peers must cost nothing per tick, so their timers share a heap; stale heap entries are skipped when
they surface instead of being searched for.
"""

from __future__ import annotations

from collections.abc import Hashable
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)


class TimerQueue(Generic[Key]):
    """Queue with at most one deadline per key."""

    __slots__ = ("_at", "_count", "_heap")

    def __init__(self) -> None:
        # The current deadlines; the heap below is an index that may also hold earlier ones.
        self._at: dict[Key, float] = {}
        self._heap: list[tuple[float, int, Key]] = []
        self._count = 0

    def __len__(self) -> int:
        return len(self._at)

    def set(self, key: Key, at: float | None) -> None:
        """Move the key's deadline; None removes it."""
        if at is None:
            self._at.pop(key, None)
            return
        # The same again, after most steps of an idle peer: no further entry is needed.
        if self._at.get(key) == at:
            return
        self._at[key] = at
        self._count += 1  # keeps the heap from comparing keys
        heappush(self._heap, (at, self._count, key))
        # Stale entries of peers that move their deadline with every packet would pile up until they surface: at four
        # for each living one rebuilding costs less than keeping them.
        if len(self._heap) > 64 and len(self._heap) > 4 * len(self._at):
            self._rebuild()

    def next(self) -> float | None:
        """Return the earliest deadline."""
        heap, current = self._heap, self._at
        while heap:
            at, _, key = heap[0]
            # Equal, not nearly equal: both are the value that `set` got.
            if current.get(key) == at:
                return at
            heappop(heap)
        return None

    def pop_due(self, now: float) -> list[Key]:
        """Remove and return every key whose deadline has passed."""
        due = []
        while (at := self.next()) is not None and at <= now:
            key = heappop(self._heap)[2]
            # A deadline fires once: a peer that needs another sets it (`PathActions.settle`).
            del self._at[key]
            due.append(key)
        return due

    def _rebuild(self) -> None:
        self._heap = [(at, number, key) for number, (key, at) in enumerate(self._at.items())]
        self._count = len(self._heap)
        heapify(self._heap)
