"""Delays between attempts and between periodic calls, and the time limit of an answer."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import trio

STALL = 1.0
"""Seconds (ours) by which a deadline must be late to show that this process, or its machine, stood still."""
SLOW_ATTEMPT, SLOW_REST = 5.0, 3.0
"""Seconds (ours) after which a failed attempt shows a busy peer rather than one that is away, and by which the rest
grows with each such attempt in a row: doubled from milliseconds, it would hardly be one beside such attempts."""
SECOND_LOOK = 2.0
"""Seconds (ours) in which a process that stood still may read what arrived meanwhile."""

SPREAD = 0.1
"""Share (ours) by which intervals of periodic calls vary."""


def spread(interval: float) -> float:
    """Return the seconds until the next of a client's periodic calls, `interval` on average.

    A server answers the calls of many clients together: in a batch, or after a pause. With equal intervals they would
    come together again, join others in their next batch, and never part.
    """
    return interval * random.uniform(1 - SPREAD, 1 + SPREAD)


class Backoff:
    """Exponential delays in seconds from `first` up to `last`, each varied by up to `jitter` of itself.

    `next_delay` grows; `reset` starts again after a success.
    """

    def __init__(self, first: float, last: float, *, factor: float = 2.0, jitter: float = 0.1) -> None:
        self._first, self._last, self._factor, self._jitter = first, last, factor, jitter
        self._delay = first
        self._slow_attempts = 0

    def next_delay(self, attempt: float = 0.0) -> float:
        """Return the delay after a failed attempt of so many seconds; 0 where its time says nothing about the peer."""
        self._slow_attempts = self._slow_attempts + 1 if attempt >= SLOW_ATTEMPT else 0
        delay = max(self._delay, min(self._slow_attempts * SLOW_REST, self._last))
        self._delay = min(self._last, self._delay * self._factor)
        return max(0.0, delay * (1 + random.uniform(-self._jitter, self._jitter)))

    def record_connection(self, seconds: float) -> None:
        """Start again after a connection that was open longer than the next delay. One that ended sooner counts as a
        failed attempt: a proxy in between may accept connections for a server that is down."""
        if seconds > self._delay:
            self.reset()

    def reset(self) -> None:
        self._delay = self._first


async def wait_answer(answered: trio.Event, timeout: float) -> bool:
    """Return whether `answered` was set within `timeout` seconds.

    A process that was suspended or starved finds its deadline expired and the answer unread, both at once. Without a
    second look it would blame the peer and close a good connection.
    """
    import trio  # not above: commands that only make requests load no event loop

    started = trio.current_time()
    with trio.move_on_after(timeout):
        await answered.wait()
    if not answered.is_set() and trio.current_time() - started >= timeout + STALL:
        with trio.move_on_after(SECOND_LOOK):
            await answered.wait()
    return answered.is_set()
