"""Whoever waits for a disk can go, and waits for few others."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
import trio

from coder.agent.disk import THREADS, on_disk
from coder.agent.reports import resources
from coder.agent.reports.volumes import read_volumes
from coder.agent.workspace.script_log import script_log
from tests.kit.threads import no_threads


async def test_whoever_waits_can_go_and_what_is_asked_goes_on() -> None:
    answer, answered = threading.Event(), threading.Event()

    def look() -> None:
        answer.wait(60)
        answered.set()

    limiter = trio.CapacityLimiter(1)
    with trio.move_on_after(0.05) as limit:
        await on_disk(look, limiter=limiter)
    assert limit.cancelled_caught
    assert limiter.borrowed_tokens == 1, "its thread is not free"
    assert await on_disk(threading.get_ident) != threading.get_ident()
    answer.set()
    assert await trio.to_thread.run_sync(answered.wait, 30)


async def test_what_a_look_raises_is_raised() -> None:
    def look(what: str) -> None:
        raise OSError(what)

    with pytest.raises(OSError, match="gone"):
        await on_disk(look, "gone")
    assert THREADS.limiter().borrowed_tokens == 0


async def test_no_room_for_a_thread_is_an_error_of_the_disk() -> None:
    def broken() -> None:
        raise RuntimeError("of the look")

    with pytest.raises(RuntimeError, match="of the look"):
        await on_disk(broken)
    with no_threads():
        with pytest.raises(OSError, match="no room"):
            await on_disk(threading.get_ident)
        assert THREADS.limiter().borrowed_tokens == 0
        assert not (await resources.read(True, ["/"])).HasField("memory")
        assert await read_volumes([Path("/")]) == {Path("/"): (None, None)}
        async with script_log(Path("/proc/none"), 100) as kept:
            kept.write(b"what a script says")
            await kept.keep_up()
