"""JSON shapes of agents' health and disconnects. Ours, not upstream's."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from msgspec import field

from coder.api.base.struct import ApiStruct


class FlightRecord(ApiStruct):
    """Event of an agent."""

    at: datetime
    kind: str
    data: dict[str, str | float | bool | None]


class AgentVitals(ApiStruct):
    """Report of an agent about its machine every half minute; null for values it cannot measure."""

    sent_at: datetime
    events: list[FlightRecord] = field(default_factory=list)
    """Events since the last report, oldest first."""
    disk_used: int | None = None
    disk_total: int | None = None
    memory_used: int | None = None
    memory_total: int | None = None
    memory_pressure: float | None = None
    """Percent of the last ten seconds in which a process waited for memory."""
    load: float | None = None
    cores: int | None = None
    uptime_s: float | None = None
    reboot_pending: bool | None = None
    """Whether the machine waits for a reboot after an update."""
    direct: int | None = None
    """Peers in use that are reached directly."""
    relayed: int | None = None


class LightValue(ApiStruct):
    name: str
    value: str
    status: Literal["good", "warning", "bad", "unknown"]
    at: datetime | None
    age_seconds: float | None


class AgentLight(ApiStruct):
    status: Literal["good", "warning", "bad", "unknown"]
    values: list[LightValue]


class AgentLights(ApiStruct):
    host: AgentLight
    agent: AgentLight
    path: AgentLight


class AgentDisconnect(ApiStruct):
    disconnected_at: datetime
    returned_at: datetime | None
    ended: str
    """End of the connection, observed by the server: closed, silent, stopping, lost, unnoticed."""
    cause: str
    detail: str
    told: bool
    """Whether the agent has reported its events."""
    events: list[FlightRecord]
