"""Parent process of this command. A warm process that runs a command has another parent than the program that the user
started.

Editors find the files that `coder ssh` wrote by the pid of the process that started it: their SSH client.
"""

from __future__ import annotations

import os
from pathlib import Path

_parent: int | None = None


def parent_pid() -> int:
    """Return the pid of the process that started this command."""
    return os.getppid() if _parent is None else _parent


def run_command_of(pid: int) -> None:
    """Run the command of process `pid` in this process from now on."""
    global _parent
    _parent = _parent_of(pid)


def _parent_of(pid: int) -> int | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return int(stat.rpartition(")")[2].split()[1])  # a program's name may contain blanks and parentheses
