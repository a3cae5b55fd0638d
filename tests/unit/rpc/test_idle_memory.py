"""What a session keeps while its peer is idle: a server has one for each of ten thousand agents."""

from __future__ import annotations

from typing import Any

import trio
import trio.testing

from coder.rpc import mux


def tasks(one: mux.Mux) -> list[str]:
    assert one._nursery is not None
    return sorted(task.name.rpartition(".")[2] for task in one._nursery.child_tasks)


async def test_idle_session_has_two_tasks(autojump_clock: trio.testing.MockClock) -> None:
    left, right = trio.testing.memory_stream_pair()
    async with mux.open_mux(left, client=True) as here, mux.open_mux(right, client=False, keepalive=False) as there:
        assert tasks(here) == ["_keep_alive", "_read", "_write"]
        assert tasks(there) == ["_read", "_write"]
        for _ in range(2):  # the second stream is watched as the first one was
            stream = await here.open_stream()
            await stream.send_all(b"x")
            other = await there.accept()
            assert "_watch_streams" in tasks(here)
            await stream.aclose()
            await other.aclose()
            await trio.sleep(10)
            assert tasks(here) == ["_keep_alive", "_read", "_write"]
            assert tasks(there) == ["_read", "_write"]


async def test_session_without_keepalive_stays_open(autojump_clock: trio.testing.MockClock) -> None:
    """Its owner decides when a peer is silent."""
    left, right = trio.testing.memory_stream_pair()
    async with mux.open_mux(left, client=False, keepalive=False) as session:
        answered: list[Any] = []
        session.start_ping(answered.append)
        await trio.sleep(1000)
        assert not session.is_closed and not answered
        await right.aclose()
        await session.wait_closed()
