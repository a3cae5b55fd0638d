"""A process of ours that may have been started by the program before us (execve keeps a process' children).

`subprocess` and Trio know only what they started themselves; this is a child by its number, and what is left of its
pipes by their descriptors. Linux has descriptors of processes to wait for (pidfd_open(2), since 5.3).
"""

from __future__ import annotations

import math
import os
import signal
from pathlib import Path

import trio

from coder.base.log import get_logger
from coder.base.threads import NoThreadError

log = get_logger("agent")

UNKNOWN_STATUS = 255
"Of a child that somebody else has waited for."
LOOK_AGAIN = 0.1
"""Ours: seconds between looks at a child that nothing can wait for."""
KILL_GRACE = 5.0
"""Ours: seconds a killed process has to go. One that waits for a disk that is away does not hear signals; whoever ends
it must not wait with it."""


class Child:
    """One child, waited for at most once."""

    def __init__(self, pid: int, output: int | None = None) -> None:
        """`output` is the reading end of its output, owned from now on."""
        self.pid = pid
        self.returncode: int | None = None
        self.stdout = trio.lowlevel.FdStream(output) if output is not None else None
        self._waiting = trio.Lock()

    async def wait(self) -> int:
        """The exit status as subprocess counts."""
        async with self._waiting:
            if self.returncode is None:
                try:
                    self.returncode = await wait_for_child(self.pid)
                except ChildProcessError:
                    self.returncode = UNKNOWN_STATUS
            return self.returncode


def kill_group(pid: int, number: signal.Signals) -> None:
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):
        pass  # already gone


async def end_group(process: trio.Process | Child) -> None:
    """Kills it with its process group, if it runs, and waits until it has gone, even cancelled: KILL_GRACE at most."""
    if process.returncode is not None:
        return
    kill_group(process.pid, signal.SIGKILL)
    with trio.CancelScope(deadline=trio.current_time() + KILL_GRACE, shield=True):
        await process.wait()
    if process.returncode is None:
        log.warn("a process was killed and does not go; it is left behind", pid=process.pid)


async def wait_for_child(pid: int) -> int:
    """The exit status of the child `pid` as subprocess counts (negative: the signal); reaps it.

    Raises ChildProcessError when it is no child of this process, or was reaped already.
    """
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError as error:
        raise ChildProcessError(f"there is no child {pid}") from error
    except (AttributeError, OSError):  # another system, or a kernel or sandbox without the call
        # Trio's threads may be left behind: what they return after the end is dropped without a word.
        limiter = trio.CapacityLimiter(math.inf)
        try:
            _, status = await trio.to_thread.run_sync(os.waitpid, pid, 0, abandon_on_cancel=True, limiter=limiter)
        except NoThreadError:
            status = await _look_until_ended(pid)
    else:
        try:
            await trio.lowlevel.wait_readable(descriptor)
        finally:
            os.close(descriptor)
        _, status = os.waitpid(pid, 0)  # noqa: ASYNC222 - it has ended: this does not block
    return os.waitstatus_to_exitcode(status)


async def _look_until_ended(pid: int) -> int:
    """Its status as the system has it."""
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)  # noqa: ASYNC222 - does not block
        if ended:
            return status
        await trio.sleep(LOOK_AGAIN)


def children() -> list[int]:
    """Numbers of this process' children, where the system has /proc."""
    own, found = os.getpid(), []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            stat = (entry / "stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue  # gone meanwhile
        if int(stat.rpartition(")")[2].split()[1]) == own:
            found.append(int(entry.name))
    return found


async def collect(pids: list[int]) -> None:
    """Waits for children that nobody follows, so that none stays as a zombie."""
    async with trio.open_nursery() as nursery:
        for pid in pids:
            nursery.start_soon(_collect, pid)


async def _collect(pid: int) -> None:
    code = await Child(pid).wait()
    log.debug("a command that was left running ended", pid=pid, code=code)
