"""Lines that a server writes to standard output for its operator."""

from __future__ import annotations

import contextlib
import sys


def announce(text: str) -> None:
    """Write a line. A closed pipe or a full disk must not end the server."""
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
