"""Size and raw mode of this process's terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


def terminal_size() -> tuple[int, int]:
    """Return columns and lines; 80 by 24 without a terminal."""
    for descriptor in (1, 0, 2):
        try:
            size = os.get_terminal_size(descriptor)
        except OSError:
            continue
        return size.columns, size.lines
    return 80, 24


@contextmanager
def raw_terminal(tty: bool) -> Iterator[None]:
    """Set raw mode, so that keystrokes reach the workspace unchanged; always restore the terminal afterwards."""
    if not tty or not sys.stdin.isatty():
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
