"""One poll for all watchers."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from coder.agent.shared_poll import SharedPoll


class CountedPolls:
    def __init__(self) -> None:
        self.taken = 0
        self.at_once = 0

    async def __call__(self) -> int:
        self.at_once += 1
        assert self.at_once == 1
        await trio.sleep(1)
        self.at_once -= 1
        self.taken += 1
        return self.taken


async def test_waiter_gets_newer_poll(
    autojump_clock: trio.testing.MockClock,
) -> None:
    shared, looks, answers = SharedPoll[int](), CountedPolls(), list[int]()

    async def ask(delay: float) -> None:
        await trio.sleep(delay)
        answers.append(await shared.after(trio.current_time(), looks))

    with shared.watched():
        async with trio.open_nursery() as nursery:
            for delay in (0.0, 0.3, 0.5, 0.7):
                nursery.start_soon(ask, delay)
        assert answers == [1, 2, 2, 2]
        assert await shared.after(trio.current_time() - 5, looks) == 2, "fresh enough"
        assert await shared.after(trio.current_time() - 1, looks) == 3


async def test_last_watcher_clears_result(
    autojump_clock: trio.testing.MockClock,
) -> None:
    shared, looks = SharedPoll[int](), CountedPolls()
    with shared.watched():
        with trio.move_on_after(0.5):
            await shared.after(-1, looks)
        looks.at_once = 0
        assert await shared.after(-1, looks) == 1 and shared.watchers == 1
    assert shared.watchers == 0
    with shared.watched():
        assert await shared.after(-1, looks) == 2


async def test_failed_poll_is_retried() -> None:
    shared = SharedPoll[int]()

    async def fails() -> int:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await shared.after(-1, fails)
    assert await shared.after(-1, CountedPolls()) == 1
