"""This process among the processes of one server: its duties, its siblings, and how to reach them.

`coder server --processes 1` is one process with all duties. With more, a supervisor (`coder/coderd/processes`) forks
several, each with some duties; each is a replica of its own for other machines. Siblings know each other from the
supervisor and talk through Unix sockets (`sibling_messages.py`). Their replica ids differ in the last 16 bits only, so
every replica can tell which rows are one machine's.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal
from uuid import UUID, uuid4

import msgspec
import trio

from coder.appproxy.http.overload import OverloadSign
from coder.appproxy.http.shared_counts import SharedCounts
from coder.coderd.services.foundation.sibling_messages import Handler

Duty = Literal["http", "relay", "apps", "wireguard", "loops", "daemons", "metrics"]
DUTIES: frozenset[Duty] = frozenset({"http", "relay", "apps", "wireguard", "loops", "daemons", "metrics"})
"""`http`: accept connections and answer requests. `relay`: DERP and STUN. `apps`: workspace applications and terminals.
`wireguard`: the gateway for plain WireGuard. `loops`: automatic actions. `daemons`: built-in provisioner daemons.
`metrics`: the listeners for scrapes and profiles."""
_INSTANCE_BITS = 16
INSTANCES = 1 << _INSTANCE_BITS


class Sibling(msgspec.Struct, frozen=True):
    """A living process of this server."""

    name: str
    replica: UUID
    socket_path: str
    "Path of its Unix socket."
    duties: tuple[str, ...] = ()


class Incident(msgspec.Struct, frozen=True):
    """A process that was lost and replaced."""

    name: str
    cause: str
    "Short and stable, as a label: exit, signal, stalled."
    detail: str
    at: float
    "Unix seconds."


@dataclass(slots=True)
class ThisProcess:
    """This process among its siblings."""

    name: str = ""
    "Empty for the only process."
    replica: UUID = field(default_factory=uuid4)
    duties: frozenset[str] = DUTIES
    count: int = 1
    "Processes of the server."
    siblings: dict[UUID, Sibling] = field(default_factory=dict)
    "The other processes that are ready, by replica id."
    lost: frozenset[UUID] = frozenset()
    "Replica ids of processes that ended without a goodbye."
    incidents: tuple[Incident, ...] = ()
    restarts: dict[tuple[str, str], int] = field(default_factory=dict)
    "Number of lost processes by name and cause, since the supervisor started."
    listener: socket.socket | None = None
    "Unix socket on which this process listens for its siblings; None for the only process."
    handlers: dict[str, Handler] = field(default_factory=dict)
    "Further kinds of messages that this process answers."
    counts: SharedCounts | None = None
    "Counters of rate limits that all processes share."
    overload: OverloadSign = field(default_factory=OverloadSign)
    "Whether any process of the server refuses connections."
    ports_free: trio.Event | None = None
    "Set when no former process holds the ports of this one's duties; None where there is none."
    retiring: trio.Event | None = None
    "Set when a successor has started: built-in daemons finish their jobs, and take no more."
    idle: trio.Event = field(default_factory=trio.Event)
    "Set when the built-in daemons have left."
    missing: dict[str, float] = field(default_factory=dict)
    "Duties that no ready process has, and when that was first seen."
    on_change: list[Callable[[], None]] = field(default_factory=list)
    "Called after the siblings have changed."

    @property
    def is_alone(self) -> bool:
        return self.count == 1

    def has(self, duty: Duty) -> bool:
        return duty in self.duties

    async def wait_ports_free(self) -> None:
        """Wait until the former process of these duties has ended."""
        if self.ports_free is not None:
            await self.ports_free.wait()

    def share(self, number: int) -> int:
        """Return this process's share of a number for the whole server, at least 1."""
        return max(number // self.count, 1)

    def holder_of(self, duty: Duty) -> Sibling | None:
        """Return a sibling with a duty that this process does not have."""
        if self.has(duty):
            return None
        return next((sibling for sibling in self.siblings.values() if duty in sibling.duties), None)

    def missing_since(self, now: float) -> dict[str, float]:
        """Return the duties that no ready process of this server has, and since when: as far as earlier calls saw."""
        held = self.duties.union(*(sibling.duties for sibling in self.siblings.values()))
        self.missing = {duty: self.missing.get(duty, now) for duty in DUTIES - held}
        return self.missing

    def instance(self, number: int) -> Sibling | None:
        """Return the sibling with this instance number."""
        return next((other for other in self.siblings.values() if instance_of(other.replica) == number), None)

    def update(
        self,
        living: Iterable[Sibling],
        lost: Iterable[UUID] = (),
        incidents: Iterable[Incident] = (),
        restarts: Iterable[tuple[str, str, int]] = (),
    ) -> None:
        """Apply what the supervisor sent."""
        self.siblings = {sibling.replica: sibling for sibling in living if sibling.replica != self.replica}
        self.lost, self.incidents = frozenset(lost), tuple(incidents)
        self.restarts = {(name, cause): number for name, cause, number in restarts}
        for notify in self.on_change:
            notify()


def instance_id(machine: UUID, number: int) -> UUID:
    """Return the replica id of a machine's process; `number` counts its processes from 0 and wraps at INSTANCES."""
    return UUID(int=(machine.int >> _INSTANCE_BITS << _INSTANCE_BITS) | number % INSTANCES)


def instance_of(replica: UUID) -> int:
    """Return a replica's number among the processes of its machine."""
    return replica.int % INSTANCES


def same_machine(one: UUID, other: UUID) -> bool:
    """Return whether two replicas are processes of one server."""
    return one.int >> _INSTANCE_BITS == other.int >> _INSTANCE_BITS
