"""Children known by their pid alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
import trio
import trio.testing

from coder.agent.workspace.children import UNKNOWN_STATUS, Child, children, end_group, reap

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


def spawned(script: str) -> tuple[int, int]:
    """Return (pid, its output's descriptor), as the previous program would have left them."""
    ours, theirs = os.pipe()
    pid = os.posix_spawn("/bin/sh", ["sh", "-c", script], os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, theirs, 1)])
    os.close(theirs)
    return pid, ours


async def test_several_waiters_get_status() -> None:
    child = Child(*spawned("echo said; exit 7"))
    assert child.stdout is not None
    async with child.stdout:
        assert b"".join([bytes(chunk) async for chunk in child.stdout]) == b"said\n"
    found = list[int]()

    async def wait() -> None:
        found.append(await child.wait())

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            nursery.start_soon(wait)
    assert found == [7, 7] and child.returncode == 7


async def test_reaped_child_has_no_status() -> None:
    process = subprocess.Popen(["true"])
    process.wait()
    assert await Child(process.pid).wait() == UNKNOWN_STATUS


async def test_unfollowed_children_are_reaped() -> None:
    pids = [spawned("exit 0") for _ in range(3)]
    assert {pid for pid, _ in pids} <= set(children())
    with trio.fail_after(60):
        await reap([pid for pid, _ in pids])
    assert not {pid for pid, _ in pids} & set(children())
    for _, descriptor in pids:
        os.close(descriptor)


async def test_cancelled_kill_still_waits() -> None:
    process = await trio.lowlevel.open_process(["sh", "-c", "sleep 600 & wait"], start_new_session=True)
    with trio.CancelScope() as scope:
        scope.cancel()
        await end_group(process)
    assert process.returncode == -signal.SIGKILL
    with trio.CancelScope() as scope:
        scope.cancel()
        await end_group(process)
    assert not scope.cancelled_caught, "the child is reaped"


class _Stuck(Child):
    """In a system call that no signal interrupts."""

    async def wait(self) -> int:
        await trio.sleep_forever()
        raise AssertionError


@pytest.mark.parametrize("cancelled", [False, True])
async def test_unkillable_child_is_abandoned(
    cancelled: bool, monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    signalled = list[int]()
    monkeypatch.setattr(os, "killpg", lambda pid, _number: signalled.append(pid))
    with trio.CancelScope() as scope:
        if cancelled:
            scope.cancel()
        await end_group(_Stuck(1))
    assert signalled == [1]
