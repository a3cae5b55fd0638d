"""Listening TCP ports of this machine, from /proc/net or, where there is none, psutil."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from coder.base import without_proc

MINIMUM = 9
"Lower ports are the agent's own inside the overlay."
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


def listening_ports(own: frozenset[int] = frozenset()) -> list[ListeningPort]:
    """Ports in LISTEN state that a person may want to open, lowest first."""
    if without_proc.needed():
        listed = without_proc.listening()
    else:
        listed = _listening_by_proc()
    return [
        ListeningPort(name, "tcp", port)
        for port, name in sorted(listed.items())
        if port >= MINIMUM and port not in IGNORED and port not in own
    ]


def _listening_by_proc() -> dict[int, str]:
    """Port -> name of the program that listens."""
    inodes: dict[str, int] = {}
    for table in ("tcp", "tcp6"):
        inodes |= _table(Path("/proc/net") / table)
    names = _process_names(inodes)
    return {port: names.get(inode, "") for inode, port in inodes.items()}


def _table(path: Path) -> dict[str, int]:
    """socket inode -> port of the listening entries."""
    try:
        lines = path.read_text().splitlines()[1:]
    except OSError:
        return {}
    found = {}
    for line in lines:
        fields = line.split()
        if len(fields) > 9 and fields[3] == _LISTEN:
            found[fields[9]] = int(fields[1].rpartition(":")[2], 16)
    return found


def _process_names(inodes: dict[str, int]) -> dict[str, str]:
    """socket inode -> program name, as far as we may look."""
    found: dict[str, str] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            for descriptor in (entry / "fd").iterdir():
                target = str(descriptor.readlink())
                if target.startswith("socket:[") and target[8:-1] in inodes:
                    found[target[8:-1]] = (entry / "comm").read_text().strip()
        except OSError:
            continue  # the process ended, or is not ours to see
    return found
