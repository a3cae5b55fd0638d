"""Waiting for a disk can be cancelled, and blocks few others."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
import trio

from coder.agent.disk import MAX_FOLDERS, THREADS, FolderThreads, OpenDescriptor, Threads, on_disk
from coder.agent.reports import resources
from coder.agent.reports.flight_file import FlightFile
from coder.agent.reports.volumes import read_volumes
from coder.agent.workspace.script_log import script_log
from tests.kit.event_loop_probes import no_threads


async def test_cancelled_access_continues() -> None:
    answer, answered = threading.Event(), threading.Event()

    def access() -> None:
        answer.wait(60)
        answered.set()

    limiter = trio.CapacityLimiter(1)
    with trio.move_on_after(0.05) as limit:
        await on_disk(access, limiter=limiter)
    assert limit.cancelled_caught
    assert limiter.borrowed_tokens == 1, "its thread is not free"
    assert await on_disk(threading.get_ident) != threading.get_ident()
    answer.set()
    assert await trio.to_thread.run_sync(answered.wait, 60)


async def test_errors_are_raised() -> None:
    def access(what: str) -> None:
        raise OSError(what)

    with pytest.raises(OSError, match="gone"):
        await on_disk(access, "gone")
    assert THREADS.limiter().borrowed_tokens == 0


def test_dropped_descriptor_is_closed_once(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for kind in (OpenDescriptor, FlightFile):
        held = kind(os.open(path, os.O_RDWR | os.O_CREAT))
        number = held.descriptor
        held.close()
        other = os.open(path, os.O_RDONLY)
        assert other == number, "its number belongs to another file now"
        held.close()
        del held
        os.fstat(other)
        os.close(other)
        held = kind(os.open(path, os.O_RDWR))
        number = held.descriptor
        del held
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(number)


async def test_thread_shortage_is_os_error() -> None:
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
            await kept.wait_for_room()


def test_surviving_thread_frees_its_token() -> None:
    """A limiter of the process never got its token back."""
    threads, answer = Threads(1), threading.Event()

    async def leave_thread() -> None:
        with trio.move_on_after(0.05):
            await on_disk(answer.wait, limiter=threads)
        assert threads.limiter().borrowed_tokens == 1

    async def next_run() -> int:
        with trio.fail_after(60):
            return await on_disk(lambda: 7, limiter=threads)

    try:
        trio.run(leave_thread)
        assert trio.run(next_run) == 7
    finally:
        answer.set()


async def test_idle_folders_are_dropped() -> None:
    threads = FolderThreads(1)
    silent = threads.of(Path("/silent"))
    silent.acquire_on_behalf_of_nowait("a look")
    for number in range(3 * MAX_FOLDERS):
        threads.of(Path(f"/{number}"))
    assert len(threads._run.get()) <= MAX_FOLDERS
    assert threads.of(Path("/silent")) is silent
    silent.release_on_behalf_of("a look")
