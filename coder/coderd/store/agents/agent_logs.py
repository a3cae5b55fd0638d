"""Queries on agents' logs. Ids grow over all agents, so `after` works as a cursor within one.

An agent's log is limited: the row that would exceed `max_length` closes it for good.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import insert, select, update

from coder.coderd.store.tables.agents import workspace_agent_logs, workspace_agents
from coder.domain.agents.agents import MIN_LINE_BYTES

if TYPE_CHECKING:
    from coder.api.base.enums import LogLevel
    from coder.coderd.store.engine.database import Tx

_logs = workspace_agent_logs
_BATCH = 1000
"""Rows of one statement."""


@dataclass(frozen=True, slots=True)
class AgentLogRow:
    id: int
    created_at: datetime
    output: str
    level: LogLevel
    log_source_id: UUID


@dataclass(frozen=True, slots=True)
class NewAgentLog:
    created_at: datetime
    output: str
    level: str


async def append_logs(
    tx: Tx, agent_id: UUID, source_id: UUID, lines: Sequence[NewAgentLog], *, max_length: int
) -> bool:
    """Store a batch as a whole or not at all. False: the log is full (and marked so); the caller still has to
    commit."""
    size = sum(max(MIN_LINE_BYTES, len(line.output.encode())) for line in lines)
    grow = (
        update(workspace_agents)
        .where(
            workspace_agents.c.id == agent_id,
            ~workspace_agents.c.logs_overflowed,
            workspace_agents.c.logs_length + size <= max_length,
        )
        .values(logs_length=workspace_agents.c.logs_length + size)
        .returning(workspace_agents.c.id)
    )
    if (await tx.execute(grow)).first() is None:
        await tx.execute(update(workspace_agents).where(workspace_agents.c.id == agent_id).values(logs_overflowed=True))
        return False
    for start in range(0, len(lines), _BATCH):
        values = [
            {
                "agent_id": agent_id,
                "log_source_id": source_id,
                "created_at": line.created_at,
                "output": line.output,
                "level": line.level,
            }
            for line in lines[start : start + _BATCH]
        ]
        await tx.execute(insert(_logs), values)
    return True


async def list_logs(
    tx: Tx, agent_id: UUID, *, after: int = 0, before: int = 0, limit: int | None = None
) -> list[AgentLogRow]:
    """Return lines with `after < id` (and `id < before` unless 0), oldest first."""
    query = (
        select(_logs.c.id, _logs.c.created_at, _logs.c.output, _logs.c.level, _logs.c.log_source_id)
        .where(_logs.c.agent_id == agent_id, _logs.c.id > after)
        .order_by(_logs.c.id)
    )
    if before:
        query = query.where(_logs.c.id < before)
    if limit is not None:
        query = query.limit(limit)
    return [AgentLogRow(*row) for row in await tx.execute(query)]
