"""Shares in a table of limited size: max-min fairness among its holders.

Lives here: who holds how many entries, and whose entry makes room. Does not live here: the entries themselves.

A holder (a peer, an address) may be authenticated, and is not trusted: one of them must not fill a table that all of
them need. While the table has room, a holder may use all of it. When it is full, the holder with the most entries loses
its oldest to one that has at least two fewer. A holder that stays below an equal share is therefore always admitted,
and two with about the same number never evict each other in turn.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

Entry = TypeVar("Entry")


class FairShares(Generic[Entry]):
    """Entries of a table by holder, the oldest first."""

    __slots__ = ("_by_holder", "_limit", "_size")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._size = 0
        self._by_holder: dict[Hashable, dict[Entry, None]] = {}

    def __len__(self) -> int:
        return self._size

    @property
    def is_full(self) -> bool:
        """Whether one more entry needs an eviction."""
        return self._size >= self._limit

    def has(self, holder: Hashable, entry: Entry) -> bool:
        """Return whether the holder has this entry."""
        return entry in self._by_holder.get(holder, ())

    def count(self, holder: Hashable) -> int:
        """Return the number of entries of a holder."""
        return len(self._by_holder.get(holder, ()))

    def add(self, holder: Hashable, entry: Entry) -> None:
        """Record an entry. The caller has made room."""
        entries = self._by_holder.setdefault(holder, {})
        if entry not in entries:
            entries[entry] = None
            self._size += 1

    def discard(self, holder: Hashable, entry: Entry) -> None:
        """Forget an entry; one that is not there is ignored."""
        entries = self._by_holder.get(holder)
        if entries is not None and entry in entries:
            del entries[entry]
            self._size -= 1
            if not entries:
                del self._by_holder[holder]

    def evictable_for(self, holder: Hashable) -> Entry | None:
        """Return the entry that makes room for one more of `holder`; None: the holder has its share already.

        Costs one step for each holder, and is needed for full tables only.
        """
        largest = max(self._by_holder.values(), key=len, default=None)
        if largest is None or len(largest) < self.count(holder) + 2:
            return None
        return next(iter(largest))

    def oldest_of(self, holder: Hashable) -> Entry | None:
        """Return the oldest entry of a holder, or None."""
        return next(iter(self._by_holder.get(holder, ())), None)
