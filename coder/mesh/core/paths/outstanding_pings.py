"""The pings of one peer that are under way, and what each was for.

Lives here: transaction numbers, and forgetting what was not answered. What an answer means is probing.py's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from coder.mesh.core.paths.candidates import Address
from coder.mesh.core.paths.mtu import STANDARD

# docs/protocol/disco.md#hearing. Behind a later answer nobody knows how long the path is now.
PING_TIMEOUT = 5.0
MAX_OUTSTANDING = 256
"""Ours: bounds the memory of pings in flight; more candidates than this are never pinged within one timeout."""
# As many as STUN has (RFC 8489 section 5): 96 random bits cannot be guessed by who did not see the ping.
TX_SIZE = 12


class Purpose(NamedTuple):
    """Why a ping was sent."""

    heartbeat: bool = False
    token: int = 0
    """Not 0: a person or program waits for this answer."""


@dataclass(frozen=True, slots=True)
class SendPing:
    """Send a disco ping; to a UDP address, or by relay when it is None."""

    to: Address | None
    tx: bytes
    # The whole datagram: what paths and sockets count. The payload is the envelope less.
    size: int = STANDARD
    """Bytes of the datagram."""


@dataclass(slots=True)
class SentPing:
    """A ping without an answer."""

    to: Address | None
    at: float
    purpose: Purpose
    size: int


class OutstandingPings:
    """Oldest first. The transaction number is all that proves an answer, so it comes from the caller's randomness."""

    __slots__ = ("_random", "_sent")

    def __init__(self, random: Callable[[int], bytes]) -> None:
        self._random = random
        # In the order of sending, which a dictionary keeps: the first is the next to be lost.
        self._sent: dict[bytes, SentPing] = {}

    def begin(self, to: Address | None, now: float, purpose: Purpose, size: int) -> SendPing:
        """A new ping of `size` bytes, to be sent now; by relay when `to` is None."""
        tx = self._random(TX_SIZE)
        # The oldest has the least chance of an answer that still counts.
        if len(self._sent) >= MAX_OUTSTANDING:
            del self._sent[next(iter(self._sent))]
        self._sent[tx] = SentPing(to, now, purpose, size)
        return SendPing(to, tx, size)

    def take(self, tx: bytes) -> SentPing | None:
        """It was answered, or could not be sent; None: nobody asked."""
        # Once: a pong that arrives twice proves and measures nothing the second time.
        return self._sent.pop(tx, None)

    def forget_lost(self, now: float) -> None:
        """Drop what has waited for too long."""
        while self._sent:
            tx, sent = next(iter(self._sent.items()))
            if now < sent.at + PING_TIMEOUT:  # the very sum next_loss announced, or rounding would spin
                return
            del self._sent[tx]

    def next_loss(self) -> float | None:
        """When `forget_lost` has something to do."""
        return next(iter(self._sent.values())).at + PING_TIMEOUT if self._sent else None

    def clear(self) -> None:
        """Answers to what was asked before say nothing any more."""
        self._sent.clear()
