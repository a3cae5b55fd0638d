"""Resources of the machine of this process: processors, memory, disk. Unavailable values are None."""

from __future__ import annotations

import os
import shutil
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from coder.base import without_proc

if sys.platform == "linux":
    import resource

TERRAFORM_OOM_SCORE = "500"
"""Of 1000: when memory is short nevertheless, the kernel ends terraform before server and database. Its processes are
known by it."""


@dataclass(frozen=True, slots=True)
class HostLoad:
    """Load in bytes; `cpu` is busy cores since the previous reading."""

    cores: int
    cpu: float | None
    load: float | None
    "Runnable processes, averaged over one minute."
    memory_used: int | None
    memory_total: int | None
    disk_used: int | None
    disk_total: int | None


class HostWatch:
    """Reader of the machine's load; processor use is the difference of two readings."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ticks = _cpu_ticks()
        self._read_at = time.monotonic()
        self._cpu: float | None = None

    def look(self) -> HostLoad:
        """Return the load. Cheap enough for every request."""
        cores = os.cpu_count() or 1
        if time.monotonic() - self._read_at >= 1.0 or self._cpu is None:
            before, self._ticks, self._read_at = self._ticks, _cpu_ticks(), time.monotonic()
            self._cpu = _busy_cores(before, self._ticks, cores)
        memory, disk = _memory(), disk_usage(self._folder)
        return HostLoad(cores, self._cpu, _load(), *memory, *disk)


def _cpu_ticks() -> tuple[int, int] | None:
    """Return (idle, all) ticks since boot."""
    if without_proc.is_needed():
        return without_proc.cpu_ticks()
    try:
        fields = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    except (OSError, ValueError):
        return None
    return fields[3] + fields[4], sum(fields)


def _busy_cores(before: tuple[int, int] | None, after: tuple[int, int] | None, cores: int) -> float | None:
    if before is None or after is None or after[1] <= before[1]:
        return None
    spent = after[1] - before[1]
    return round(cores * (spent - (after[0] - before[0])) / spent, 3)


def _load() -> float | None:
    try:
        return round(os.getloadavg()[0], 2)
    except (OSError, AttributeError):  # Windows has no load average
        return None


def _memory() -> tuple[int | None, int | None]:
    """Return (used, total) in bytes."""
    if without_proc.is_needed():
        return without_proc.memory()
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        values = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines if line}
        return values["MemTotal"] - values["MemAvailable"], values["MemTotal"]
    except (OSError, ValueError, KeyError, IndexError):
        return None, None


def container_memory() -> tuple[int | None, int | None]:
    """Return (used, total) of this process's control group when it has a limit; else of the machine."""
    used, total = _memory()
    limit, current, inactive = (_number(f"/sys/fs/cgroup/memory.{name}") for name in ("max", "current", "stat"))
    if limit is None or current is None or (total is not None and limit >= total):
        return used, total
    return max(current - (inactive or 0), 0), limit


def _number(path: str) -> int | None:
    """Return the file's number; of a statistics table the row of immediately reclaimable pages."""
    try:
        text = Path(path).read_text()
        if path.endswith("stat"):
            text = next(line.split()[1] for line in text.splitlines() if line.startswith("inactive_file "))
        return int(text)
    except (OSError, ValueError, StopIteration, IndexError):
        return None


def disk_usage(folder: Path) -> tuple[int | None, int | None]:
    """Return (used, total) of the file system that holds, or will hold, a folder."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        usage = shutil.disk_usage(folder)
    except OSError:
        return None, None
    return usage.total - usage.free, usage.total


def lift_terraform_limits() -> None:
    """Lift the limits that this process, a workspace's agent, inherited from terraform, if it did.

    Built-in provisioners limit terraform (`coder/provisionerd/terraform/limits.py`). A template whose `local-exec`
    starts an agent on the server's machine would limit each process of the workspace, for as long as it runs.
    """
    if sys.platform != "linux":
        return
    score = Path("/proc/self/oom_score_adj")
    with suppress(OSError, ValueError):  # the system does not allow it
        if score.read_text().strip() != TERRAFORM_OOM_SCORE:
            return
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))
        score.write_text("0")
