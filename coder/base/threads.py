"""Threads and tasks: how this program runs trio, the error for a failed thread start, and a lock between tasks.

Disk access, host name lookups and program starts use threads, in trio's own functions, too. When the system refuses a
thread (a machine's or container's limit is used up), Python raises a bare RuntimeError. No caller that opens a file or
a host handles that, and the server or the agent would end. So it becomes an OSError: callers that handle OSError handle
this.

A test finds code that starts trio without `run_trio`, and threads or executors without trio.
"""

from __future__ import annotations

import errno
import signal
import threading
from collections.abc import Awaitable, Callable
from typing import TypeVar, TypeVarTuple

import trio

from coder.base.open_files import summarize_full_listeners

Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")

_REFUSAL_TEXT = "can't start new thread"
"Python's message, in every version; other RuntimeErrors of a start are defects."
_plain_start = threading.Thread.start


class NoThreadError(OSError, RuntimeError):
    """The system has no room for another thread."""

    def __init__(self) -> None:
        super().__init__(errno.EAGAIN, "no room for another thread")


def run_trio(main: Callable[[*Arguments], Awaitable[Result]], *arguments: *Arguments) -> Result:
    """Run `trio.run` with refused threads as NoThreadError, and one log line for full listeners.

    Trio closes the socket that Python writes signals to before it takes the socket back. A signal in between, which
    another thread may receive late, would print `Exception ignored when trying to write to the signal wakeup fd`, or
    write its byte into another file with the same number. So Python stops writing when `main` has returned. Signals
    are handled as before, because the handlers wake trio themselves.
    """
    convert_thread_refusals()
    summarize_full_listeners()

    async def without_late_writes() -> Result:
        try:
            return await main(*arguments)
        finally:
            if threading.current_thread() is threading.main_thread():  # no other thread may set it, and trio's does not
                signal.set_wakeup_fd(-1)

    return trio.run(without_late_writes)


def convert_thread_refusals() -> None:
    """Convert refusals in this process from now on. Applies to all threads: trio, its bridge to asyncio and libraries
    start theirs themselves, and `Thread.start` is their common function."""
    threading.Thread.start = _start  # type: ignore[method-assign, assignment]


def _start(thread: threading.Thread) -> None:
    try:
        _plain_start(thread)
    except RuntimeError as error:
        if str(error) != _REFUSAL_TEXT:
            raise
        raise NoThreadError from error


async def in_thread_or_here(
    function: Callable[[*Arguments], Result], *arguments: *Arguments, limiter: trio.CapacityLimiter | None = None
) -> Result:
    """Return what `function` returns or raise what it raises. For required work that does not block and starts no
    thread itself: without a free thread it runs on the event loop, which delays the other tasks this once."""
    try:
        return await trio.to_thread.run_sync(function, *arguments, limiter=limiter)
    except NoThreadError:
        return function(*arguments)


class QuickLock:
    """Lock for `async with` around short work that waits by itself, such as a write: a free one costs no turn of the
    scheduler.

    `trio.Lock` lets all other tasks run before each acquisition, also of a free lock: 10 us and a system call for every
    message on a path where a write follows, which lets them run as well. Waiting tasks are served in order. A free one
    is one small object: a server has three for each connected agent. A task that holds it must not enter it again.
    """

    __slots__ = ("_is_held", "_waiting")

    def __init__(self) -> None:
        self._is_held = False
        self._waiting: trio.lowlevel.ParkingLot | None = None

    def locked(self) -> bool:
        """Return whether a task holds the lock."""
        return self._is_held

    async def __aenter__(self) -> None:
        await trio.lowlevel.checkpoint_if_cancelled()
        if not self._is_held:
            self._is_held = True
            return
        if self._waiting is None:
            self._waiting = trio.lowlevel.ParkingLot()
        await self._waiting.park()  # the lock is handed over

    async def __aexit__(self, *_: object) -> None:
        if self._waiting:
            self._waiting.unpark()
        else:
            self._is_held, self._waiting = False, None
