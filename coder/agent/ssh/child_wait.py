"""Waiting for the commands of sessions, in place of trio-asyncio's own way.

trio-asyncio gives every child a thread that blocks in waitpid. Such a thread outlives the agent's loop when a command
does, and then fails with a traceback on the agent's stderr (RunFinishedError); a hundred commands are a hundred
threads. Linux has descriptors of processes for this (pidfd_open(2), since 5.3).
"""

from __future__ import annotations

import math
import os
import sys

import trio


def install() -> None:
    """Makes trio-asyncio wait by `wait_for_child`, except on Windows, whose handles it waits for itself."""
    if sys.platform == "win32":
        return
    import trio_asyncio._base as base

    base.wait_for_child = wait_for_child


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
        _, status = await trio.to_thread.run_sync(os.waitpid, pid, 0, abandon_on_cancel=True, limiter=limiter)
    else:
        try:
            await trio.lowlevel.wait_readable(descriptor)
        finally:
            os.close(descriptor)
        _, status = os.waitpid(pid, 0)  # noqa: ASYNC222 - it has ended: this does not block
    return os.waitstatus_to_exitcode(status)
