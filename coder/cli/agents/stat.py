"""`coder stat`: CPU, memory and disk usage of the machine or container, as in agent metadata."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from coder.base import without_proc
from coder.base.errors import CoderError
from coder.base.json_types import Json
from coder.cli.core.command import Invocation, implements
from coder.cli.declarations.agents.stat import (
    CPU,
    DISK,
    MEM,
    STAT,
    StatCpuOptions,
    StatDiskOptions,
    StatMemOptions,
    StatOptions,
)
from coder.cli.ui.output import print_json, print_table

_SAMPLE = 0.2
"""Seconds between two readings of the CPU counters: long enough for ten kernel ticks."""
_PREFIXES = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}
_CGROUP = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class Measure:
    """Usage of a resource."""

    used: float
    total: float | None
    "Total; None for no limit."
    unit: str

    def text(self, divisor: float = 1.0, prefix: str = "") -> str:
        """Format the usage as `1.2/7.8 GiB (15%)`."""
        used = f"{self.used / divisor:.3g}"
        if self.total is None:
            return f"{used} {prefix}{self.unit}"
        share = f" ({100 * self.used / self.total:.0f}%)" if self.total else ""
        return f"{used}/{self.total / divisor:.3g} {prefix}{self.unit}{share}"

    def json(self) -> dict[str, Json]:
        return {"used": self.used, "total": self.total, "unit": self.unit}


def host_memory() -> Measure:
    if without_proc.is_needed():
        used, total = without_proc.memory()
        if used is None:
            raise _unsupported("memory")
        return Measure(used, total, "B")
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError as error:
        raise _unsupported("memory") from error
    values = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines if line}
    return Measure(values["MemTotal"] - values["MemAvailable"], values["MemTotal"], "B")


def host_cpu() -> Measure:
    """Measure the busy cores over a short interval."""
    first = _cpu_ticks()
    time.sleep(_SAMPLE)
    second = _cpu_ticks()
    cores = os.cpu_count() or 1
    total = second[1] - first[1]
    busy = total - (second[0] - first[0])
    return Measure(round(cores * busy / total, 3) if total else 0.0, cores, "cores")


def _cpu_ticks() -> tuple[int, int]:
    """Return (idle, total) CPU ticks since boot."""
    if without_proc.is_needed():
        ticks = without_proc.cpu_ticks()
        if ticks is None:
            raise _unsupported("CPU")
        return ticks
    try:
        fields = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    except OSError as error:
        raise _unsupported("CPU") from error
    return fields[3] + fields[4], sum(fields)


def disk(path: str) -> Measure:
    try:
        usage = shutil.disk_usage(path)
    except OSError as error:
        raise CoderError("disk", f"cannot read the disk usage of {path}") from error
    return Measure(usage.used, usage.total, "B")


def container_cpu() -> Measure | None:
    """Return the container's memory usage; None outside a container (cgroup version 2)."""
    if not _is_container():
        return None
    first = _cpu_usage()
    began = time.monotonic()
    time.sleep(_SAMPLE)
    used = (_cpu_usage() - first) / (time.monotonic() - began)
    quota, period = (_CGROUP / "cpu.max").read_text().split()
    limit = None if quota == "max" else int(quota) / int(period)
    return Measure(round(used, 3), limit, "cores")


def _cpu_usage() -> float:
    """Seconds."""
    for line in (_CGROUP / "cpu.stat").read_text().splitlines():
        name, _, value = line.partition(" ")
        if name == "usage_usec":
            return int(value) / 1e6
    return 0.0


def container_memory() -> Measure | None:
    if not _is_container():
        return None
    used = int((_CGROUP / "memory.current").read_text())
    cached = 0
    for line in (_CGROUP / "memory.stat").read_text().splitlines():
        name, _, value = line.partition(" ")
        if name == "inactive_file":
            cached = int(value)  # cache, which the kernel reclaims on demand
    limit = (_CGROUP / "memory.max").read_text().strip()
    return Measure(max(used - cached, 0), None if limit == "max" else int(limit), "B")


def _is_container() -> bool:
    return all((_CGROUP / name).is_file() for name in ("cpu.stat", "cpu.max", "memory.current", "memory.max"))


def _unsupported(resource: str) -> CoderError:
    return CoderError(
        "unsupported",
        f"{resource} cannot be measured on this system",
        "It requires /proc, or the Python package psutil.",
    )


# ---- commands


@implements(STAT)
def _all(invocation: Invocation[StatOptions]) -> int:
    measures: dict[str, tuple[Callable[[], Measure | None], float, str]] = {
        "host cpu": (host_cpu, 1, ""),
        "host memory": (host_memory, _PREFIXES["Gi"], "Gi"),
        "home disk": (lambda: disk(str(Path.home())), _PREFIXES["Gi"], "Gi"),
        "container cpu": (container_cpu, 1, ""),
        "container memory": (container_memory, _PREFIXES["Gi"], "Gi"),
    }
    chosen = [column.strip().lower() for column in invocation.options.column]
    if invocation.options.output == "json":
        measured = {column: measure() for column, (measure, _, _) in measures.items()}
        print_json([{column.replace(" ", "_"): one.json() if one else None for column, one in measured.items()}])
        return 0
    row = {}
    for column in chosen:
        measure, divisor, prefix = measures[column]
        usage = measure()
        row[column] = usage.text(divisor, prefix) if usage else ""
    print_table([column for column in chosen if row[column]], [row])
    return 0


def _print(output: str, measure: Measure, prefix: str = "") -> int:
    if output == "json":
        print_json(measure.json())
    else:
        sys.stdout.write(measure.text(_PREFIXES.get(prefix, 1), prefix) + "\n")
    return 0


@implements(CPU)
def _cpu(invocation: Invocation[StatCpuOptions]) -> int:
    return _print(invocation.options.output, (None if invocation.options.host else container_cpu()) or host_cpu())


@implements(MEM)
def _mem(invocation: Invocation[StatMemOptions]) -> int:
    measure = (None if invocation.options.host else container_memory()) or host_memory()
    return _print(invocation.options.output, measure, invocation.options.prefix)


@implements(DISK)
def _disk(invocation: Invocation[StatDiskOptions]) -> int:
    return _print(invocation.options.output, disk(invocation.options.path), invocation.options.prefix)
