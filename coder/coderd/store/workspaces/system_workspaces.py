"""Reads of workspaces without a subject, for loaders that check permission and for the server itself."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import func, select

from coder.coderd.store.tables.agents import workspace_agents
from coder.coderd.store.tables.builds import workspace_builds
from coder.coderd.store.tables.workspaces import workspaces
from coder.coderd.store.workspaces.workspaces import COLUMNS, VIEW, WorkspaceRow, WorkspaceView, workspace_from

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx


async def get_view(tx: Tx, workspace_id: UUID) -> WorkspaceView | None:
    """Return a workspace, deleted ones too."""
    row = (await tx.execute(VIEW.where(workspaces.c.id == workspace_id))).one_or_none()
    return workspace_from(row) if row else None


async def get_view_by_name(tx: Tx, owner_id: UUID, name: str, *, include_deleted: bool = False) -> WorkspaceView | None:
    """Return a workspace by name without regard to case; with `include_deleted` the youngest, living before deleted."""
    query = VIEW.where(workspaces.c.owner_id == owner_id, func.lower(workspaces.c.name) == func.lower(name))
    if not include_deleted:
        query = query.where(~workspaces.c.deleted)
    query = query.order_by(workspaces.c.deleted, workspaces.c.created_at.desc()).limit(1)
    row = (await tx.execute(query)).one_or_none()
    return workspace_from(row) if row else None


async def get_workspace(tx: Tx, workspace_id: UUID, *, lock: bool = False) -> WorkspaceRow | None:
    """Return a workspace. `lock` keeps others from building or editing it until the transaction ends."""
    query = select(*COLUMNS).where(workspaces.c.id == workspace_id)
    row = (await tx.execute(query.with_for_update() if lock else query)).one_or_none()
    return WorkspaceRow(*row) if row else None


async def get_workspace_of_agent(tx: Tx, agent_id: UUID) -> WorkspaceRow | None:
    """Return the workspace of any agent, including deleted workspaces and older builds."""
    query = (
        select(*COLUMNS)
        .join(workspace_builds, workspace_builds.c.workspace_id == workspaces.c.id)
        .join(workspace_agents, workspace_agents.c.job_id == workspace_builds.c.job_id)
        .where(workspace_agents.c.id == agent_id)
    )
    row = (await tx.execute(query)).one_or_none()
    return WorkspaceRow(*row) if row else None
