"""File of the single binary that this program was started from, and its name on a server."""

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
"""Name of a processor by the system -> name used by agents."""


def own_binary() -> Path | None:
    """Return the path that the launcher sets in CODER_SELF; None when running from sources."""
    path_text = os.environ.get("CODER_SELF", "")
    return Path(path_text) if path_text else None


def own_name() -> str:
    """Return the name under `/bin` of the program for this machine."""
    system = {"linux": "linux", "darwin": "darwin", "win32": "windows"}.get(sys.platform, sys.platform)
    if system == "windows":  # whose `platform.machine` asks a service (WMI), which may not answer
        machine = "arm64" if "(ARM64)" in sys.version else "amd64"
    else:
        machine = platform.machine().lower()
    if machine == "aarch64" and sys.maxsize < 2**32:  # a 32 bit program under a 64 bit kernel
        machine = "armv7l"
    return f"coder-{system}-{ARCHITECTURES.get(machine, machine)}{'.exe' if system == 'windows' else ''}"
