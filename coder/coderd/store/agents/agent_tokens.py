"""Queries on rotated tokens of external agents. `agents.get_agent_by_token` decides which of them is valid."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import and_, delete, insert, select, update

from coder.coderd.store.engine.rows import column_values
from coder.coderd.store.tables.agents import workspace_agent_tokens as tokens

if TYPE_CHECKING:
    from coder.coderd.store.agents.agents import AgentRow
    from coder.coderd.store.engine.database import Tx


@dataclass(frozen=True, slots=True)
class AgentTokenRow:
    token: UUID
    workspace_id: UUID
    agent_name: str
    template_token: UUID
    generation: int
    """Generation from 1; 0 is the template's."""
    created_at: datetime
    used_at: datetime | None
    """Time of its first use, which invalidates all older generations."""


async def list_agent_tokens(tx: Tx, workspace_id: UUID, agent: AgentRow) -> list[AgentTokenRow]:
    """Return tokens, oldest first."""
    columns = [tokens.c[field.name] for field in fields(AgentTokenRow)]
    query = select(*columns).where(
        tokens.c.workspace_id == workspace_id,
        tokens.c.agent_name == agent.name,
        tokens.c.template_token == agent.auth_token,
    )
    return [AgentTokenRow(*row) for row in await tx.execute(query.order_by(tokens.c.generation))]


async def add_agent_token(tx: Tx, row: AgentTokenRow) -> None:
    """Insert a token. Replaces an unused one: at most two are valid at a time."""
    same = and_(
        tokens.c.workspace_id == row.workspace_id,
        tokens.c.agent_name == row.agent_name,
        tokens.c.template_token == row.template_token,
    )
    await tx.execute(delete(tokens).where(same, tokens.c.used_at.is_(None)))
    await tx.execute(insert(tokens).values(**column_values(row)))


async def mark_used(tx: Tx, token: UUID, now: datetime) -> bool:
    """Record a use; return whether it was the first."""
    done = await tx.execute(
        update(tokens).where(tokens.c.token == token, tokens.c.used_at.is_(None)).values(used_at=now)
    )
    return bool(done.rowcount)
