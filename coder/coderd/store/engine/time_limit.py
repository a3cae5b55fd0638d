"""The longest time that work on the database waits for an answer.

TCP notices a host that vanished (`TCP_DEFAULTS`). A proxy, a pooler or a frozen server keeps the connection alive and
never answers: without a limit here the work would hold its connection, and its caller, forever.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextvars import ContextVar
from typing import TYPE_CHECKING

from sqlalchemy import event

if TYPE_CHECKING:
    from sqlalchemy import Engine

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
        yield


def extend() -> None:
    """Begin the time of the next statement."""
    limit = _running.get()
    if limit is not None and not limit.expired():
        limit.reschedule(asyncio.get_running_loop().time() + ANSWER_TIMEOUT)


def watch_progress(engine: Engine) -> None:
    """Begin the time anew with each statement."""
    event.listen(engine, "before_cursor_execute", lambda *_statement: extend())
