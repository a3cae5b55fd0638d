"""System information of machines without /proc (macOS, Windows) from psutil; None where psutil is not installed.

Not run on those systems by us: the tests compare it with /proc on Linux, which psutil supports, too.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Protocol


class _Address(Protocol):
    port: int


class _Socket(Protocol):
    """Socket as `psutil.net_connections` lists it."""

    status: str
    laddr: _Address


def is_needed() -> bool:
    return not sys.platform.startswith("linux")


def _psutil() -> ModuleType | None:
    try:
        return importlib.import_module("psutil")
    except ImportError:
        return None


def cpu_ticks() -> tuple[int, int] | None:
    """Return (idle, all) since boot, in hundredths of a second."""
    psutil = _psutil()
    if psutil is None:
        return None
    times = psutil.cpu_times()
    return int(times.idle * 100), int(sum(times) * 100)


def memory() -> tuple[int | None, int | None]:
    """Return (used, total) in bytes."""
    psutil = _psutil()
    if psutil is None:
        return None, None
    values = psutil.virtual_memory()
    return values.total - values.available, values.total


def listening_programs() -> dict[int, str]:
    """Return TCP port -> name of the listening program, as far as access is permitted (macOS: own processes only)."""
    psutil = _psutil()
    if psutil is None:
        return {}
    try:
        entries = [entry for entry in psutil.net_connections("tcp") if entry.status == psutil.CONN_LISTEN]
    except psutil.AccessDenied:
        entries = _own_sockets(psutil)
    return {entry.laddr.port: _name(psutil, getattr(entry, "pid", None)) for entry in entries}


def _own_sockets(psutil: ModuleType) -> list[_Socket]:
    values: list[_Socket] = []
    for process in psutil.process_iter():
        try:
            values += [entry for entry in process.net_connections("tcp") if entry.status == psutil.CONN_LISTEN]
        except psutil.Error:
            continue  # it exited, or access is denied
    return values


def _name(psutil: ModuleType, pid: int | None) -> str:
    try:
        return str(psutil.Process(pid).name()) if pid else ""
    except psutil.Error:
        return ""
