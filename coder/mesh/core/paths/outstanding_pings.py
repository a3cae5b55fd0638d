"""Outstanding pings of a peer, and their purposes.

Lives here: transaction numbers, and dropping pings without an answer. The meaning of an answer is probing.py's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from coder.mesh.core.paths.candidates import Address
from coder.mesh.core.paths.mtu import STANDARD

# docs/protocol/disco.md#receiving. After a later answer the current path length is unknown.
PING_TIMEOUT = 5.0
MAX_OUTSTANDING = 256
"""Ours: bounds the memory of pings in flight; more candidates than this are never pinged within one timeout."""
# As many as STUN has (RFC 8489 section 5): 96 random bits cannot be guessed without seeing the ping.
TX_SIZE = 12


class Purpose(NamedTuple):
    """Purpose of a ping."""

    heartbeat: bool = False
    token: int = 0
    """Token of the person or program that waits for this answer; not 0."""


@dataclass(frozen=True, slots=True)
class SendPing:
    """Send a disco ping; to a UDP address, or by relay when it is None."""

    to: Address | None
    tx: bytes
    # The whole datagram: paths and sockets count that. The payload is smaller by the envelope.
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
    """Oldest first. Only the transaction number proves an answer, so it comes from the caller's randomness."""

    __slots__ = ("_random", "_sent")

    def __init__(self, random: Callable[[int], bytes]) -> None:
        self._random = random
        # In the order of sending, which a dictionary keeps: the first is the next to expire.
        self._sent: dict[bytes, SentPing] = {}

    def begin(self, to: Address | None, now: float, purpose: Purpose, size: int) -> SendPing:
        """Record and return a new ping of `size` bytes, to be sent now; by relay when `to` is None."""
        tx = self._random(TX_SIZE)
        # The oldest is the least likely to get an answer that still counts.
        if len(self._sent) >= MAX_OUTSTANDING:
            del self._sent[next(iter(self._sent))]
        self._sent[tx] = SentPing(to, now, purpose, size)
        return SendPing(to, tx, size)

    def take(self, tx: bytes) -> SentPing | None:
        """Remove and return a ping that was answered or could not be sent; None: there is no such ping."""
        # Only once: a duplicate pong proves and measures nothing.
        return self._sent.pop(tx, None)

    def forget_lost(self, now: float) -> None:
        """Drop expired pings."""
        while self._sent:
            tx, sent = next(iter(self._sent.items()))
            if now < sent.at + PING_TIMEOUT:  # the same sum that next_loss announced, or rounding would spin
                return
            del self._sent[tx]

    def next_loss(self) -> float | None:
        """Return when the oldest ping expires."""
        return next(iter(self._sent.values())).at + PING_TIMEOUT if self._sent else None

    def clear(self) -> None:
        """Drop all pings: answers to them say nothing any more."""
        self._sent.clear()
