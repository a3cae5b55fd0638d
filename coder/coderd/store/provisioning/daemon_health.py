"""Queries on measurements of provisioner daemons over the mesh."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import delete, func, select
from sqlalchemy.dialects.postgresql import insert

from coder.base.json_types import JsonObject
from coder.coderd.store.tables.provisioners import provisioner_daemon_health

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx

_health = provisioner_daemon_health


@dataclass(frozen=True, slots=True)
class HealthRow:
    """Last poll of a daemon."""

    daemon_id: UUID
    measured_at: datetime
    answered_at: datetime | None
    """Time of the last answered poll."""
    unreachable_since: datetime | None
    """Time of the first failed poll since then."""
    latency: float | None
    """Seconds from the request to the complete response."""
    problem: str
    report: JsonObject
    """Last report of the daemon."""


_COLUMNS = tuple(_health.c[field.name] for field in fields(HealthRow))


async def record_answer(tx: Tx, daemon_id: UUID, now: datetime, latency: float, report: JsonObject) -> None:
    values = {
        "measured_at": now,
        "answered_at": now,
        "unreachable_since": None,
        "latency": latency,
        "problem": "",
        "report": report,
    }
    query = insert(_health).values(daemon_id=daemon_id, **values)
    await tx.execute(query.on_conflict_do_update(index_elements=[_health.c.daemon_id], set_=values))


async def record_silence(tx: Tx, daemon_id: UUID, now: datetime, problem: str) -> None:
    """Record a failed poll; the last report is kept."""
    query = insert(_health).values(daemon_id=daemon_id, measured_at=now, unreachable_since=now, problem=problem)
    changed = {
        "measured_at": now,
        "problem": problem,
        "unreachable_since": func.coalesce(_health.c.unreachable_since, now),
    }
    await tx.execute(query.on_conflict_do_update(index_elements=[_health.c.daemon_id], set_=changed))


async def forget_health(tx: Tx, daemon_id: UUID) -> None:
    """Delete the measurements of a daemon that reconnected, perhaps without joining the mesh."""
    await tx.execute(delete(_health).where(_health.c.daemon_id == daemon_id))


async def list_health(tx: Tx, daemon_ids: Collection[UUID] | None = None) -> dict[UUID, HealthRow]:
    """Return measurements by daemon; `None`: of all daemons."""
    query = select(*_COLUMNS)
    if daemon_ids is not None:
        query = query.where(_health.c.daemon_id.in_(daemon_ids))
    return {row.daemon_id: HealthRow(*row) for row in await tx.execute(query)}
