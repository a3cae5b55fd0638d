"""The file this program was started from, when it is the single binary, and what a server calls such a file."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

ARCHITECTURES = {
    "x86_64": "amd64",
    "amd64": "amd64",
    "aarch64": "arm64",
    "arm64": "arm64",
    "armv7l": "armv7",
    "armv8l": "armv7",
}
"""What a system calls its processor, and what agents do."""


def own_binary() -> Path | None:
    """What the launcher says in CODER_SELF; None when we run from sources."""
    named = os.environ.get("CODER_SELF", "")
    return Path(named) if named else None


def own_name() -> str:
    """The name under `/bin` of the program this machine would run."""
    system = {"linux": "linux", "darwin": "darwin", "win32": "windows"}.get(sys.platform, sys.platform)
    machine = platform.machine().lower()
    if machine == "aarch64" and sys.maxsize < 2**32:  # a 32 bit program under a 64 bit kernel
        machine = "armv7l"
    return f"coder-{system}-{ARCHITECTURES.get(machine, machine)}{'.exe' if system == 'windows' else ''}"
