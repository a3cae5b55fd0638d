"""Delays between an agent's attempts to connect (docs/protocol/rpc.md#dialling-again)."""

from __future__ import annotations

import random

from coder.base.retry import SLOW_ATTEMPT, Backoff

FIRST_DELAY, LAST_DELAY = 0.1, 10.0
"Seconds between dials."
RETURN_DELAY, RETURN_WINDOW, RETURN_SHARE = 2.0, 60.0, 0.25
"""Seconds (ours). A server lost less than a minute ago is probably restarting and users wait for it, so dials are at
most two seconds apart at first, and then a quarter of the time since the loss. Later they grow to LAST_DELAY: all
agents of a server that is down or has no room dial it."""
JITTER = 0.5
"""Share by which each delay varies: agents that were lost together must not return together."""


class ReconnectDelays:
    """Growing delays, short after the loss of a server, and never shorter than the server requests."""

    def __init__(self) -> None:
        self._backoff = Backoff(FIRST_DELAY, LAST_DELAY, jitter=JITTER)
        self._lost_at = -RETURN_WINDOW

    def after(self, began: float, ended: float, *, was_served: bool, requested: float = 0.0) -> float:
        """Return the seconds until the next attempt, after one from `began` to `ended`. `was_served`: it connected;
        `requested` are the seconds of the server's `Retry-After`."""
        if was_served:
            self._lost_at = ended
        if was_served and ended - began > LAST_DELAY:
            self._backoff.reset()
        # A server that requests a time has answered, however late.
        attempt = 0.0 if was_served or requested else ended - began
        delay = self._backoff.next_delay(attempt)
        if ended - self._lost_at < RETURN_WINDOW and attempt < SLOW_ATTEMPT:
            longest = max(RETURN_DELAY, RETURN_SHARE * (ended - self._lost_at))
            delay = min(delay, longest * random.uniform(1 - JITTER, 1))
        return max(delay, requested)
