"""The end of a command's process without taking the interpreter apart, which a short command would wait for longest."""

from __future__ import annotations

import atexit
import sys


def flush_and_count(code: int) -> int:
    """Does what an ordinary end does before that: joins threads, runs what was registered, flushes. The exit code."""
    threading = sys.modules.get("threading")
    if threading is not None:
        threading._shutdown()  # joins what is no daemon, thread pools included
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            code = code or 1  # the reader is gone: what we said did not arrive
    return code
