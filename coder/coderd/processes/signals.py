"""Signals of a program without an event loop: each arrives as a byte on a socket that `select` watches."""

from __future__ import annotations

import contextlib
import signal
import socket
from collections.abc import Iterator
from types import FrameType

HANDLED = frozenset(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGCHLD") if hasattr(signal, name)
)
"""Signals that the supervisor handles."""


@contextlib.contextmanager
def handling_signals() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Yield a socket from which the numbers of arrived signals are read, and the one that Python writes them to."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        theirs.setblocking(False)
        before = {number: signal.signal(number, _note) for number in HANDLED}
        signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HANDLED)
        try:
            yield ours, theirs
        finally:
            signal.set_wakeup_fd(-1)
            for number, handler in before.items():
                signal.signal(number, handler)


@contextlib.contextmanager
def signals_blocked() -> Iterator[None]:
    """Delay the handled signals for the duration of the block."""
    signal.pthread_sigmask(signal.SIG_BLOCK, HANDLED)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HANDLED)


def _note(_number: int, _frame: FrameType | None) -> None:
    """Do nothing: Python writes the number to the socket."""
