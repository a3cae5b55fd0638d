"""Reads of agents without a subject, for loaders that check permission and for the server itself."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import select

from coder.coderd.store.agents.agents import (
    AGENT_COLUMNS,
    DETAILS,
    PLACE,
    AgentDetail,
    AgentRow,
    CurrentAgent,
    agent_detail,
    current_agent,
)
from coder.coderd.store.tables.agents import workspace_agents

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx


async def get_agent(tx: Tx, agent_id: UUID) -> AgentRow | None:
    row = (await tx.execute(select(*AGENT_COLUMNS).where(workspace_agents.c.id == agent_id))).one_or_none()
    return AgentRow(*row) if row else None


async def get_current_agent(tx: Tx, agent_id: UUID) -> CurrentAgent | None:
    """Return a current agent; None for an agent of an older build."""
    row = (await tx.execute(PLACE.where(workspace_agents.c.id == agent_id))).first()
    return current_agent(row) if row else None


async def get_agent_detail(tx: Tx, agent_id: UUID) -> AgentDetail | None:
    row = (await tx.execute(DETAILS.where(workspace_agents.c.id == agent_id))).one_or_none()
    return agent_detail(row) if row else None
