"""Shares of peers in a table of limited size: max-min fairness.

Lives here: who holds how many entries, and whose entry makes room. Does not live here: the entries themselves.

A peer is authenticated, not trusted: a workspace that is shared with many users has many peers. One of them must not
fill a table that all of them need. While the table has room, a peer may use all of it. When it is full, the peer with
the most entries loses its oldest to a peer that has at least two fewer. A peer that stays below an equal share is
therefore always admitted, and two peers with about the same number never evict each other in turn.
"""

from __future__ import annotations

from typing import Generic, TypeVar

Entry = TypeVar("Entry")


class PeerShares(Generic[Entry]):
    """Entries of a table by peer, the oldest first. A peer is its source address."""

    __slots__ = ("_by_peer", "_limit", "_size")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._size = 0
        self._by_peer: dict[bytes, dict[Entry, None]] = {}

    def __len__(self) -> int:
        return self._size

    @property
    def is_full(self) -> bool:
        """Whether one more entry needs an eviction."""
        return self._size >= self._limit

    def add(self, peer: bytes, entry: Entry) -> None:
        """Record an entry. The caller has made room."""
        entries = self._by_peer.setdefault(peer, {})
        if entry not in entries:
            entries[entry] = None
            self._size += 1

    def discard(self, peer: bytes, entry: Entry) -> None:
        """Forget an entry; one that is not there is ignored."""
        entries = self._by_peer.get(peer)
        if entries is not None and entry in entries:
            del entries[entry]
            self._size -= 1
            if not entries:
                del self._by_peer[peer]

    def evictable_for(self, peer: bytes) -> Entry | None:
        """Return the entry that makes room for one more of `peer`; None: the peer has its share already.

        Costs one step for each peer with entries, and is needed for full tables only.
        """
        own = len(self._by_peer.get(peer, ()))
        largest = max(self._by_peer.values(), key=len, default=None)
        if largest is None or len(largest) < own + 2:
            return None
        return next(iter(largest))

    def oldest_of(self, peer: bytes) -> Entry | None:
        """Return the oldest entry of a peer, or None."""
        return next(iter(self._by_peer.get(peer, ())), None)
