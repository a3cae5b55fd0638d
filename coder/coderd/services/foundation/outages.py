"""Work that must not be lost to an outage of the database."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

import trio

from coder.base.retry import Backoff
from coder.coderd.store.engine.database import TransactionId, fate_of, settling_doubts, transaction_id
from coder.coderd.store.engine.errors import DatabaseAwayError, OutcomeUnknownError

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Database, Tx

T = TypeVar("T")
P = ParamSpec("P")
FIRST_REST, LONGEST_REST = 0.1, 2.0
"""Seconds between tries."""
SETTLED_WITHIN = 20.0
"""Seconds, our own value, that an audited request waits to learn what became of its change: longer than a restart of a
database, shorter than a proxy's patience."""
__all__ = ["SETTLED_WITHIN", "run_once", "settling_doubts", "until_available"]


async def until_available(fn: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run `fn`, again after each outage of the database, until it returns, raises another error or is cancelled.

    `fn` may have taken effect before an outage was noticed, so a repetition must be harmless.
    """
    backoff = Backoff(FIRST_REST, LONGEST_REST)
    while True:
        try:
            return await fn(*args, **kwargs)
        except DatabaseAwayError:
            await trio.sleep(backoff.next_delay())


async def run_once(
    db: Database, fn: Callable[Concatenate[Tx, P], Awaitable[T]], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Run a transaction as `Database.run` does, but learn whether one in doubt took effect, and repeat it only if not.

    For work that its caller repeats after DatabaseAwayError, and whose repetition would write twice. It costs a
    statement more, 0.2 ms of processor time. Raises DatabaseAwayError when the transaction did not take effect, and
    OutcomeUnknownError when the database does not tell: a caller that repeats the work then may write twice.
    """
    done: list[tuple[T, TransactionId]] = []

    async def unit(tx: Tx) -> T:
        done.clear()
        result = await fn(tx, *args, **kwargs)
        done.append((result, await transaction_id(tx)))
        return result

    unit.__name__ = getattr(fn, "__name__", "work")  # observers count by it
    backoff = Backoff(FIRST_REST, LONGEST_REST)
    while True:
        try:
            return await db.run(unit)
        except DatabaseAwayError as error:
            if not error.in_doubt:
                raise
        result, number = done.pop()
        while True:
            fate = await until_available(db.read, fate_of, number)
            if fate == "committed":
                return result
            if fate == "aborted":
                break
            if fate == "unknown":
                raise OutcomeUnknownError
            await trio.sleep(backoff.next_delay())
