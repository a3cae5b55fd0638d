"""The lock without a turn of the scheduler: exclusive, in order, and cancellable."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from coder.base.threads import QuickLock


async def test_free_lock_takes_no_turn() -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(count)
        await trio.lowlevel.checkpoint()
        lock, before = QuickLock(), turns
        for _ in range(100):
            async with lock:
                assert lock.locked()
        assert turns == before
        assert not lock.locked()
        nursery.cancel_scope.cancel()


async def test_waiting_tasks_hold_it_in_order() -> None:
    lock, order = QuickLock(), list[str]()

    async def hold(name: str) -> None:
        async with lock:
            order.append(f"{name} in")
            await trio.lowlevel.checkpoint()
            order.append(f"{name} out")

    async with trio.open_nursery() as nursery:
        async with lock:
            for name in "abc":
                nursery.start_soon(hold, name)
                await trio.testing.wait_all_tasks_blocked()
        await hold("last")
    assert order == [f"{name} {way}" for name in ("a", "b", "c", "last") for way in ("in", "out")]


async def test_cancelled_task_takes_no_free_lock() -> None:
    lock = QuickLock()
    with trio.CancelScope() as scope:
        scope.cancel()
        async with lock:
            raise AssertionError("the lock was taken")
    assert scope.cancelled_caught and not lock.locked()


async def test_failure_inside_releases_it() -> None:
    lock = QuickLock()
    with pytest.raises(KeyError):
        async with lock:
            raise KeyError
    assert not lock.locked()
