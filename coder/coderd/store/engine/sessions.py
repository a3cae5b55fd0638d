"""Database sessions: a connection pooler that shares them by the transaction is refused, and work has a longest time.

TCP notices a host that vanished (`TCP_DEFAULTS`). A proxy, a pooler or a frozen server keeps the connection alive and
never answers: without a limit here the work would hold its connection, and its caller, forever.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from asyncpg.exceptions import (
    DuplicatePreparedStatementError,
    InvalidSQLStatementNameError,
    PostgresError,
    ReadOnlySQLTransactionError,
)
from sqlalchemy import event

from coder.base.errors import CoderError
from coder.coderd.store.engine.new_connections import Connector

if TYPE_CHECKING:
    from sqlalchemy import Engine

OLDEST = 13
"""Major version of the oldest PostgreSQL that has every function of the schema; also the original's minimum."""
_TIMEOUT = 10.0
"""Seconds to connect for the check, to a single host."""
_SHARED_TIMEOUT = 2.0
"""Seconds until a statement that waits for another client's transaction proves that they share a session."""
_SIGNS_OF_SHARING = (DuplicatePreparedStatementError, InvalidSQLStatementNameError)
"""Errors of a driver whose statements reach different sessions."""
_STATEMENT_MODE = "statement pooling mode"
"""Part of PgBouncer's refusal of BEGIN."""


async def require_own_sessions(arguments: Mapping[str, Any]) -> None:
    """Require that a connection keeps its session: prepared statements and LISTEN depend on it.

    Two connections that are open together never have one server process, unless a pooler assigns processes by the
    transaction. A PostgreSQL that is too old, or accepts no changes, is refused as well. Raises CoderError
    `database_pooled`, `database_unsuited`, and the errors of connecting.
    """
    if await _are_sessions_shared(arguments):
        raise CoderError(
            "database_pooled",
            "the database is behind a connection pooler in transaction mode, which loses prepared statements and "
            "notifications",
            "Set pool_mode = session for this database in PgBouncer, or name PostgreSQL itself in --postgres-url.",
        )


def _require_version(version: tuple[int, ...]) -> None:
    if version[0] < OLDEST:
        raise CoderError(
            "database_unsuited",
            f"the database is PostgreSQL {version[0]}, and this server needs {OLDEST} or newer",
            "Upgrade PostgreSQL, or name another server in --postgres-url.",
        )


async def _are_sessions_shared(arguments: Mapping[str, Any]) -> bool:
    options = {"only_host_timeout": _TIMEOUT, **arguments, "statement_cache_size": 0}
    async with contextlib.AsyncExitStack() as stack:
        first, second = [await _connect(stack, options) for _ in range(2)]
        _require_version(first.get_server_version())
        if await first.fetchval("SELECT current_setting('transaction_read_only')") == "on":
            raise ReadOnlySQLTransactionError("transactions are read-only")
        try:
            process = await first.fetchval("SELECT pg_backend_pid()")
            await second.execute("BEGIN")  # holds the process it gets
            if await second.fetchval("SELECT pg_backend_pid()") == process:
                return True
            return bool(await first.fetchval("SELECT pg_backend_pid()", timeout=_SHARED_TIMEOUT) != process)
        except (*_SIGNS_OF_SHARING, TimeoutError):
            return True
        except (PostgresError, OSError) as error:
            if _STATEMENT_MODE in str(error):
                return True
            raise


async def _connect(stack: contextlib.AsyncExitStack, options: Mapping[str, Any]) -> Any:
    connection: Any = await Connector()(**options)
    stack.callback(connection.terminate)
    return connection


ANSWER_TIMEOUT = 60.0
"""Seconds for a connection and the first statement, and for each statement after it. Locks are waited for, and a busy
machine takes some of them. Afterwards the connection is closed."""

_running: ContextVar[asyncio.Timeout | None] = ContextVar("database_time_limit", default=None)
"""The limit of the unit of work, each of which is a task of its own."""


@contextlib.asynccontextmanager
async def limited() -> AsyncIterator[None]:
    """Raise TimeoutError when the block waits for the database for too long."""
    async with asyncio.timeout(ANSWER_TIMEOUT) as limit:
        _running.set(limit)
        try:
            yield
        finally:
            _running.set(None)  # it refers to the task, which has this context: only the collector would free the two


def extend() -> None:
    """Begin the time of the next statement."""
    limit = _running.get()
    if limit is not None and not limit.expired():
        limit.reschedule(asyncio.get_running_loop().time() + ANSWER_TIMEOUT)


def watch_progress(engine: Engine) -> None:
    """Begin the time of each statement when it is sent."""
    event.listen(engine, "before_cursor_execute", lambda *_statement: extend())
