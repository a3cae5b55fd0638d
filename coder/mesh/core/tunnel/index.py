"""Receiver indices: the 32-bit numbers by which peers address our sessions and handshakes.

Lives here: one table for a whole device, so that an index is unique.
Obeys: the WireGuard paper, section 5.4 (sender/receiver index).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

from coder.mesh.core.crypto.keys import Random

Session = TypeVar("Session")
Handshake = TypeVar("Handshake")


class IndexTable(Generic[Session, Handshake]):
    """Index -> session keys (read directly by the hot path), index -> tunnel with a handshake in progress."""

    __slots__ = ("_random", "handshakes", "sessions")

    def __init__(self, random: Random) -> None:
        self._random = random
        self.sessions: dict[int, Session] = {}
        # Separate, as a handshake has no keys yet; a number is never in both.
        self.handshakes: dict[int, Handshake] = {}

    def allocate(self) -> int:
        """Return an unused index, unpredictable so that a stranger cannot target a session."""
        while True:
            index = int.from_bytes(self._random(4), "little")
            # 2**32 numbers for some ten thousand sessions: a second draw is rare, a third practically impossible.
            if index not in self.sessions and index not in self.handshakes:
                return index

    def release(self, indices: Iterable[int]) -> None:
        """Release the index of discarded keys."""
        for index in indices:
            self.sessions.pop(index, None)
