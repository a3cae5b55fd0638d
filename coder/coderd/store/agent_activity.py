"""Queries that keep a workspace alive while somebody uses it: last use, and the deadline moved on."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import select, update

from coder.coderd.store.tables.builds import workspace_builds
from coder.coderd.store.tables.templates import templates
from coder.coderd.store.tables.workspaces import workspaces

if TYPE_CHECKING:
    from coder.coderd.store.database import Tx

_BUMP_SHARE = 0.05
"""A deadline moves only when it gains this share of the bump: otherwise every report would write a row."""


async def touch_workspace(tx: Tx, workspace_id: UUID, now: datetime) -> None:
    await tx.execute(update(workspaces).where(workspaces.c.id == workspace_id).values(last_used_at=now))


async def bump_deadline(tx: Tx, build_id: UUID, now: datetime) -> bool:
    """Moves the build's deadline to `now` plus the template's bump, never past its maximum. True when it moved."""
    query = (
        select(workspace_builds.c.deadline, workspace_builds.c.max_deadline, templates.c.activity_bump_ms)
        .join(workspaces, workspaces.c.id == workspace_builds.c.workspace_id)
        .join(templates, templates.c.id == workspaces.c.template_id)
        .where(workspace_builds.c.id == build_id)
    )
    row = (await tx.execute(query)).one_or_none()
    if row is None or row.deadline is None or not row.activity_bump_ms:
        return False
    bump = timedelta(milliseconds=row.activity_bump_ms)
    wanted = min(now + bump, row.max_deadline) if row.max_deadline else now + bump
    if wanted - row.deadline < bump * _BUMP_SHARE:
        return False
    await tx.execute(update(workspace_builds).where(workspace_builds.c.id == build_id).values(deadline=wanted))
    return True
