"""The slim program: agent and command line without the server (`build/editions.py` says what it lacks)."""

from __future__ import annotations

import sys
from importlib.util import find_spec

_SERVER_ROOMS = ("coder.coderd", "coder.wsproxy", "coder.provisionerd", "coder.dashboard")


def is_slim() -> bool:
    """Whether this program was built without the server."""
    return getattr(sys, "frozen", False) and find_spec("coder.coderd.app") is None


def explain_missing(error: ModuleNotFoundError) -> int:
    """The exit code of a command that needs the server's code, said in words. Raises what is a defect."""
    missing = error.name or ""
    if not is_slim() or not any(missing == room or missing.startswith(f"{room}.") for room in _SERVER_ROOMS):
        raise error
    sys.stderr.write(
        "error: You are using a slim build of Coder, which does not support this command.\n"
        "Suggestion: Download the full program: a server offers it as /bin/coder-full-<os>-<arch>, "
        "and the wheel (`pipx install FILE.whl`) is one.\n"
    )
    return 1
