"""Queries on agents' disconnects and the last readings of their machines."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING, Required, TypedDict, Unpack
from uuid import UUID

from sqlalchemy import ColumnElement, and_, delete, func, insert, select, text, update

from coder.base.json_types import JsonObject
from coder.coderd.store.tables.agents import workspace_agent_disconnects as disconnects
from coder.coderd.store.tables.agents import workspace_agents as agents

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx
    from coder.domain.agents.disconnects import Ended

KEPT = 100
"""Ours: disconnects kept of one agent."""


class StoredEvent(TypedDict):
    """Event of a flight record."""

    at: str
    kind: str
    data: dict[str, str | float | bool | None]


class HostVitals(TypedDict, total=False):
    """Reading of a machine, and the numbers of its peers."""

    disk_used: int | None
    disk_total: int | None
    memory_used: int | None
    memory_total: int | None
    memory_pressure: float | None
    load: float | None
    cores: int | None
    uptime_s: float | None
    clock_off_s: float | None
    reboot_pending: bool | None
    direct: int | None
    relayed: int | None


class PathVitals(TypedDict, total=False):
    """Reading of the path between agent and server."""

    round_trip_ms: float | None
    loss_percent: float | None


@dataclass(frozen=True, slots=True)
class DisconnectRow:
    id: int
    workspace_id: UUID
    agent_name: str
    disconnected_at: datetime
    ended: Ended
    returned_at: datetime | None
    told_at: datetime | None
    """Time at which the agent reported its events."""
    cause: str
    detail: str
    events: list[StoredEvent]


@dataclass(frozen=True, slots=True)
class VitalsRow:
    host: HostVitals | None
    host_at: datetime | None
    path: PathVitals | None
    path_at: datetime | None


class DisconnectReport(TypedDict, total=False):
    """Columns set by an agent's report about its disconnect."""

    told_at: datetime
    cause: Required[str]
    detail: Required[str]
    events: list[StoredEvent]


class NewDisconnect(DisconnectReport, total=False):
    """Initial columns of a disconnect; the defaults of the others mean unreported and ongoing."""

    disconnected_at: Required[datetime]
    ended: Required[str]
    returned_at: datetime


def _of(workspace_id: UUID, agent_name: str) -> ColumnElement[bool]:
    return and_(disconnects.c.workspace_id == workspace_id, disconnects.c.agent_name == agent_name)


async def add_disconnect(tx: Tx, workspace_id: UUID, agent_name: str, **values: Unpack[NewDisconnect]) -> None:
    """Insert a disconnect and delete the oldest beyond `KEPT`."""
    await tx.execute(insert(disconnects).values(workspace_id=workspace_id, agent_name=agent_name, **values))
    of_agent = _of(workspace_id, agent_name)
    newest = select(disconnects.c.id).where(of_agent).order_by(disconnects.c.id.desc()).limit(KEPT)
    await tx.execute(delete(disconnects).where(of_agent, disconnects.c.id.not_in(newest)))


async def list_disconnects(tx: Tx, workspace_id: UUID, agent_name: str, limit: int = KEPT) -> list[DisconnectRow]:
    """Return disconnects, newest first."""
    columns = [disconnects.c[field.name] for field in fields(DisconnectRow)]
    query = select(*columns).where(_of(workspace_id, agent_name)).order_by(disconnects.c.id.desc()).limit(limit)
    return [DisconnectRow(*row) for row in await tx.execute(query)]


async def update_disconnect(tx: Tx, ident: int, **values: Unpack[DisconnectReport]) -> None:
    await tx.execute(update(disconnects).where(disconnects.c.id == ident).values(**values))


async def count_causes(tx: Tx, workspace_id: UUID, agent_name: str, causes: set[str], since: datetime) -> int:
    """Return how many disconnects since then had one of the causes."""
    condition = and_(
        _of(workspace_id, agent_name), disconnects.c.cause.in_(sorted(causes)), disconnects.c.disconnected_at >= since
    )
    return int((await tx.execute(select(func.count()).select_from(disconnects).where(condition))).scalar_one())


_PUT_VITALS = text(
    "UPDATE workspace_agents a SET host_vitals = CAST(report.host AS jsonb), host_vitals_at = report.at "
    "FROM unnest(CAST(:ids AS uuid[]), CAST(:hosts AS text[]), CAST(:times AS timestamptz[])) "
    "AS report(id, host, at) WHERE a.id = report.id"
)


async def put_vitals(tx: Tx, readings: Mapping[UUID, tuple[JsonObject, datetime]]) -> None:
    """Store the readings of machines and their times, by agent: one statement for any number."""
    ids = sorted(readings)
    values = {
        "ids": ids,
        "hosts": [json.dumps(readings[agent_id][0]) for agent_id in ids],
        "times": [readings[agent_id][1] for agent_id in ids],
    }
    await tx.execute(_PUT_VITALS, values)


async def get_vitals(tx: Tx, agent_id: UUID) -> VitalsRow:
    columns = (agents.c.host_vitals, agents.c.host_vitals_at, agents.c.path_vitals, agents.c.path_vitals_at)
    row = (await tx.execute(select(*columns).where(agents.c.id == agent_id))).one_or_none()
    return VitalsRow(*row) if row else VitalsRow(None, None, None, None)
