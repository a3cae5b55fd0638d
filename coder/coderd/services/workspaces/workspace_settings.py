"""Settings of a workspace that need no build: its name, automatic updates, the owner's favorite.

Every change notifies the watchers in the same transaction. Neighbours: `workspace_schedule.py`,
`workspace_dormancy.py`, `workspace_sharing.py`, `port_shares.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack
from uuid import UUID

from coder.api.base.refusals import Conflict, Forbidden, Invalid, NotFound
from coder.api.workspaces.workspace_settings import (
    UpdateWorkspaceAutomaticUpdatesRequest,
    UpdateWorkspaceRequest,
)
from coder.coderd.services.access.authorization import may, require
from coder.coderd.services.access.workspace_access import lock_workspace, workspace_resource
from coder.coderd.services.foundation.field_checks import check_request
from coder.coderd.services.foundation.uniqueness import constraint_refusals
from coder.coderd.services.workspaces.new_workspaces import NAME_IN_USE, NAME_INDEX
from coder.coderd.store.workspaces import workspaces as workspace_store
from coder.coderd.store.workspaces.change_feed import Kind, notify_change
from coder.coderd.store.workspaces.workspaces import WorkspaceRow
from coder.domain.access.policy import Subject

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx


async def rename_workspace(ctx: Context, subject: Subject, workspace_id: UUID, request: UpdateWorkspaceRequest) -> None:
    """Rename a workspace. Raises InvalidFields, Invalid (renames are disabled), Forbidden, Conflict (name taken)."""

    async def rename(tx: Tx) -> None:
        row = (await lock_workspace(tx, subject, workspace_id, "read")).workspace
        check_request(request, {"name": row.name})
        if request.name == row.name:
            return
        if not ctx.config.allow_workspace_renames:
            raise Invalid("Workspace renames are not allowed.")
        if not may(subject, "update", workspace_resource(row)):
            raise Forbidden
        await workspace_store.update_workspace(tx, row.id, name=str(request.name))
        await notify_change(tx, "settings", owner_id=row.owner_id, workspace_id=row.id)

    taken = Conflict(f'The workspace "{request.name}" already exists.', validations=[("name", NAME_IN_USE)])
    with constraint_refusals({NAME_INDEX: taken}):
        await ctx.db.run(rename)


async def set_automatic_updates(
    ctx: Context, subject: Subject, workspace_id: UUID, request: UpdateWorkspaceAutomaticUpdatesRequest
) -> None:
    """Set whether the workspace updates when it starts. Raises NotFound, InvalidFields."""

    async def write(tx: Tx) -> None:
        row = (await lock_workspace(tx, subject, workspace_id, "read")).workspace
        if not may(subject, "update", workspace_resource(row)):
            raise NotFound  # upstream hides the workspace here, unlike the other settings
        check_request(request)
        await edit_workspace(tx, row, automatic_updates=request.automatic_updates)

    await ctx.db.run(write)


async def set_favorite(ctx: Context, subject: Subject, workspace_id: UUID, favorite: bool) -> None:
    """Mark or unmark an owner's favorite. Raises NotFound, Forbidden."""

    async def write(tx: Tx) -> None:
        row = (await lock_workspace(tx, subject, workspace_id, "read")).workspace
        if row.owner_id != subject.user_id:
            raise Forbidden("You can only favorite workspaces that you own.")
        require(subject, "update", workspace_resource(row))
        await edit_workspace(tx, row, favorite=favorite)

    await ctx.db.run(write)


async def edit_workspace(
    tx: Tx, row: WorkspaceRow, kind: Kind = "settings", **values: Unpack[workspace_store.WorkspaceChanges]
) -> None:
    """Update a row returned by `lock_workspace`, and notify its watchers."""
    await workspace_store.update_workspace(tx, row.id, **values)
    await notify_change(tx, kind, owner_id=row.owner_id, workspace_id=row.id)
