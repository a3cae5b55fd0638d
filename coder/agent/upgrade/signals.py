"""SIGINT and SIGTERM between two lives of one process: whoever goes on is the one who was asked to end.

Between the receiver of a program that hands over and the receiver of the next, both signals would have their default
effect, with every shell lost. So they are blocked, and wait: a mask, and what waits for this thread, stay over
execve(2). A mask is a thread's own, and any other thread may be given the signal; the handler that is in place outside
of receivers raises it anew in this one. Where there is no time for that any more, Python's own handler, which runs in
whatever thread, writes the signal's number into a pipe that the next program reads.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

ENDING = (signal.SIGINT, signal.SIGTERM)
_CAN_HOLD = hasattr(signal, "pthread_sigmask")
"Not on Windows, where no program takes over, either."


def hold() -> None:
    """From now on they wait for `release`."""
    if _CAN_HOLD:
        signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)


def release() -> None:
    """A receiver is open, and takes what has waited."""
    if _CAN_HOLD:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)


@contextmanager
def held_outside_of_receivers() -> Iterator[None]:
    """In the main thread, around all receivers of the process."""
    before = {number: signal.signal(number, _hold) for number in ENDING} if _CAN_HOLD else {}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        release()


@contextmanager
def told_to_a_pipe() -> Iterator[int]:
    """Signals that come in the block are in the pipe, too, whose reading end this is."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    try:
        yield reading
    finally:
        signal.set_wakeup_fd(before)
        os.close(writing)
        os.close(reading)


def take_told(reading: int) -> None:
    """What the program before us was told last waits for `release`. Raises OSError for what is no such pipe."""
    with os.fdopen(reading, "rb", buffering=0) as pipe:
        os.set_blocking(reading, False)
        told = set(pipe.read(4096) or b"")
    hold()
    with contextlib.suppress(AttributeError):  # without pthread_sigmask there is nothing that waits
        for number in told.intersection(ENDING) - signal.sigpending():
            signal.raise_signal(number)


def _hold(number: int, _frame: FrameType | None) -> None:
    hold()
    signal.raise_signal(number)
