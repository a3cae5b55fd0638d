"""Process exit without the interpreter's teardown, which would be the slowest part of a short command."""

from __future__ import annotations

import atexit
import sys


def flush_and_count(code: int) -> int:
    """Join threads, run exit handlers, flush the standard streams, and return the exit code."""
    threading = sys.modules.get("threading")
    if threading is not None:
        threading._shutdown()  # joins threads that are not daemons, thread pools included
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            code = code or 1  # the reader closed the pipe, so the output was lost
    return code
