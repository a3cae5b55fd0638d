"""Availability of the database, from the results of the work on it.

Units of work and the listening connection report here; reading costs nothing, so health probes may. A database that is
away answers nothing. One with a shortage (a full disk, no memory, no descriptors) answers, and refuses some of the
work. Both are temporary, so callers repeat their work, but only the first takes the server out of a load balancer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from ssl import SSLCertVerificationError
from types import MappingProxyType

from asyncpg import InterfaceError, InternalClientError, PostgresError
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from coder.base.errors import DATABASE_AWAY, DATABASE_BUSY, DATABASE_DENIES, DATABASE_FULL, DATABASE_OUTAGES, CoderError
from coder.base.log import LogValue, get_logger

_log = get_logger("database")


DRIVER_ERRORS = (OSError, DBAPIError, PostgresError, InterfaceError, InternalClientError, PoolTimeoutError)
"""Errors that work on a database raises when it is unavailable; `means_unavailable` excludes the ones with other
meanings."""
_BROKEN = (OSError, InterfaceError, InternalClientError, PoolTimeoutError)
"""Connecting failed (TimeoutError is an OSError), or the connection ended during an operation, which leaves the driver
in an unknown state; or all connections wait for answers."""


READ_ONLY = "25006"
"""SQLSTATE of a server that became a standby, or of `default_transaction_read_only`: we use no read-only
transactions."""


SHORTAGES: Mapping[str, str] = MappingProxyType(
    {
        "53000": "database_resources",
        "53100": DATABASE_FULL,
        "53200": "database_memory",
        "53300": "database_connections",
        "40001": DATABASE_BUSY,
        "40P01": DATABASE_BUSY,
        "55P03": DATABASE_BUSY,
        "57014": DATABASE_BUSY,
        "58030": "database_disk",
        READ_ONLY: "database_read_only",
        "28000": DATABASE_DENIES,
        "28P01": DATABASE_DENIES,
        "3D000": DATABASE_DENIES,
        "42501": DATABASE_DENIES,
    }
)
"""SQLSTATE -> code of the failure. 53000 is, among others, a machine without free file descriptors. 53400, a limit of
the configuration, is not temporary. 40001 and 40P01 are conflicts that outlasted the repetitions; 55P03 and 57014 come
from `lock_timeout` and `statement_timeout`, which an administrator may set. 58030 is EIO. The last five are what an
administrator changes while the server runs: the account's sign-in, password and rights, the database's name."""
_NO_LOGIN = frozenset({"28000", "28P01", "3D000"})
"""SQLSTATEs of refused connections: no work is possible, perhaps of this replica only, whose password is an old one."""
SILENT_AFTER = 10.0
"""Seconds without an answer after which the database counts as away: it may be frozen, or the network drops packets."""
_SHORTAGE_SHOWN = 60.0
"""Seconds for which a shortage counts after the last refusal: the work that it concerns may be rare."""
_HINTS = MappingProxyType({DATABASE_FULL: "Ask the administrator to free some space."})
_HINT = "Try again in a moment."
_DOUBT = "The change may have been made: look before you try again."


class DatabaseAwayError(CoderError):
    """The database cannot be reached, closed the connection, or lacks a resource that the work needs.

    `reason` is the driver's message. It is kept out of the chain of causes: agents and users see those, and it contains
    the address of the database.
    """

    def __init__(self, reason: Exception, *, in_doubt: bool = False) -> None:
        code = shortage_of(reason) or DATABASE_AWAY
        hint = _DOUBT if in_doubt else _HINTS.get(code, _HINT)
        super().__init__(code, f"the database {DATABASE_OUTAGES[code]}", hint)
        self.reason = reason
        self.in_doubt = in_doubt
        """Whether the answer to the commit was lost, so that the changes may have been made."""


class Availability:
    """Time since which the database has not answered, and what it lacks. `now` is a monotonic clock in seconds."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._waiting_since: float | None = None
        self._away: float | None = None
        self._shortage, self._short_at = "", 0.0
        self._last_failure: float | None = None

    def query_started(self) -> None:
        """Record that a caller waits for an answer: silence counts like an error."""
        if self._waiting_since is None:
            self._waiting_since = self._now()

    def silent(self) -> None:
        """Record that a caller has waited for `SILENT_AFTER`; it still waits."""
        self._last_failure = self._now()
        self._went_away(cause=f"no answer for {SILENT_AFTER:.0f} s")

    def answered(self) -> None:
        if self._away is not None:
            self._last_failure = self._now()
            _log.info("the database answers again", after_seconds=round(self._now() - self._away, 1))
        self._waiting_since = self._away = None

    def failed(self, error: Exception) -> None:
        """Record an outage or, where the error means one, a shortage."""
        self._last_failure = self._now()
        if shortage := shortage_of(error):
            self._refused(f"the database {DATABASE_OUTAGES[shortage]}", error)
        if not shortage or sqlstate_of(error) in _NO_LOGIN:
            self._went_away(error=error)

    def _went_away(self, **cause: LogValue) -> None:
        if self._away is None:
            self._away = self._now() if self._waiting_since is None else self._waiting_since
            _log.error("the database does not answer", **cause)

    def _refused(self, shortage: str, error: Exception) -> None:
        if self.shortage() != shortage:
            _log.error("the database refuses work", cause=shortage, error=error)
        self._shortage, self._short_at = shortage, self._now()

    def shortage(self) -> str:
        """Return what the database lacked in the last minute, as a sentence; empty without a refusal."""
        return self._shortage if self._shortage and self._now() - self._short_at < _SHORTAGE_SHOWN else ""

    def reliable_for(self) -> float:
        """Return the seconds since the last failure or refusal, or the end of the last outage; infinity without one."""
        return float("inf") if self._last_failure is None else self._now() - self._last_failure

    def away_for(self) -> float:
        """Return seconds; 0 as long as it answers."""
        began = self._waiting_since if self._away is None else self._away
        return 0.0 if began is None else self._now() - began


def shortage_of(error: Exception) -> str:
    """Return the code of what the database lacked; empty when it lacked nothing."""
    return SHORTAGES.get(sqlstate_of(error), "")


def means_temporary(error: Exception) -> bool:
    """Return whether the database was unavailable or lacked a resource, so that a repetition may succeed."""
    return bool(shortage_of(error)) or means_unavailable(error)


def sqlstate_of(error: Exception) -> str:
    """Return the SQLSTATE of a driver's error; empty without one."""
    source = error.orig if isinstance(error, DBAPIError) else error
    return str(getattr(source, "sqlstate", None) or "")


def means_unavailable(error: Exception) -> bool:
    """Return whether the database was unavailable, rather than refused a statement.

    SQLSTATE class 08 is the connection; 57P01 to 57P03: it is shutting down, has crashed, is starting. 57P05, 25P03 and
    25P04: it closed the session after a timeout that an administrator set.
    """
    if isinstance(error, DBAPIError):
        return error.connection_invalidated or _is_state_of_absence(sqlstate_of(error))
    if isinstance(error, PostgresError):
        return _is_state_of_absence(sqlstate_of(error))
    if isinstance(error, SSLCertVerificationError):  # a ValueError as well; an administrator can renew the certificate
        return True
    # The driver raises ValueError for arguments that no column takes: the caller's fault.
    return isinstance(error, _BROKEN) and not isinstance(error, ValueError)


def _is_state_of_absence(sqlstate: str) -> bool:
    return sqlstate.startswith(("08", "57P01", "57P02", "57P03", "57P05", "25P03", "25P04"))
