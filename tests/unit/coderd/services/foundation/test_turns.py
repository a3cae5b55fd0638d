"""Turns of many members by one timer."""

from __future__ import annotations

from collections import Counter

import pytest
import trio
import trio.testing

from coder.coderd.services.foundation.turns import FEW, HASTE, PACE, Turns


async def test_members_are_called_every_interval(autojump_clock: trio.testing.MockClock, nursery: trio.Nursery) -> None:
    called: list[tuple[str, float]] = []

    def act(member: str) -> bool:
        called.append((member, trio.current_time()))
        return len(called) < 5

    turns = Turns(10.0, act)
    nursery.start_soon(turns.run)
    turns.join("a")
    await trio.sleep(4)
    turns.join("b")
    await trio.sleep(100)
    assert [member for member, _ in called] == ["a", "b", "a", "b", "a", "b"]
    assert [at for _, at in called] == pytest.approx([10, 14, 20, 24, 30, 34])
    assert len(turns) == 0
    turns.join("c")  # after a pause without members
    await trio.sleep(10.01)
    assert called[-1] == ("c", pytest.approx(114))


async def test_turns_of_one_moment_share_a_wake(autojump_clock: trio.testing.MockClock, nursery: trio.Nursery) -> None:
    at: list[float] = []

    def act(_member: int) -> bool:
        at.append(trio.current_time())
        return False

    turns = Turns(1.0, act)
    nursery.start_soon(turns.run)
    for member in range(100):
        turns.join(member)
        await trio.sleep(PACE / 10)
    await trio.sleep(2)
    assert len(at) == 100
    assert len(set(at)) <= 12


async def test_standstill_makes_no_members_share_a_moment(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    members, interval, standstill = 10_000, 5.0, 2.0
    moments: Counter[float] = Counter()
    last: dict[int, float] = {}

    def act(member: int) -> bool:
        now = trio.current_time()
        moments[now] += 1
        last[member] = now
        return True

    turns = Turns(interval, act)
    for member in range(members):
        turns.join(member)
        if member % 20 == 19:
            await trio.sleep(interval * 20 / members)  # evenly spread
    autojump_clock.jump(standstill)
    nursery.start_soon(turns.run)
    await trio.sleep(4 * interval)
    average = members * PACE / interval
    assert max(moments.values()) <= max(FEW, HASTE * average + 1)
    assert len(last) == members
    assert trio.current_time() - min(last.values()) <= interval + 3 * PACE, "all are in time again"
