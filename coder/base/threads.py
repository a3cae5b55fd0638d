"""Threads: how trio is run by whatever this program is, and what it is when there is no room for another thread.

Looks at disks, names of hosts and starts of programs are the work of threads, in trio's own functions, too. Where the
system refuses one (something has used up what a machine or a container may have), Python raises a bare RuntimeError:
nobody who asks for a file or for a host is prepared for that, and the server or the agent would end. So it is told as
what it is, an error of the system like any other: whoever is prepared for OSError is prepared for this.

A test finds what begins trio past `run_trio`, and threads or executors past trio.
"""

from __future__ import annotations

import errno
import threading
from collections.abc import Awaitable, Callable
from typing import TypeVar, TypeVarTuple

import trio

Found = TypeVar("Found")
Arguments = TypeVarTuple("Arguments")

_REFUSED = "can't start new thread"
"Python's words, in every version; other RuntimeErrors of a start are defects."
_plain_start = threading.Thread.start


class NoThreadError(OSError, RuntimeError):
    """The system has no room for another thread."""

    def __init__(self) -> None:
        super().__init__(errno.EAGAIN, "no room for another thread")


def run_trio(main: Callable[[*Arguments], Awaitable[Found]], *arguments: *Arguments) -> Found:
    """`trio.run`, in which a refused thread is a NoThreadError."""
    tell_refusals()
    return trio.run(main, *arguments)


def tell_refusals() -> None:
    """From now on, in this process. For all threads: trio, its bridge to asyncio and libraries begin theirs themselves,
    and `Thread.start` is what they have in common."""
    threading.Thread.start = _start  # type: ignore[method-assign, assignment]


def _start(thread: threading.Thread) -> None:
    try:
        _plain_start(thread)
    except RuntimeError as error:
        if str(error) != _REFUSED:
            raise
        raise NoThreadError from error


async def in_thread_or_here(
    do: Callable[[*Arguments], Found], *arguments: *Arguments, limiter: trio.CapacityLimiter | None = None
) -> Found:
    """What `do` returns or raises. For what has to be done, waits for nothing and begins no thread itself: without room
    for one it holds up all others for once."""
    try:
        return await trio.to_thread.run_sync(do, *arguments, limiter=limiter)
    except NoThreadError:
        return do(*arguments)
