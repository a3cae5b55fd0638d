"""Receiver indices: the 32-bit names under which peers address our sessions and handshakes.

Lives here: one table for a whole device, so that an index names one thing at a time.
Obeys: the WireGuard paper, section 5.4 (sender/receiver index).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coder.mesh.core.crypto.keys import Random

if TYPE_CHECKING:
    from coder.mesh.core.tunnel.keypairs import Keypair
    from coder.mesh.core.tunnel.peer import Tunnel


class IndexTable:
    """Index -> session keys (read directly by the hot path), index -> tunnel with a handshake under way."""

    __slots__ = ("_random", "handshakes", "sessions")

    def __init__(self, random: Random) -> None:
        self._random = random
        self.sessions: dict[int, Keypair] = {}
        self.handshakes: dict[int, Tunnel] = {}

    def allocate(self) -> int:
        """An index nobody uses, unpredictable so that a stranger cannot aim at a session."""
        while True:
            index = int.from_bytes(self._random(4), "little")
            if index not in self.sessions and index not in self.handshakes:
                return index

    def release(self, keypairs: list[Keypair]) -> None:
        """These keys are gone."""
        for keypair in keypairs:
            self.sessions.pop(keypair.local_index, None)
