"""Size and raw mode of this process's terminal."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import trio

if sys.platform == "win32":
    from coder.client.windows_console import raw_console

SIZE_INTERVAL = 1.0
"Seconds between looks at the size where no signal tells a change (Windows), as the original's (ssh_windows.go)."


def terminal_size() -> tuple[int, int]:
    """Return columns and lines; 80 by 24 without a terminal."""
    for descriptor in (1, 0, 2):
        try:
            size = os.get_terminal_size(descriptor)
        except OSError:
            continue
        return size.columns, size.lines
    return 80, 24


async def watch_size(report: Callable[[int, int], Awaitable[None]]) -> None:
    """Call `report` with columns and lines after each change of the terminal's size, until cancelled."""
    if hasattr(signal, "SIGWINCH"):
        with trio.open_signal_receiver(signal.SIGWINCH) as signals:
            async for _ in signals:
                await report(*terminal_size())
        return
    known = terminal_size()
    while True:
        await trio.sleep(SIZE_INTERVAL)
        if (size := terminal_size()) != known:
            known = size
            await report(*size)


@contextmanager
def raw_terminal(tty: bool) -> Iterator[None]:
    """Set raw mode, so that keystrokes reach the workspace unchanged; always restore the terminal afterwards."""
    if not tty or not sys.stdin.isatty():
        yield
        return
    if sys.platform == "win32":
        with raw_console():
            yield
        return
    import termios
    import tty as terminal

    before = termios.tcgetattr(0)
    terminal.setraw(0)
    try:
        yield
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)
