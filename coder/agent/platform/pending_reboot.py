"""Whether the machine waits for a reboot after an update, where its system records it.

Debian and Ubuntu have a file that their update tools write, so its absence says something only where these tools are.
Windows has keys in its registry. Other systems record nothing that can be read cheaply.
"""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

MARKS = ("run/reboot-required", "var/run/reboot-required")
WRITERS = (
    "usr/share/update-notifier/notify-reboot-required",
    "etc/kernel/postinst.d/unattended-upgrades",
    "etc/kernel/postinst.d/update-notifier",
)
"""Programs that write the mark: without them, nothing would."""
KEYS = (
    r"SOFTWARE\Microsoft\Windows\CurrentVersion\Component Based Servicing\RebootPending",
    r"SOFTWARE\Microsoft\Windows\CurrentVersion\WindowsUpdate\Auto Update\RebootRequired",
)
"""Keys that exist while Windows waits for a reboot."""


def pending_reboot(root: Path = Path("/")) -> bool | None:
    """Return whether the machine waits for a reboot; None where its system does not tell."""
    if sys.platform == "win32":
        return any(_has_key(key) for key in KEYS)
    if any((root / mark).exists() for mark in MARKS):
        return True
    return False if any((root / writer).exists() for writer in WRITERS) else None


def _has_key(path: str) -> bool:
    if sys.platform == "win32":
        import winreg

        with contextlib.suppress(OSError), winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, path):
            return True
    return False
