"""Waiting for commands without a thread each, and without complaints when the agent ends first."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest
import trio
import trio.testing

from coder.agent.platform.posix import wait_for_child
from tests.kit.event_loop_probes import no_threads

PROGRAM = """
import asyncio, trio, trio_asyncio
from coder.agent.ssh import child_wait

child_wait.install()

async def main():
    async with trio_asyncio.open_loop():
        child = await trio_asyncio.aio_as_trio(asyncio.create_subprocess_exec)("sleep", "0.4")
        print(child.pid)

trio.run(main)
import time
time.sleep(0.8)  # the child ends after the loop that started it
"""


@pytest.fixture(params=[True, False], ids=["pidfd", "without pidfd"])
def ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    if not request.param:

        def refuse(_pid: int) -> int:
            raise OSError(38, "Function not implemented")

        monkeypatch.setattr(os, "pidfd_open", refuse)
    return bool(request.param)


async def test_statuses_match_subprocess(ways: bool) -> None:
    before = set(threading.enumerate())
    child = subprocess.Popen(["sleep", "30"])
    async with trio.open_nursery() as nursery:
        statuses: list[int] = []

        async def wait() -> None:
            statuses.append(await wait_for_child(child.pid))

        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        if ways:
            assert set(threading.enumerate()) <= before, "no thread was started for it"
        os.kill(child.pid, signal.SIGTERM)
    assert statuses == [-signal.SIGTERM]
    child.returncode = -signal.SIGTERM  # reaped elsewhere
    quick = subprocess.Popen(["sh", "-c", "exit 7"])
    assert await wait_for_child(quick.pid) == 7
    quick.returncode = 7
    with pytest.raises(ChildProcessError):
        await wait_for_child(quick.pid)


async def test_thread_shortage_polls_child(ways: bool) -> None:
    with no_threads():
        child = subprocess.Popen(["sh", "-c", "read x; exit 7"], stdin=subprocess.PIPE)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_end_soon, child)
            child.returncode = await wait_for_child(child.pid)
        assert child.returncode == 7
        with pytest.raises(ChildProcessError):
            await wait_for_child(child.pid)


async def _end_soon(child: subprocess.Popen[bytes]) -> None:
    await trio.testing.wait_all_tasks_blocked()
    assert child.stdin is not None
    child.stdin.close()


def test_surviving_child_leaves_no_traceback() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=True)
    assert int(done.stdout) > 0
    assert done.stderr == ""
