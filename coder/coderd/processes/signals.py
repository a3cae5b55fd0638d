"""Signals of a program without an event loop: they are noted, and wake a `select` by a byte on a socket.

The bytes only wake: when many arrive while the program is busy, the socket is full and the last ones are lost.
"""

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
_arrived: set[int] = set()
"""Signals that `take_arrived` has not returned yet. Of the process, as their handlers are."""


@contextlib.contextmanager
def handling_signals() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Note signals; yield a socket that is readable when some have arrived, and the one that Python writes to."""
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


def take_arrived() -> list[int]:
    """Return the numbers of the signals that arrived since the last call, each once."""
    numbers = sorted(_arrived)
    _arrived.difference_update(numbers)
    return numbers


def _note(number: int, _frame: FrameType | None) -> None:
    _arrived.add(number)
