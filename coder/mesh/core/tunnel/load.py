"""Protection of a busy responder: when to require cookies, and the handshake rate per source.

Lives here: the load gauge of all handshakes, the bucket per source.
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
        """Count a message; return whether we are under load."""
        # A token bucket: its content is the number of handshakes before cookies are required.
        self._room = min(self._size, self._room + max(0.0, now - self._at) * self._rate)
        self._at = now
        if self._room < 1:
            # The delay keeps the answer stable while a flood varies around the limit.
            self._until = now + UNDER_LOAD_LINGER
        else:
            self._room -= 1
        return now < self._until


class SourceLimiter:
    """A bucket of five handshakes per source, refilled at 20/s. Only sources with a valid cookie get here."""

    __slots__ = ("_buckets", "_swept")

    def __init__(self) -> None:
        self._buckets: dict[Hashable, tuple[float, float]] = {}
        self._swept = 0.0

    def allow(self, source: Hashable, now: float) -> bool:
        """Return whether this source may have one more handshake."""
        if now - self._swept >= 1.0:
            self._sweep(now)
        # An unknown source starts with a full bucket: a restart needs five together.
        room, at = self._buckets.get(source, (float(LIMIT_BURST), now))
        room = min(float(LIMIT_BURST), room + max(0.0, now - at) * LIMIT_RATE)
        allowed = room >= 1
        # Recorded whether allowed or not: the refill counts from here.
        self._buckets[source] = (room - 1 if allowed else room, now)
        return allowed

    def _sweep(self, now: float) -> None:
        # After a second a bucket is full again, so forgetting it changes nothing.
        self._swept = now
        self._buckets = {s: b for s, b in self._buckets.items() if now - b[1] < 1.0}
