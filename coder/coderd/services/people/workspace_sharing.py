"""Kinds of owners whose workspaces may be shared, in an organization."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

from msgspec import UNSET

from coder.api.base.refusals import Forbidden
from coder.api.workspaces.workspace_settings import (
    ShareableWorkspaceOwners,
    UpdateWorkspaceSharingSettingsRequest,
    WorkspaceSharingSettings,
)
from coder.coderd.services.access.authorization import require
from coder.coderd.services.people.organizations import lock_organization, organization_resource
from coder.coderd.store.access import acls as acl_store
from coder.coderd.store.people import organizations as organization_store
from coder.domain.access.policy import Subject

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx
    from coder.coderd.store.people.organizations import OrganizationRow


def sharing_view(ctx: Context, organization: OrganizationRow) -> WorkspaceSharingSettings:
    off = ctx.config.disable_workspace_sharing
    owners = organization.workspace_sharing
    return WorkspaceSharingSettings(
        sharing_globally_disabled=off,
        sharing_disabled=owners == "none",
        shareable_workspace_owners=owners,
    )


async def change_sharing(
    ctx: Context, subject: Subject, organization: OrganizationRow, request: UpdateWorkspaceSharingSettingsRequest
) -> WorkspaceSharingSettings:
    """Change the sharing settings. Disabling sharing removes existing shares. Raises Forbidden, InvalidFields."""
    require(subject, "update", organization_resource(organization.id))
    if ctx.config.disable_workspace_sharing:
        raise Forbidden(
            "Workspace sharing is disabled for this deployment.",
            "Start the server without --disable-workspace-sharing to decide it for each organization.",
        )

    async def write(tx: Tx) -> ShareableWorkspaceOwners:
        owners = (await lock_organization(tx, organization.id)).workspace_sharing
        if request.shareable_workspace_owners:
            owners = cast("ShareableWorkspaceOwners", request.shareable_workspace_owners)
        elif request.sharing_disabled is not UNSET:
            owners = "none" if request.sharing_disabled else "everyone"
        await organization_store.update_organization(
            tx, organization.id, workspace_sharing=owners, updated_at=ctx.clock.now()
        )
        if owners != "everyone":
            await acl_store.clear_workspace_acls(tx, organization.id, people_only=owners == "service_accounts")
        return owners

    return sharing_view(ctx, replace(organization, workspace_sharing=await ctx.db.run(write)))
