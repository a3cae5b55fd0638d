"""Work that must not be lost to an outage of the database."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import ParamSpec, TypeVar

import trio

from coder.base.retry import Backoff
from coder.coderd.store.engine.errors import DatabaseAwayError

T = TypeVar("T")
P = ParamSpec("P")
FIRST_REST, LONGEST_REST = 0.1, 2.0
"""Seconds between tries."""


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
