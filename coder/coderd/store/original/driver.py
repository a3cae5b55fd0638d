"""The driver's untyped objects and its errors: the import uses connections of its own, for cursors and COPY."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from sqlalchemy.exc import DBAPIError

from coder.base.errors import CoderError
from coder.coderd.store.engine.availability import DRIVER_ERRORS

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Database

Connection: TypeAlias = Any
"""Connection of asyncpg."""
Cursor: TypeAlias = Any
"""Cursor of asyncpg."""
Value: TypeAlias = Any
"""Value of a column, of a type that the query decides."""
Values: TypeAlias = Sequence[Any]
"""Values of a row."""
T = TypeVar("T")

ERRORS = (*DRIVER_ERRORS, OverflowError)
"""Errors of a query and of its values."""
_HINTS = {
    "53100": "Free disk space of the database's server.",
    "42501": "Grant the right to the user of the URL, or use the owner of the database.",
    "25006": "Name a database that accepts writes, not a standby.",
    "22021": "A database with the encoding SQL_ASCII has a text that is not UTF-8: correct the text there.",
    "22P05": "Create the database with ENCODING 'UTF8' TEMPLATE template0.",
    "40001": "A standby cancels long queries: raise its max_standby_streaming_delay, or name the primary.",
}
"""Next steps by SQLSTATE."""
_LIMITS = [
    "statement_timeout",
    "idle_session_timeout",
    "idle_in_transaction_session_timeout",
    "transaction_timeout",
]
"""Limits of a session, which releases of PostgreSQL have in part."""
_AGAIN = "Then run the command again: an import that was interrupted continues."


async def connect(database: Database) -> Connection:
    """Open a connection with the settings of the database's URL and without limits of time: one side waits while the
    other one works. Raises the driver's errors."""
    connection = await database.connect(**database.connect_arguments)
    try:
        await connection.execute("SELECT set_config(name, '0', false) FROM pg_settings WHERE name = ANY($1)", _LIMITS)
        for name, value in database.session_settings.items():
            await connection.execute("SELECT set_config($1, $2, false)", name, value)
    except ERRORS:
        connection.terminate()
        raise
    return connection


async def call(database: Database, holder: str, make: Callable[[], Coroutine[None, None, T]]) -> T:
    """Run a coroutine on the database's loop. Raises CoderError `database_failed`, which names the `holder`."""
    try:
        return await database.call(make)
    except ERRORS as error:
        # The chain of causes shows the text of an OSError, which the message has already.
        raise failure(holder, error) from (None if isinstance(error, OSError) else error)


def failure(holder: str, error: Exception) -> CoderError:
    """Return the error for users; `holder` names the database."""
    cause: BaseException = error
    if isinstance(error, DBAPIError) and error.orig is not None:
        cause = error.orig.__cause__ or error.orig
    text = str(cause) or type(cause).__name__
    hint = _HINTS.get(str(getattr(cause, "sqlstate", "")), "Correct this.")
    return CoderError("database_failed", f"{holder} failed: {text}", f"{hint} {_AGAIN}")
