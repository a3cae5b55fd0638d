"""Deferred work runs one item at a time and delays no response."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import trio
from trio.testing import wait_all_tasks_blocked

from coder.coderd.services.foundation.deferred_work import ITEM_TIMEOUT, MAX_ITEMS, DeferredWork


class _Log:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def error(self, _text: str, *, what: str, error: Exception) -> None:
        self.lines.append(f"{what}: {type(error).__name__}")


async def test_items_run_in_order(autojump_clock: trio.testing.MockClock) -> None:
    log, seen = _Log(), []

    async def note(number: int) -> None:
        seen.append(number)

    async def fail() -> None:
        raise LookupError

    async with trio.open_nursery() as nursery:
        deferred = DeferredWork(cast("Any", SimpleNamespace(nursery=nursery, log=log)))
        deferred.start(nursery)
        for number in range(3):
            await deferred.enqueue("a note", partial(note, number))
            await deferred.enqueue("a defect", fail)
        await deferred.enqueue("what hangs", trio.sleep_forever)
        await deferred.enqueue("a note", partial(note, 3))
        before = trio.current_time()
        await deferred.wait_until_done()
        assert seen == [0, 1, 2, 3] and trio.current_time() - before == ITEM_TIMEOUT
        nursery.cancel_scope.cancel()
    assert log.lines == ["a defect: LookupError"] * 3 + ["what hangs: TooSlowError"]


async def test_queue_is_bounded() -> None:
    goes_on, left = trio.Event(), 0

    async with trio.open_nursery() as nursery:
        deferred = DeferredWork(cast("Any", SimpleNamespace(nursery=nursery, log=_Log())))
        deferred.start(nursery)

        async def leave_all() -> None:
            nonlocal left
            for _ in range(MAX_ITEMS * 2):
                await deferred.enqueue("something", goes_on.wait)
                left += 1

        nursery.start_soon(leave_all)
        await wait_all_tasks_blocked()
        assert left == MAX_ITEMS + 1, "and one is running"
        goes_on.set()
        await wait_all_tasks_blocked()
        assert left == MAX_ITEMS * 2
        nursery.cancel_scope.cancel()


async def test_done_returns_after_a_cancellation(autojump_clock: trio.testing.MockClock) -> None:
    """A cancelled server does not wait for work that will not run."""
    async with trio.open_nursery() as outer, trio.open_nursery() as nursery:
        deferred = DeferredWork(cast("Any", SimpleNamespace(nursery=nursery, log=_Log())))
        deferred.start(nursery)
        await deferred.enqueue("what hangs", trio.sleep_forever)
        outer.start_soon(deferred.wait_until_done)
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    await deferred.wait_until_done()
    assert trio.current_time() < ITEM_TIMEOUT
