"""Queries on the state of monitored memory and volumes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert

from coder.coderd.store.tables.agents import resource_monitors as monitors

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx


@dataclass(frozen=True, slots=True)
class MonitorRow:
    path: str
    """Path of the volume; empty for the memory."""
    state: str
    quiet_until: datetime | None


async def list_monitors(tx: Tx, agent_id: UUID) -> dict[str, MonitorRow]:
    """Return monitors by path."""
    statement = select(monitors.c.path, monitors.c.state, monitors.c.quiet_until).where(monitors.c.agent_id == agent_id)
    return {row[0]: MonitorRow(*row) for row in await tx.execute(statement)}


async def put_monitor(tx: Tx, agent_id: UUID, row: MonitorRow) -> None:
    values = {"agent_id": agent_id, "path": row.path, "state": row.state, "quiet_until": row.quiet_until}
    statement = insert(monitors).values(**values)
    await tx.execute(statement.on_conflict_do_update(index_elements=["agent_id", "path"], set_=values))
