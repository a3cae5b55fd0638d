"""Queries on agents' logs. Ids grow over all agents, so `after` works as a cursor within one.

An agent's log is limited: the row that would exceed `max_length` closes it for good.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import select, text, update

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


@dataclass(frozen=True, slots=True)
class LogAppend:
    """Lines that an agent adds to its log."""

    agent_id: UUID
    source_id: UUID
    lines: Sequence[NewAgentLog]

    @property
    def size(self) -> int:
        """Bytes of the log that the lines use."""
        return sum(max(MIN_LINE_BYTES, len(line.output.encode())) for line in self.lines)


_GROW = text(
    "UPDATE workspace_agents a SET logs_length = a.logs_length + grown.size "
    "FROM unnest(CAST(:ids AS uuid[]), CAST(:sizes AS integer[])) AS grown(id, size) "
    "WHERE a.id = grown.id AND NOT a.logs_overflowed AND a.logs_length + grown.size <= :most RETURNING a.id"
)
_INSERT = text(
    "INSERT INTO workspace_agent_logs (agent_id, log_source_id, created_at, output, level) "
    "SELECT agent, source, at, output, level FROM unnest(CAST(:agents AS uuid[]), CAST(:sources AS uuid[]), "
    "CAST(:times AS timestamptz[]), CAST(:outputs AS text[]), CAST(:levels AS text[])) "
    "WITH ORDINALITY AS new(agent, source, at, output, level, number) ORDER BY number"
)


async def append_logs(
    tx: Tx, agent_id: UUID, source_id: UUID, lines: Sequence[NewAgentLog], *, max_length: int
) -> bool:
    """Store a batch as a whole or not at all. False: the log is full (and marked so); the caller still has to
    commit."""
    return (await append_all_logs(tx, [LogAppend(agent_id, source_id, lines)], max_length=max_length))[0]


async def append_all_logs(tx: Tx, appends: Sequence[LogAppend], *, max_length: int) -> list[bool]:
    """Store batches of many agents, each as `append_logs` does: two statements for any number, if every agent has
    one."""
    stored: dict[int, bool] = {}
    rest = list(enumerate(appends))
    while rest:
        turn: dict[UUID, tuple[int, LogAppend]] = {}
        for number, append in rest:
            turn.setdefault(append.agent_id, (number, append))
        grown = await _grow(tx, [append for _, append in turn.values()], max_length)
        stored |= {number: agent_id in grown for agent_id, (number, _) in turn.items()}
        rest = [(number, append) for number, append in rest if number not in stored]
    kept = [append for number, append in enumerate(appends) if stored[number]]
    rows = [(append, line) for append in kept for line in append.lines]
    for start in range(0, len(rows), _BATCH):
        some = rows[start : start + _BATCH]
        values = {
            "agents": [append.agent_id for append, _ in some],
            "sources": [append.source_id for append, _ in some],
            "times": [line.created_at for _, line in some],
            "outputs": [line.output for _, line in some],
            "levels": [line.level for _, line in some],
        }
        await tx.execute(_INSERT, values)
    return [stored[number] for number in range(len(appends))]


async def _grow(tx: Tx, appends: Sequence[LogAppend], max_length: int) -> set[UUID]:
    """Count lines of different agents; return the agents whose log has room. The others' logs are marked as full."""
    ordered = sorted(appends, key=lambda append: append.agent_id)  # the same order on all replicas avoids deadlocks
    sizes = [append.size for append in ordered]
    ids = [append.agent_id for append in ordered]
    grown = set((await tx.execute(_GROW, {"ids": ids, "sizes": sizes, "most": max_length})).scalars())
    if full := [agent_id for agent_id in ids if agent_id not in grown]:
        await tx.execute(update(workspace_agents).where(workspace_agents.c.id.in_(full)).values(logs_overflowed=True))
    return grown


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
