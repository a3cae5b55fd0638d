"""SIGINT and SIGTERM between two programs of one process: the next program handles signals sent to the previous one.

Between the receiver of a program that hands over and the receiver of the next, both signals would have their default
effect, and every shell would be lost. So they are blocked and stay pending: a thread's mask and its pending signals
survive execve(2). A mask applies to one thread, and any other thread may receive the signal; the handler installed
outside of receivers raises it again in this thread. Where there is no time for that any more, Python's own handler,
which runs in any thread, writes the signal's number into a pipe that the next program reads.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

ENDING = tuple(signal.Signals[name] for name in ("SIGINT", "SIGTERM", "SIGBREAK") if name in signal.Signals.__members__)
"""Signals that end the agent after its stop scripts. SIGBREAK is Ctrl-Break of Windows, where no process can send
SIGTERM to another one."""
_CAN_HOLD = hasattr(signal, "pthread_sigmask")
"False on Windows, where no program takes over either."


def hold() -> None:
    """Block the signals until `release`."""
    if _CAN_HOLD:
        signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)


def release() -> None:
    """Unblock the signals: a receiver is open, and takes the pending ones."""
    if _CAN_HOLD:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)


@contextmanager
def signals_held_outside_receivers() -> Iterator[None]:
    """Hold the signals in the main thread, around all receivers of the process."""
    before = {number: signal.signal(number, _hold) for number in ENDING} if _CAN_HOLD else {}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        release()


@contextmanager
def signals_to_pipe() -> Iterator[int]:
    """Copy signals that arrive in the block into a pipe; yield its reading end."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    try:
        yield reading
    finally:
        signal.set_wakeup_fd(before)
        os.close(writing)
        os.close(reading)


def replay_signals(reading: int) -> None:
    """Raise the signals that the previous program received last; they stay pending until `release`. Raises OSError for
    a descriptor that is not such a pipe."""
    with os.fdopen(reading, "rb", buffering=0) as pipe:
        os.set_blocking(reading, False)
        numbers = set(pipe.read(4096) or b"")
    hold()
    with contextlib.suppress(AttributeError):  # without pthread_sigmask nothing is pending
        for number in numbers.intersection(ENDING) - signal.sigpending():
            signal.raise_signal(number)


def _hold(number: int, _frame: FrameType | None) -> None:
    hold()
    signal.raise_signal(number)
