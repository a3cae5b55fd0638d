"""What machines without /proc (macOS, Windows) say of themselves, through psutil; nothing where that is not installed.

Never run on those systems by us: the tests compare it with /proc on Linux, where psutil answers, too.
"""

from __future__ import annotations

import sys
from typing import Any


def needed() -> bool:
    return not sys.platform.startswith("linux")


def _psutil() -> Any:
    try:
        import psutil
    except ImportError:
        return None
    return psutil


def cpu_ticks() -> tuple[int, int] | None:
    """(idle, all) since boot, in hundredths of a second."""
    psutil = _psutil()
    if psutil is None:
        return None
    times = psutil.cpu_times()
    return int(times.idle * 100), int(sum(times) * 100)


def memory() -> tuple[int | None, int | None]:
    """(used, total) bytes."""
    psutil = _psutil()
    if psutil is None:
        return None, None
    found = psutil.virtual_memory()
    return found.total - found.available, found.total


def listening() -> dict[int, str]:
    """TCP port -> name of the program that listens, as far as we may look (macOS shows our own processes only)."""
    psutil = _psutil()
    if psutil is None:
        return {}
    try:
        entries = [entry for entry in psutil.net_connections("tcp") if entry.status == psutil.CONN_LISTEN]
    except psutil.AccessDenied:
        entries = _own_sockets(psutil)
    return {entry.laddr.port: _name(psutil, getattr(entry, "pid", None)) for entry in entries}


def _own_sockets(psutil: Any) -> list[Any]:
    found = []
    for process in psutil.process_iter():
        try:
            found += [entry for entry in process.net_connections("tcp") if entry.status == psutil.CONN_LISTEN]
        except psutil.Error:
            continue  # it ended, or is not ours to see
    return found


def _name(psutil: Any, pid: int | None) -> str:
    try:
        return str(psutil.Process(pid).name()) if pid else ""
    except psutil.Error:
        return ""
