"""Availability of the database, from the results of the work on it.

Units of work and the listening connection report here; reading costs nothing, so health probes may.
"""

from __future__ import annotations

from collections.abc import Callable

from asyncpg import InterfaceError, InternalClientError, PostgresError
from sqlalchemy.exc import DBAPIError

from coder.base.errors import DATABASE_AWAY, CoderError
from coder.base.log import get_logger

_log = get_logger("database")


DRIVER_ERRORS = (OSError, DBAPIError, PostgresError, InterfaceError, InternalClientError)
"""Errors that work on a database raises when it is unavailable; `means_unavailable` excludes the ones with other
meanings."""
_BROKEN = (OSError, InterfaceError, InternalClientError)
"""Connecting failed (TimeoutError is an OSError), or the connection ended during an operation, which leaves the driver
in an unknown state."""


READ_ONLY = "25006"
"""SQLSTATE of a server that became a standby: we use no read-only transactions."""


class DatabaseAwayError(CoderError):
    """The database cannot be reached, or closed the connection.

    `reason` is the driver's message. It is kept out of the chain of causes: agents and users see those, and it contains
    the address of the database.
    """

    def __init__(self, reason: Exception) -> None:
        super().__init__(DATABASE_AWAY, "the database does not answer", "Try again in a moment.")
        self.reason = reason


class Availability:
    """Time since which the database has not answered. `now` is a monotonic clock in seconds."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._waiting_since: float | None = None
        self._away: float | None = None

    def query_started(self) -> None:
        """Record that a caller waits for an answer: silence counts like an error."""
        if self._waiting_since is None:
            self._waiting_since = self._now()

    def answered(self) -> None:
        if self._away is not None:
            _log.info("the database answers again", after_seconds=round(self._now() - self._away, 1))
        self._waiting_since = self._away = None

    def failed(self, error: Exception) -> None:
        if self._away is None:
            self._away = self._now() if self._waiting_since is None else self._waiting_since
            _log.error("the database does not answer", error=error)

    def away_for(self) -> float:
        """Return seconds; 0 as long as it answers."""
        began = self._waiting_since if self._away is None else self._away
        return 0.0 if began is None else self._now() - began


def means_unavailable(error: Exception) -> bool:
    """Return whether the database was unavailable, rather than refused a statement.

    SQLSTATE class 08 is the connection; 57P01 to 57P03: it is shutting down, has crashed, is starting; 25006: it is a
    standby.
    """
    if isinstance(error, DBAPIError):
        return error.connection_invalidated or _is_state_of_absence(getattr(error.orig, "sqlstate", None))
    if isinstance(error, PostgresError):
        return _is_state_of_absence(error.sqlstate)
    # The driver raises ValueError for arguments that no column takes: the caller's fault.
    return isinstance(error, _BROKEN) and not isinstance(error, ValueError)


def _is_state_of_absence(sqlstate: object) -> bool:
    return str(sqlstate or "").startswith(("08", "57P01", "57P02", "57P03", READ_ONLY))
