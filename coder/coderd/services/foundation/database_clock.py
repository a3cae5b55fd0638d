"""The clock of the database, which all servers of a deployment share.

Every time a server writes or compares comes from here: heartbeats of replicas, agents, provisioner daemons and
workspace proxies, deadlines, expiry. So servers whose own clocks differ still agree on what is alive. Between two
measurements the clock advances with this machine's monotonic clock; steps of its wall clock have no effect.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from coder.base.clock import Clock, SystemClock, seconds_since_boot
from coder.coderd.store.engine.database import Database
from coder.coderd.store.network.replicas import database_time

_DRIFT = 1e-4
"""Seconds that two clocks may diverge in a second; quartz stays below half of it."""
_FIRST_SAMPLES = 3


class DatabaseClock:
    """A clock that follows the database's. Before the first measurement it is the machine's own."""

    def __init__(self, own: Clock | None = None, elapsed: Callable[[], float] = seconds_since_boot) -> None:
        self._own = own or SystemClock()
        self._elapsed = elapsed
        self._measured: tuple[datetime, float, float] | None = None
        "Time of the database, this machine's elapsed seconds at that time, and the uncertainty in seconds."

    def now(self) -> datetime:
        """Return aware UTC time of the database."""
        if self._measured is None:
            return self._own.now()
        at, began, _ = self._measured
        return at + timedelta(seconds=self._elapsed() - began)

    def monotonic(self) -> float:
        """Return this machine's monotonic seconds."""
        return self._own.monotonic()

    def skew(self) -> float:
        """Return the seconds by which this machine's clock is ahead of the database's."""
        return (self._own.now() - self.now()).total_seconds()

    async def follow(self, database: Database) -> None:
        """Measure the database's clock. Raises DatabaseAwayError."""
        for _ in range(_FIRST_SAMPLES if self._measured is None else 1):
            began = self._elapsed()
            at = await database.read(database_time)
            ended, own = self._elapsed(), self._own.now()
            self.note(at, own, began, ended)

    def note(self, at: datetime, own: datetime, began: float, ended: float) -> None:
        """Take the answer `at` to a question that was sent at `began` and answered at `ended` (elapsed seconds), when
        the machine's clock was `own`.

        A slow answer says less than an earlier quick one and is ignored, unless they contradict each other: then one of
        the clocks was set. Clocks that agree within the uncertainty count as equal.
        """
        error = (ended - began) / 2
        time = at + timedelta(seconds=error)
        if abs((own - time).total_seconds()) <= error:
            time = own
        if self._measured is not None:
            then, since, known_error = self._measured
            age = ended - since
            known_error += age * _DRIFT
            difference = abs((time - then).total_seconds() - age)
            if error > known_error and difference <= error + known_error:
                return
        self._measured = (time, ended, error)


def skew_of(clock: Clock) -> float:
    """Return the seconds by which this machine's clock is ahead of a server's clock."""
    return clock.skew() if isinstance(clock, DatabaseClock) else 0.0
