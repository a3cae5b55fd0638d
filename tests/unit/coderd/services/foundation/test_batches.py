"""Batches of writes: order, spacing, errors of single items."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import trio
import trio.testing

from coder.coderd.services.foundation import batches
from coder.coderd.services.foundation.batches import MAX_ITEMS, PIECE, Batch
from coder.coderd.store.engine.errors import DatabaseAwayError, OutcomeUnknownError

SPACING = 1.0


@pytest.fixture(autouse=True)
def spacing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the product's spacing: tests/kit/server/server_in_process.py has none."""
    monkeypatch.setattr(batches, "SPACING", SPACING)


class Database:
    """Records batches; an item that is an exception fails its transaction."""

    def __init__(self) -> None:
        self.batches: list[tuple[float, list[Any]]] = []
        self.is_away = self.is_silent = False

    async def run(self, fn: Any, *args: Any) -> Any:
        await trio.lowlevel.checkpoint()
        if self.is_away:
            raise DatabaseAwayError(OSError("refused"))
        result = await fn(self, *args)
        if self.is_silent:
            raise DatabaseAwayError(OSError("reset"), in_doubt=True)
        return result

    async def read(self, _fn: Any, *_args: Any) -> str:
        await trio.lowlevel.checkpoint()
        return "unknown"

    async def execute(self, _statement: Any) -> Any:
        return SimpleNamespace(one=lambda: ("1", None, None))  # the transaction's id

    async def write(self, _tx: Any, items: Sequence[Any]) -> list[Any]:
        self.batches.append((trio.current_time(), list(items)))
        for item in items:
            if isinstance(item, Exception):
                raise item
        return [item * 10 for item in items]


def batch_of(database: Database, nursery: trio.Nursery) -> Batch[Any, Any]:
    return Batch(SimpleNamespace(db=database, nursery=nursery), database.write)  # type: ignore[arg-type]


async def add_all(batch: Batch[Any, Any], items: Sequence[Any]) -> dict[Any, Any]:
    results: dict[Any, Any] = {}

    async def add(item: Any) -> None:
        try:
            results[item] = await batch.add(item)
        except Exception as error:
            results[item] = error

    async with trio.open_nursery() as nursery:
        for item in items:
            nursery.start_soon(add, item)
    return results


async def test_batch_joins_waiting_items(autojump_clock: trio.testing.MockClock) -> None:
    database = Database()
    async with trio.open_nursery() as nursery:
        batch = batch_of(database, nursery)
        assert await batch.add(1) == 10
        assert trio.current_time() == 0, "the first item does not wait"
        assert await add_all(batch, range(2, 60)) == {item: item * 10 for item in range(2, 60)}
        assert [(at, sorted(items)) for at, items in database.batches] == [(0, [1]), (SPACING, list(range(2, 60)))]
        await trio.sleep(5)
        started = trio.current_time()
        await batch.add(7)
        assert trio.current_time() == started, "nor does one after a pause"


async def test_batch_size_is_bounded(autojump_clock: trio.testing.MockClock) -> None:
    database = Database()
    async with trio.open_nursery() as nursery:
        await add_all(batch_of(database, nursery), range(2 * MAX_ITEMS + 1))
    assert [len(items) for _, items in database.batches] == [MAX_ITEMS, MAX_ITEMS, 1]


async def test_bad_item_fails_alone(autojump_clock: trio.testing.MockClock) -> None:
    database, bad = Database(), ValueError("no such agent")
    async with trio.open_nursery() as nursery:
        results = await add_all(batch_of(database, nursery), [1, bad, 2])
    assert results == {1: 10, bad: bad, 2: 20}


async def test_absent_database_fails_batch(autojump_clock: trio.testing.MockClock) -> None:
    database = Database()
    async with trio.open_nursery() as nursery:
        batch = batch_of(database, nursery)
        database.is_away = True
        results = await add_all(batch, [1, 2])
        assert all(isinstance(error, DatabaseAwayError) for error in results.values())
        assert results[1] is not results[2], "a shared exception would collect the tracebacks of all tasks"
        database.is_away = False
        assert await batch.add(3) == 30


async def test_batch_of_unknown_outcome_is_not_repeated(autojump_clock: trio.testing.MockClock) -> None:
    database = Database()
    database.is_silent = True
    async with trio.open_nursery() as nursery:
        batch = batch_of(database, nursery)
        results = await add_all(batch, [1, 2])
        results |= await add_all(batch, [3, 4])
    assert all(isinstance(error, OutcomeUnknownError) for error in results.values())
    assert len({id(error) for error in results.values()}) == 4
    assert sorted(item for _, items in database.batches for item in items) == [1, 2, 3, 4]


async def test_cancelled_item_is_written(autojump_clock: trio.testing.MockClock) -> None:
    database = Database()
    async with trio.open_nursery() as nursery:
        batch = batch_of(database, nursery)
        await batch.add(1)
        with trio.move_on_after(SPACING / 2) as scope:
            await batch.add(2)
        assert scope.cancelled_caught
        assert await batch.add(3) == 30
    assert database.batches[-1] == (pytest.approx(SPACING), [2, 3])


async def test_results_leave_turns_to_other_tasks(autojump_clock: trio.testing.MockClock) -> None:
    finished, most = 0, 0

    async def watch() -> None:
        nonlocal most
        while True:
            before = finished
            await trio.lowlevel.checkpoint()
            most = max(most, finished - before)

    def finish(_outcome: object) -> None:
        nonlocal finished
        finished += 1
        if finished == MAX_ITEMS:
            nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        batch = batch_of(Database(), nursery)
        for item in range(MAX_ITEMS):
            batch.submit(item, finish)
        nursery.start_soon(watch)
    assert finished == MAX_ITEMS
    assert most <= 2 * PIECE  # trio shuffles the tasks of a turn: one may run last in it and first in the next
