"""Queries on the use of applications: sessions are written as they grow, reports count minutes of them."""

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
    """Somebody's use of one application without a longer pause."""

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
    """Writes sessions, longer ones over their beginnings; those of what is gone meanwhile are left out.

    Returns the living workspaces that were used.
    """
    statement = select(workspaces.c.id, workspaces.c.template_id, workspaces.c.latest_build_id).where(
        workspaces.c.id.in_({row.workspace_id for row in rows}), ~workspaces.c.deleted
    )
    used = {row[0]: UsedWorkspace(*row) for row in await tx.execute(statement)}
    agents = select(workspace_agents.c.id).where(workspace_agents.c.id.in_({row.agent_id for row in rows}))
    known = set((await tx.execute(agents)).scalars())
    values = [
        {**{item.name: getattr(row, item.name) for item in fields(SessionRow)}, "template_id": place.template_id}
        for row in rows
        if (place := used.get(row.workspace_id)) is not None and row.agent_id in known
    ]
    if values:
        wanted = insert(workspace_app_stats).values(values)
        table = workspace_app_stats.c
        await tx.execute(
            wanted.on_conflict_do_update(
                index_elements=["session_id"],
                set_={
                    "session_ended_at": func.greatest(table.session_ended_at, wanted.excluded.session_ended_at),
                    "requests": func.greatest(table.requests, wanted.excluded.requests),
                },
                # nobody grows a session that is another's
                where=(table.user_id == wanted.excluded.user_id) & (table.workspace_id == wanted.excluded.workspace_id),
            )
        )
    return list(used.values())
