"""Resources that may remain outside when a workspace is abandoned, as the last build's state lists them."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import Gone
from coder.api.workspaces.workspace_inventory import RemainingResource, WorkspaceInventory
from coder.coderd.services.access.authorization import require
from coder.coderd.services.access.workspace_access import load_workspace, workspace_resource
from coder.coderd.store.workspaces import system_builds
from coder.coderd.store.workspaces.workspaces import WorkspaceRow
from coder.domain.access.policy import Subject
from coder.domain.workspaces.inventory import read_inventory

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx


async def show_inventory(ctx: Context, subject: Subject, workspace_id: UUID) -> WorkspaceInventory:
    """Return the resources in the last build's state. Raises NotFound, Forbidden."""
    require_abandonable(subject, (await load_workspace(ctx, subject, workspace_id)).workspace)
    return await ctx.db.read(load_inventory, workspace_id)


def require_abandonable(subject: Subject, workspace: WorkspaceRow) -> None:
    """Raise NotFound or Forbidden without delete permission, Gone for a deleted workspace."""
    require(subject, "delete", workspace_resource(workspace))
    if workspace.deleted:
        raise Gone("The workspace is already deleted.")


async def load_inventory(tx: Tx, workspace_id: UUID) -> WorkspaceInventory:
    """Return the resources in the last build's state."""
    last = await system_builds.get_latest_build(tx, workspace_id)
    state = await system_builds.get_state(tx, last.id) if last is not None else b""
    resources = read_inventory(state or b"")
    return WorkspaceInventory(
        workspace_id=workspace_id,
        readable=resources is not None,
        resources=[
            RemainingResource(
                address=resource.address,
                type=resource.type,
                name=resource.name,
                provider=resource.provider,
                id=resource.id,
            )
            for resource in resources or []
        ],
    )
