"""Listening TCP ports of this machine, from /proc/net or, where /proc is missing, psutil."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from coder.base import without_proc

MINIMUM = 9
"Lowest port listed; lower ports are the agent's own inside the overlay."
IGNORED = frozenset(
    {20, 21, 22, 23, 25, 53, 110, 143, 179, 389, 465, 587, 636, 989, 990, 993, 995}
    | {3306, 3389, 5432, 27017, 27018, 27019, 28017}
)
"Well-known ports that do not speak HTTP (docs/protocol/agent-services.md#http)."
_LISTEN = "0A"


@dataclass(frozen=True, slots=True)
class ListeningPort:
    process_name: str
    network: str
    port: int


def listening_ports(excluded: frozenset[int] = frozenset()) -> list[ListeningPort]:
    """Return ports in LISTEN state that a user may want to open, lowest first."""
    if without_proc.is_needed():
        listed = without_proc.listening_programs()
    else:
        listed = _listening_by_proc()
    return [
        ListeningPort(name, "tcp", port)
        for port, name in sorted(listed.items())
        if port >= MINIMUM and port not in IGNORED and port not in excluded
    ]


def _listening_by_proc() -> dict[int, str]:
    """Return port -> name of the listening program."""
    inodes: dict[str, int] = {}
    for table in ("tcp", "tcp6"):
        inodes |= _table(Path("/proc/net") / table)
    names = _process_names(inodes)
    return {port: names.get(inode, "") for inode, port in inodes.items()}


def _table(path: Path) -> dict[str, int]:
    """Return socket inode -> port of the listening entries."""
    try:
        lines = path.read_text().splitlines()[1:]
    except OSError:
        return {}
    by_inode = {}
    for line in lines:
        fields = line.split()
        if len(fields) > 9 and fields[3] == _LISTEN:
            by_inode[fields[9]] = int(fields[1].rpartition(":")[2], 16)
    return by_inode


def _process_names(inodes: dict[str, int]) -> dict[str, str]:
    """Return socket inode -> program name, for the processes the agent may inspect."""
    by_inode: dict[str, str] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            for descriptor in (entry / "fd").iterdir():
                target = str(descriptor.readlink())
                if target.startswith("socket:[") and target[8:-1] in inodes:
                    by_inode[target[8:-1]] = (entry / "comm").read_text().strip()
        except OSError:
            continue  # the process ended, or access is denied
    return by_inode
