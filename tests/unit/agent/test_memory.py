"""Freed memory returns to the system some time after an activity has ended, and only then."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from coder.agent import memory
from coder.agent.activity import Activity
from coder.mesh import node


async def test_ends_share_one_trim(monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock) -> None:
    given: list[float] = []
    monkeypatch.setattr(node, "release_freed_memory", lambda: given.append(trio.current_time()))
    activity = Activity()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(memory.trim_memory, activity)
        begun = trio.current_time()
        with activity.of("scripts"), activity.of("SSH connections"):
            await trio.sleep(3600)
        assert not given
        await trio.sleep(60)
        assert given == [pytest.approx(begun + 3600 + memory.SETTLE)]
        await trio.sleep(3600)
        assert len(given) == 1
        with activity.of("scripts"):
            pass
        await trio.sleep(60)
        assert len(given) == 2
        nursery.cancel_scope.cancel()


async def test_later_end_trims_again(monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock) -> None:
    given: list[float] = []
    monkeypatch.setattr(node, "release_freed_memory", lambda: given.append(trio.current_time()))
    activity = Activity()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(memory.trim_memory, activity)
        begun = trio.current_time()
        with activity.of("SSH connections"):
            with activity.of("scripts"):
                await trio.sleep(10)
            await trio.sleep(memory.SETTLE * 0.9)
        await trio.sleep(3600)
        assert given == [pytest.approx(begun + 10 + memory.SETTLE * times) for times in (1, 2)]
        nursery.cancel_scope.cancel()
