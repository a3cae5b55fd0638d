"""Failing connections and their listener."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
import trio.testing

import coder.agent
from coder.agent.failure_isolation import isolate_failures

FAILURES = [ValueError("x"), RecursionError(), AssertionError(), ExceptionGroup("two", [OSError(5, "I/O error")])]


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: type(failure).__name__)
async def test_failed_connection_is_closed(failure: Exception) -> None:
    failures: list[Exception] = [failure]

    async def serve(stream: trio.abc.Stream) -> None:
        if failures:
            raise failures.pop()
        await stream.send_all(b"served")

    async with trio.open_nursery() as nursery:
        for expected in (b"", b"served"):
            near, far = trio.testing.memory_stream_pair()
            nursery.start_soon(isolate_failures(serve), far)
            assert await near.receive_some() == expected


async def test_cancellation_passes() -> None:
    near, far = trio.testing.memory_stream_pair()
    with trio.move_on_after(0) as scope:
        await isolate_failures(lambda _stream: trio.sleep_forever())(far)
    assert scope.cancelled_caught
    await near.aclose()


def test_every_listener_isolates_failures() -> None:
    folder = Path(coder.agent.__path__[0])
    texts = {path.name: path.read_text() for path in folder.rglob("*.py")}
    listening = {name for name, text in texts.items() if "serve_tcp" in text or "serve_listeners" in text}
    assert len(listening) >= 3
    assert {name for name in listening if "isolate_failures(" not in texts[name]} == set()
