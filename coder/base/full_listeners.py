"""One log line a minute about listeners of a process that has no file descriptor left.

`trio.serve_listeners` writes a traceback ten times a second while `accept` fails, which fills a disk.
"""

from __future__ import annotations

import logging
import math
import time

from coder.base.log import get_logger

LOG_EVERY = 60.0
"""Seconds between two lines."""
_log = get_logger("listeners")


class _Summary(logging.Filter):
    """Filter of trio's logger: drops its records, and writes a line of ours once in a while."""

    def __init__(self) -> None:
        super().__init__()
        self._logged_at = -math.inf

    def filter(self, record: logging.LogRecord) -> bool:
        now = time.monotonic()
        if now - self._logged_at >= LOG_EVERY:
            self._logged_at = now
            _log.error("no connection can be accepted for now", error=record.exc_info[1] if record.exc_info else "")
        return False


_summary = _Summary()


def summarize_full_listeners() -> None:
    """Replace trio's tracebacks in this process."""
    logging.getLogger("trio.serve_listeners").addFilter(_summary)
