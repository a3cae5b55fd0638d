"""Defending a busy responder: when to ask for cookies, and how many handshakes one source may cost.

Lives here: the gauge of all handshakes, the bucket per source.
Does not live here: cookies themselves (crypto/handshake_cookie.py).
Obeys: the WireGuard paper, section 5.3; rates as genuine peers have them (constants.py).
"""

from __future__ import annotations

from collections.abc import Hashable

from coder.mesh.core.tunnel.constants import (
    HANDSHAKE_BURST,
    HANDSHAKE_RATE,
    LIMIT_BURST,
    LIMIT_RATE,
    UNDER_LOAD_LINGER,
)


class LoadGauge:
    """Counts handshake messages; under load from the moment their bucket is empty until a second after."""

    __slots__ = ("_at", "_rate", "_room", "_size", "_until")

    def __init__(self, rate: float = HANDSHAKE_RATE, burst: float = HANDSHAKE_BURST) -> None:
        self._rate = rate
        self._size = burst
        self._room = burst
        self._at = 0.0
        self._until = 0.0

    def count(self, now: float) -> bool:
        """One more message; whether we are under load."""
        # A token bucket: what it holds is how many handshakes may still come before cookies are asked for.
        self._room = min(self._size, self._room + max(0.0, now - self._at) * self._rate)
        self._at = now
        if self._room < 1:
            # Lingering keeps the answer steady while a flood ebbs and swells around the limit.
            self._until = now + UNDER_LOAD_LINGER
        else:
            self._room -= 1
        return now < self._until


class SourceLimiter:
    """A bucket of five handshakes per source, refilled at 20/s. Only sources that proved themselves get here."""

    __slots__ = ("_buckets", "_swept")

    def __init__(self) -> None:
        self._buckets: dict[Hashable, tuple[float, float]] = {}
        self._swept = 0.0

    def allow(self, source: Hashable, now: float) -> bool:
        """Whether this source may have one more handshake."""
        if now - self._swept >= 1.0:
            self._sweep(now)
        # An unknown source begins with a full bucket: five at once are what a restart needs.
        room, at = self._buckets.get(source, (float(LIMIT_BURST), now))
        room = min(float(LIMIT_BURST), room + max(0.0, now - at) * LIMIT_RATE)
        allowed = room >= 1
        # Noted whether allowed or not: the refill counts from here.
        self._buckets[source] = (room - 1 if allowed else room, now)
        return allowed

    def _sweep(self, now: float) -> None:
        # After a second a bucket is full again, and forgetting it changes nothing.
        self._swept = now
        self._buckets = {s: b for s, b in self._buckets.items() if now - b[1] < 1.0}
