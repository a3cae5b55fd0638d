"""Entry point of `python -m coder` and of the binary."""

import atexit
import os
import sys

from coder.cli.main import main


def _leave(code: int) -> None:
    """Ends the binary's process without taking the interpreter apart, which a short command would wait for longest."""
    threading = sys.modules.get("threading")
    if threading is not None:
        threading._shutdown()  # joins what is no daemon, thread pools included, as an ordinary end does
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            code = code or 1  # the reader is gone: what we said did not arrive
    os._exit(code)


if __name__ == "__main__":
    status = main()
    if getattr(sys, "frozen", False):
        _leave(status)
    raise SystemExit(status)
