"""Queries on the use of applications: sessions are written as they grow, reports count their minutes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import insert

from coder.coderd.store.tables.agents import workspace_agents
from coder.coderd.store.tables.apps import workspace_app_stats
from coder.coderd.store.tables.workspaces import workspaces

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx


@dataclass(frozen=True, slots=True)
class SessionRow:
    """Use of one application by a user without a longer pause."""

    session_id: UUID
    user_id: UUID
    workspace_id: UUID
    agent_id: UUID
    access_method: str
    slug_or_port: str
    session_started_at: datetime
    session_ended_at: datetime
    requests: int


@dataclass(frozen=True, slots=True)
class UsedWorkspace:
    id: UUID
    template_id: UUID
    build_id: UUID | None


async def put_sessions(tx: Tx, rows: Sequence[SessionRow]) -> list[UsedWorkspace]:
    """Upsert sessions, longer ones over their beginnings; sessions of deleted objects are left out.

    Returns the living workspaces that were used.
    """
    statement = select(workspaces.c.id, workspaces.c.template_id, workspaces.c.latest_build_id).where(
        workspaces.c.id.in_({row.workspace_id for row in rows}), ~workspaces.c.deleted
    )
    used = {row[0]: UsedWorkspace(*row) for row in await tx.execute(statement)}
    agents = select(workspace_agents.c.id).where(workspace_agents.c.id.in_({row.agent_id for row in rows}))
    known = set((await tx.execute(agents)).scalars())
    values = [
        {**{item.name: getattr(row, item.name) for item in fields(SessionRow)}, "template_id": workspace.template_id}
        for row in rows
        if (workspace := used.get(row.workspace_id)) is not None and row.agent_id in known
    ]
    if values:
        upsert = insert(workspace_app_stats).values(values)
        table = workspace_app_stats.c
        await tx.execute(
            upsert.on_conflict_do_update(
                index_elements=["session_id"],
                set_={
                    "session_ended_at": func.greatest(table.session_ended_at, upsert.excluded.session_ended_at),
                    "requests": func.greatest(table.requests, upsert.excluded.requests),
                },
                # a user cannot extend another user's session
                where=(table.user_id == upsert.excluded.user_id) & (table.workspace_id == upsert.excluded.workspace_id),
            )
        )
    return list(used.values())
