"""Writes of many tasks, in one transaction for all that wait.

Thousands of agents report at the same intervals. A transaction of its own for each report costs more than the report.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

import trio
from outcome import Error, Outcome, Value

from coder.coderd.services.foundation.outages import run_once
from coder.coderd.store.engine.errors import DatabaseAwayError, OutcomeUnknownError

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

Item = TypeVar("Item")
Result = TypeVar("Result")

SPACING = 1.0
"""Seconds, our own value, from the start of a batch to the start of the next: the most that an item waits."""
MAX_ITEMS = 1000
"""Items of a batch, our own value."""
PIECE = 50
"""Results, our own value, after which other tasks have their turn: each wakes a task that answers an agent."""


@dataclass(slots=True)
class _Waiting(Generic[Item, Result]):
    item: Item
    finish: Callable[[Outcome[Result]], None]


class Batch(Generic[Item, Result]):
    """Items that wait for their common transaction.

    An item that arrives after a pause is written immediately, later ones at most once per `SPACING` times `spacing`.
    `write` returns one result for each item, in order. When it fails for several items, each is written alone, so that
    an item that cannot be written fails no other.
    """

    def __init__(
        self,
        ctx: Context,
        write: Callable[[Tx, Sequence[Item]], Awaitable[Sequence[Result]]],
        *,
        spacing: float = 1.0,
        max_items: int = MAX_ITEMS,
    ) -> None:
        self._ctx = ctx
        self._write = write
        self._spacing = spacing
        "In units of `SPACING`."
        self._max_items = max_items
        self._waiting: list[_Waiting[Item, Result]] = []
        self._running = False
        self._next_start = 0.0

    async def add(self, item: Item) -> Result:
        """Write `item` with the next batch and return its result. Raises what the transaction raised."""
        done = trio.Event()
        outcomes: list[Outcome[Result]] = []

        def finish(outcome: Outcome[Result]) -> None:
            outcomes.append(outcome)
            done.set()

        self.submit(item, finish)
        await done.wait()
        return outcomes.pop().unwrap()

    def submit(self, item: Item, finish: Callable[[Outcome[Result]], None]) -> None:
        """Write `item` with the next batch without waiting: `finish` gets its result, or what the transaction raised.
        `finish` must not raise."""
        self._waiting.append(_Waiting(item, finish))
        if not self._running:
            self._running = True
            self._ctx.nursery.start_soon(self._run)

    async def _run(self) -> None:
        try:
            while self._waiting:
                await trio.sleep_until(self._next_start)
                self._next_start = trio.current_time() + SPACING * self._spacing
                batch, self._waiting = self._waiting[: self._max_items], self._waiting[self._max_items :]
                await self._write_all(batch)
        finally:
            self._running = False

    async def _write_all(self, batch: Sequence[_Waiting[Item, Result]]) -> None:
        try:
            # Agents repeat a report after an outage: lines and statistics would be stored twice.
            results = await run_once(self._ctx.db, self._write, [waiting.item for waiting in batch])
        except (DatabaseAwayError, OutcomeUnknownError) as error:
            _fail(batch, error)
        except Exception as error:
            if len(batch) == 1:
                _fail(batch, error)
                return
            for waiting in batch:
                await self._write_all([waiting])
        else:
            for number, (waiting, result) in enumerate(zip(batch, results, strict=True), 1):
                waiting.finish(Value(result))
                if number % PIECE == 0:
                    await trio.lowlevel.checkpoint()


def _fail(batch: Sequence[_Waiting[Item, Result]], error: Exception) -> None:
    for waiting in batch:
        # Each task raises an exception of its own: a shared one would collect the traceback of every task.
        own = error
        if isinstance(error, DatabaseAwayError):
            own = DatabaseAwayError(error.reason, in_doubt=error.in_doubt)
        elif isinstance(error, OutcomeUnknownError):
            own = OutcomeUnknownError()
        waiting.finish(Error(own))
