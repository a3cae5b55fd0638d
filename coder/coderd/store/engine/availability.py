"""Whether the database answers: what the work on it shows, and since when it has not answered.

Units of work and the listening connection report here; asking costs nothing, so that health probes may.
"""

from __future__ import annotations

from collections.abc import Callable

from asyncpg import InterfaceError, InternalClientError, PostgresError
from sqlalchemy.exc import DBAPIError

from coder.base.errors import CoderError
from coder.base.log import get_logger

_log = get_logger("database")


DRIVER_ERRORS = (OSError, DBAPIError, PostgresError, InterfaceError, InternalClientError)
"""What work on a database raises when that is not there; `means_away` tells which of them do not mean that."""
_BROKEN = (OSError, InterfaceError, InternalClientError)
"""Connecting failed (TimeoutError is an OSError), or the driver was in the middle of something when the connection
ended: then it finds itself in a state it does not know."""


class DatabaseAwayError(CoderError):
    """The database cannot be reached, or ended the connection.

    `reason` is what the driver said. It is kept out of the chain of causes: agents and users are told of those, and it
    names the address of the database.
    """

    def __init__(self, reason: Exception) -> None:
        super().__init__("database_away", "the database does not answer", "Try again in a moment.")
        self.reason = reason


class Availability:
    """Since when the database has not answered. `now` is a monotonic clock in seconds."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._asked: float | None = None
        self._away: float | None = None

    def asked(self) -> None:
        """Somebody waits for an answer: none at all tells as much as an error."""
        if self._asked is None:
            self._asked = self._now()

    def answered(self) -> None:
        if self._away is not None:
            _log.info("the database answers again", after_seconds=round(self._now() - self._away, 1))
        self._asked = self._away = None

    def failed(self, error: Exception) -> None:
        if self._away is None:
            self._away = self._now() if self._asked is None else self._asked
            _log.error("the database does not answer", error=error)

    def away_for(self) -> float:
        """Seconds; 0 as long as it answers."""
        began = self._asked if self._away is None else self._away
        return 0.0 if began is None else self._now() - began


def means_away(error: Exception) -> bool:
    """Whether the database was not there, rather than refused something.

    SQLSTATE class 08 is the connection; 57P01 to 57P03: it is shutting down, has crashed, is starting.
    """
    if isinstance(error, DBAPIError):
        return error.connection_invalidated or _is_state_of_absence(getattr(error.orig, "sqlstate", None))
    if isinstance(error, PostgresError):
        return _is_state_of_absence(error.sqlstate)
    # The driver says ValueError for what it was given: a value that no column takes is the caller's.
    return isinstance(error, _BROKEN) and not isinstance(error, ValueError)


def _is_state_of_absence(sqlstate: object) -> bool:
    return str(sqlstate or "").startswith(("08", "57P01", "57P02", "57P03"))
