"""Whose command this is. A warm process that runs one has another parent than the program the person started.

Editors look for what `coder ssh` wrote by the number of the process that started it: their SSH client.
"""

from __future__ import annotations

import os
from pathlib import Path

_parent: int | None = None


def parent_pid() -> int:
    """The process that started this command."""
    return os.getppid() if _parent is None else _parent


def stand_in_for(pid: int) -> None:
    """From now on this process runs the command of process `pid`."""
    global _parent
    _parent = _parent_of(pid)


def _parent_of(pid: int) -> int | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return int(stat.rpartition(")")[2].split()[1])  # a program's name may hold blanks and parentheses
