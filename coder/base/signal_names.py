"""Names of signals, also of those that have none: Python knows only the first and the last real-time signal."""

from __future__ import annotations

import signal


def signal_name(number: int) -> str:
    """Return `SIGKILL`, or `signal 40`."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
