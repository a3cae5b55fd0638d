"""Processes of one server: their names, duties and shares of the database's connections. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from coder.coderd.services.foundation.this_process import Duty

_SINGLE: Mapping[str, frozenset[Duty]] = MappingProxyType(
    {
        "relay": frozenset[Duty]({"relay"}),
        "edge": frozenset[Duty]({"apps", "wireguard"}),
        "loops": frozenset[Duty]({"loops", "daemons", "metrics"}),
    }
)
"""Processes that exist once, beside those that accept connections."""
_SINGLE_CONNECTIONS: Mapping[str, int] = MappingProxyType({"relay": 1, "edge": 1, "loops": 2})
"""Database connections of those; the others divide the rest."""


@dataclass(frozen=True, slots=True)
class ProcessSpec:
    """Process of a server, whatever instance of it runs."""

    name: str
    duties: frozenset[Duty]
    slot: int
    "Its number among the processes."

    @property
    def retires(self) -> bool:
        """Whether a replaced process first finishes its work: jobs of built-in daemons, which may take an hour."""
        return "daemons" in self.duties


def processes_of(count: int) -> tuple[ProcessSpec, ...]:
    """Return the processes of `--processes count`: so many that accept connections, and one for each other duty."""
    named: dict[str, frozenset[Duty]] = {f"api-{number}": frozenset({"http"}) for number in range(1, count + 1)}
    named |= _SINGLE
    return tuple(ProcessSpec(name, duties, slot) for slot, (name, duties) in enumerate(named.items()))


def connections_of(spec: ProcessSpec, count: int, limit: int) -> int:
    """Return the most database connections of a process, when all processes together may have `limit`; at least 1."""
    if spec.name in _SINGLE_CONNECTIONS:
        return min(_SINGLE_CONNECTIONS[spec.name], max(limit // (count + len(_SINGLE)), 1))
    return max((limit - sum(_SINGLE_CONNECTIONS.values())) // count, 1)
