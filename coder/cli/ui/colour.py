"""Colour for terminals: off for files and pipes, with NO_COLOR and with TERM=dumb (https://no-color.org)."""

from __future__ import annotations

import os
import sys
from typing import TextIO

_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36"}


def is_coloured(stream: TextIO) -> bool:
    """Return whether output to the stream can have colour."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM", "") in {"", "dumb"}:
        return False
    return bool(stream.isatty())


def paint(text: str, style: str, stream: TextIO | None = None) -> str:
    """Return the text in a style ("bold", "green", …; "" for none), if the stream (stdout by default) supports
    colour."""
    if not text or not style or not is_coloured(sys.stdout if stream is None else stream):
        return text
    return f"\x1b[{_CODES[style]}m{text}\x1b[0m"


CELL_STYLES = {
    "Started": "green",
    "Starting": "yellow",
    "Stopping": "yellow",
    "Deleting": "yellow",
    "Queued": "yellow",
    "Canceling": "yellow",
    "Failed": "red",
    "Stopped": "dim",
    "Deleted": "dim",
    "Canceled": "dim",
    "succeeded": "green",
    "running": "yellow",
    "pending": "yellow",
    "failed": "red",
    "canceled": "dim",
    "connected": "green",
    "connecting": "yellow",
    "disconnected": "red",
    "timeout": "red",
    "ready": "green",
    "healthy": "green",
    "unhealthy": "red",
    "idle": "green",
    "busy": "yellow",
    "offline": "dim",
}
"""Styles of status words in tables."""
