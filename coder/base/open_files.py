"""Limit of open files of this process: raised to the system's maximum, reset for its children, and logged when reached.

Every connection is a file. Systems give a process 1024 of them (the soft limit) and let it raise that (up to the hard
limit); the low number exists for programs that wait by `select`, which supports no higher ones. So every child gets the
soft limit that we were started with. Source: Go's runtime does the same since 1.19 (os/rlimit.go, and
syscall/exec_unix.go for children).
"""

from __future__ import annotations

import logging
import math
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from coder.base.log import get_logger

if sys.platform != "win32":
    import resource

MAX_OPEN_FILES = 1 << 20
"""Limit requested where the system allows more or sets no limit: Linux refuses more by default (fs.nr_open), and at a
hundred kilobytes a connection memory ends first."""
MACOS_LIMIT = 10_240
"Limit of macOS (OPEN_MAX), where the hard limit is unlimited and the kernel rejects the number above."

LOG_EVERY = 60.0
"""Seconds between two log lines about listeners of a process that has no descriptor left."""
_log = get_logger("listeners")

_original_popen = subprocess.Popen.__init__
_original: int | None = None
"Soft limit at our start, set once it was raised."


def raise_open_files() -> None:
    """Raise the limit at the start of processes that serve many connections. No effect on Windows, which has no such
    limit."""
    global _original
    if sys.platform == "win32":
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = MAX_OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, MAX_OPEN_FILES)
    for limit in (allowed, min(allowed, MACOS_LIMIT)):
        if soft == resource.RLIM_INFINITY or soft >= limit:
            return
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
        except (ValueError, OSError):
            continue  # macOS: the kernel has its own limit below the hard one
        if _original is None:
            _original = soft
            subprocess.Popen.__init__ = _start  # type: ignore[method-assign, assignment]
        return


def open_files_limit() -> int:
    """Return how many files this process may open; where the system has no limit, MAX_OPEN_FILES."""
    if sys.platform == "win32":
        return MAX_OPEN_FILES
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return MAX_OPEN_FILES if soft == resource.RLIM_INFINITY else soft


@contextmanager
def lowered_open_files() -> Iterator[None]:
    """Restore the original limit for a process that becomes another program; raise it again if that fails."""
    _lower()
    try:
        yield
    finally:
        if _original is not None:
            raise_open_files()


def _lower() -> None:
    if sys.platform != "win32" and _original is not None:
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        soft = _original if hard == resource.RLIM_INFINITY else min(_original, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def _start(
    process: subprocess.Popen[bytes],
    *arguments: object,
    preexec_fn: Callable[[], object] | None = None,
    **options: object,
) -> None:
    """Replace `Popen.__init__`: trio, asyncio and `subprocess.run` start all children by it.

    A function before the program costs a fork instead of a vfork: a millisecond for each 100 MB of ours.
    """

    def prepare() -> None:
        _lower()
        if preexec_fn is not None:
            preexec_fn()

    _original_popen(process, *arguments, preexec_fn=prepare, **options)  # type: ignore[call-overload]


class _Summary(logging.Filter):
    """Filter of trio's logger: drops its records, and writes a line of ours once in a while.

    `trio.serve_listeners` writes a traceback ten times a second while `accept` fails, which fills a disk.
    """

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
