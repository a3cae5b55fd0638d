"""Delays between attempts."""

from __future__ import annotations

import random


class Backoff:
    """Exponential delays in seconds from `first` up to `last`, each varied by up to `jitter` of itself.

    `next_delay` grows; `reset` starts again after a success.
    """

    def __init__(self, first: float, last: float, *, factor: float = 2.0, jitter: float = 0.1) -> None:
        self._first, self._last, self._factor, self._jitter = first, last, factor, jitter
        self._delay = first

    def next_delay(self) -> float:
        delay = self._delay
        self._delay = min(self._last, delay * self._factor)
        return max(0.0, delay * (1 + random.uniform(-self._jitter, self._jitter)))

    def record_connection(self, seconds: float) -> None:
        """Start again after a connection that was open longer than the next delay. One that ended sooner counts as a
        failed attempt: a proxy in between may accept connections for a server that is down."""
        if seconds > self._delay:
            self.reset()

    def reset(self) -> None:
        self._delay = self._first
