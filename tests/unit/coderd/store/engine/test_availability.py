"""Duration of an outage of the database, by a stopped clock."""

from __future__ import annotations

import ssl

import asyncpg
import pytest
from sqlalchemy.exc import DBAPIError

from coder.base.clock import FakeClock
from coder.base.errors import DATABASE_AWAY, find_outage
from coder.coderd.store.engine.availability import (
    Availability,
    DatabaseAwayError,
    means_temporary,
    means_unavailable,
)


def test_outage_counts_from_first_failure() -> None:
    clock = FakeClock()
    availability = Availability(clock.monotonic)
    assert availability.away_for() == 0
    availability.failed(OSError())
    clock.advance(4)
    availability.failed(OSError())
    clock.advance(4)
    assert availability.away_for() == 8
    availability.answered()
    assert availability.away_for() == 0


def test_unanswered_query_counts() -> None:
    clock = FakeClock()
    availability = Availability(clock.monotonic)
    availability.query_started()
    clock.advance(7)
    availability.query_started()
    assert availability.away_for() == 7
    clock.advance(1)
    availability.failed(TimeoutError())
    assert availability.away_for() == 8
    availability.answered()
    clock.advance(5)
    assert availability.away_for() == 0


def test_silence_is_an_outage() -> None:
    clock = FakeClock()
    availability = Availability(clock.monotonic)
    availability.query_started()
    clock.advance(10)
    availability.silent()
    clock.advance(40)
    assert availability.away_for() == 50
    availability.answered()
    clock.advance(5)
    assert (availability.away_for(), availability.reliable_for()) == (0, 5), "the time after it counts, not before"


def _wrapped(cause: Exception, *, invalidated: bool = False) -> DBAPIError:
    return DBAPIError("SELECT", {}, cause, connection_invalidated=invalidated)


@pytest.mark.parametrize(
    ("error", "away"),
    [
        (ConnectionRefusedError(), True),
        (TimeoutError(), True),
        (ssl.SSLCertVerificationError(), True),
        (asyncpg.CannotConnectNowError(), True),
        (asyncpg.InternalClientError(), True),
        (asyncpg.InterfaceError("connection is closed"), True),
        (asyncpg.InvalidPasswordError(), False),
        (asyncpg.exceptions._base.DataError("invalid input for query argument $1"), False),
        (asyncpg.TooManyConnectionsError(), False),
        (_wrapped(asyncpg.AdminShutdownError()), True),
        (_wrapped(asyncpg.CrashShutdownError()), True),
        (_wrapped(asyncpg.ConnectionDoesNotExistError()), True),
        (_wrapped(Exception(), invalidated=True), True),
        (_wrapped(asyncpg.UniqueViolationError()), False),
        (_wrapped(asyncpg.DiskFullError()), False),
    ],
)
def test_errors_distinguish_outage_and_refusal(error: Exception, away: bool) -> None:
    assert means_unavailable(error) is away


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (asyncpg.DiskFullError(), "the database has no room left on its disk"),
        (asyncpg.OutOfMemoryError(), "the database has no memory left"),
        (asyncpg.TooManyConnectionsError(), "the database accepts no more connections"),
        (asyncpg.InsufficientResourcesError(), "the database lacks a resource of its machine"),
        (asyncpg.LockNotAvailableError(), "the database is busy with other work"),
        (asyncpg.SerializationError(), "the database is busy with other work"),
        (asyncpg.QueryCanceledError(), "the database is busy with other work"),
        (asyncpg.exceptions.PostgresIOError(), "the database cannot read or write its disk"),
        (asyncpg.UniqueViolationError(), ""),
        (asyncpg.ConfigurationLimitExceededError(), ""),
    ],
)
def test_shortage_is_temporary_and_named(error: Exception, message: str) -> None:
    clock = FakeClock()
    availability = Availability(clock.monotonic)
    for raised in (error, _wrapped(error)):
        assert means_temporary(raised) is bool(message)
        if message:
            availability.failed(raised)
            assert DatabaseAwayError(raised).message == availability.shortage() == message
            assert find_outage(DatabaseAwayError(raised)) not in {"", DATABASE_AWAY}
    assert availability.away_for() == 0, "it answers"
    clock.advance(61)
    assert availability.shortage() == ""


def test_reliability_counts_from_last_failure() -> None:
    clock = FakeClock()
    availability = Availability(clock.monotonic)
    assert availability.reliable_for() == float("inf")
    for error in (OSError(), asyncpg.DiskFullError()):
        availability.failed(error)
        availability.answered()
        clock.advance(5)
        assert availability.reliable_for() == 5


def test_reason_stays_out_of_causes() -> None:
    reason = OSError("Connect call failed ('10.0.0.5', 5432)")
    error = DatabaseAwayError(reason)
    assert error.reason is reason and error.__cause__ is None and "10.0.0.5" not in str(error)
