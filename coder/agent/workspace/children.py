"""Child process by its number; the previous program of this process may have started it (execve keeps a process'
children).

`subprocess` and Trio only know children they started themselves. A `Child` is identified by its pid, and its remaining
pipes by their descriptors. Linux has descriptors of processes to wait for (pidfd_open(2), since 5.3).
"""

from __future__ import annotations

import os
from pathlib import Path

import trio

from coder.agent.platform import system
from coder.base.log import get_logger

log = get_logger("agent")

UNKNOWN_STATUS = 255
"Exit status of a child that was already reaped elsewhere."
KILL_GRACE = 5.0
"""Seconds (ours) a killed process has to exit. A process that waits for an unresponsive disk does not receive signals;
its terminator must not wait with it."""


class Child:
    """Child process, waited for at most once."""

    def __init__(self, pid: int, output: int | None = None) -> None:
        """`output` is the reading end of its output, owned by this object."""
        self.pid = pid
        self.returncode: int | None = None
        self.stdout = trio.lowlevel.FdStream(output) if output is not None else None
        self._waiting = trio.Lock()

    async def wait(self) -> int:
        """Wait for the exit; return the exit status as subprocess counts it."""
        async with self._waiting:
            if self.returncode is None:
                try:
                    self.returncode = await system.wait_for_child(self.pid)
                except ChildProcessError:
                    self.returncode = UNKNOWN_STATUS
            return self.returncode


def kill_group(pid: int, number: int) -> None:
    """Send a signal to the process group of a child."""
    system.kill_group(pid, number)


async def end_group(process: trio.Process | Child) -> None:
    """Kill the process with its group, if it runs, and wait for its exit, even when cancelled; at most KILL_GRACE
    seconds."""
    if process.returncode is not None:
        return
    kill_group(process.pid, system.KILL)
    with trio.CancelScope(deadline=trio.current_time() + KILL_GRACE, shield=True):
        await process.wait()
    if process.returncode is None:
        log.warn("a killed process did not exit and is abandoned", pid=process.pid)


def children() -> list[int]:
    """Return the pids of this process' children, where the system has /proc."""
    own_pid, result = os.getpid(), []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            stat = (entry / "stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue  # exited meanwhile
        if int(stat.rpartition(")")[2].split()[1]) == own_pid:
            result.append(int(entry.name))
    return result


async def reap(pids: list[int]) -> None:
    """Reap children that no other task waits for, so that none stays a zombie."""
    async with trio.open_nursery() as nursery:
        for pid in pids:
            nursery.start_soon(_reap, pid)


async def _reap(pid: int) -> None:
    code = await Child(pid).wait()
    log.debug("an inherited command exited", pid=pid, code=code)
