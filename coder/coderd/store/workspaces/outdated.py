"""Workspaces that a new version of their template would change."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import select

from coder.coderd.store.site.site_settings import PREBUILDS_USER_ID
from coder.coderd.store.tables.builds import workspace_builds
from coder.coderd.store.tables.workspaces import workspaces
from coder.coderd.store.workspaces.workspaces import COLUMNS, WorkspaceRow

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx


async def list_outdated(tx: Tx, template_id: UUID, version_id: UUID) -> list[WorkspaceRow]:
    """Return the workspaces of a template whose last build has another version, the last used first.

    Unclaimed prebuilt workspaces are left out: another version replaces them, it does not update them.
    """
    query = (
        select(*COLUMNS)
        .join(workspace_builds, workspace_builds.c.id == workspaces.c.latest_build_id)
        .where(
            workspaces.c.template_id == template_id,
            workspaces.c.deleted.is_(False),
            workspaces.c.owner_id != PREBUILDS_USER_ID,
            workspace_builds.c.template_version_id != version_id,
        )
        .order_by(workspaces.c.last_used_at.desc(), workspaces.c.id)
    )
    return [WorkspaceRow(*row) for row in await tx.execute(query)]
