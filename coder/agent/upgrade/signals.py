"""SIGINT and SIGTERM between two lives of one process: whoever goes on is the one who was asked to end.

Between the receiver of a program that hands over and the receiver of the next, both signals would have their default
effect, with every shell lost. So they are blocked, and wait: a mask, and what waits for this thread, stay over
execve(2). A mask is a thread's own, and any other thread may be given the signal; the handler that is in place outside
of receivers raises it anew in this one.
"""

from __future__ import annotations

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


def _hold(number: int, _frame: FrameType | None) -> None:
    hold()
    signal.raise_signal(number)
