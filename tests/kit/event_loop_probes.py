"""Probes of the event loop, counted because seconds depend on the machine.

`counted_turns` counts the turns that other tasks get, `watched` lists file calls made on the loop's thread (a slow disk
would block it), `no_threads` simulates a system that cannot start another thread.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from trio._core._thread_cache import THREAD_CACHE

from coder.base import threads

CALLS = frozenset(
    {
        "open",
        "os.chmod",
        "os.link",
        "os.listdir",
        "os.mkdir",
        "os.remove",
        "os.rename",
        "os.rmdir",
        "os.scandir",
        "os.symlink",
        "os.truncate",
        "os.utime",
    }
)
_watched: list[tuple[str, str]] = []
_thread: list[int] = []


def _hear(event: str, arguments: tuple[object, ...]) -> None:
    if _thread and event in CALLS and threading.get_ident() == _thread[0]:
        _watched.append((event, str(arguments[0])))


sys.addaudithook(_hear)  # for the life of the process: it listens where somebody watches


@contextmanager
def watched(folder: Path) -> Iterator[list[str]]:
    """Calls on files in the folder that this thread makes."""
    found: list[str] = []
    _watched.clear()
    _thread.append(threading.get_ident())
    try:
        yield found
    finally:
        _thread.clear()
        found += [event for event, path in _watched if str(folder) in path]


class Turns:
    """Of somebody who only waits for them."""

    def __init__(self) -> None:
        self.count = 0


@asynccontextmanager
async def counted_turns() -> AsyncIterator[Turns]:
    """Counts as long as the block runs."""
    turns = Turns()

    async def other() -> None:
        while True:
            await trio.lowlevel.checkpoint()
            turns.count += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(other)
        yield turns
        nursery.cancel_scope.cancel()


def peer_says(data: bytes) -> trio.StapledStream[Any, Any]:
    """All of it at the first question, as a socket whose buffer is full; what is sent is taken and dropped."""
    ours, _ = trio.testing.memory_stream_pair()
    ours.receive_stream.put_data(data)
    ours.receive_stream.put_eof()
    return ours


@contextmanager
def no_threads() -> Iterator[None]:
    """For the block, and for threads that are begun: those that run go on."""

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading.Thread, "start", threads._start)
        patch.setattr(threads, "_plain_start", refuse)
        patch.setattr(THREAD_CACHE, "_idle_workers", {})
        yield
