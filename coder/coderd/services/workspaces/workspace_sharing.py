"""Sharing a workspace with users and groups: its access control list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from uuid import UUID

from msgspec import UNSET, structs

from coder.api.base.refusals import Forbidden, Invalid, NotFound
from coder.api.workspaces.workspace_settings import (
    WorkspaceACL,
    WorkspaceGroup,
    WorkspaceUser,
)
from coder.coderd.services.access.acl_actors import RequestedRoles, hold_users, role_faults
from coder.coderd.services.access.authorization import require
from coder.coderd.services.access.workspace_access import load_workspace, lock_workspace, workspace_resource
from coder.coderd.services.templates.template_acl import acl_group
from coder.coderd.services.workspaces.workspace_settings import edit_workspace
from coder.coderd.store.access import acls as acl_store
from coder.coderd.store.access.keys import notify_sharing_revoked
from coder.coderd.store.people import system_organizations, system_users
from coder.coderd.store.workspaces.workspaces import WorkspaceRow
from coder.domain.access.policy import Subject

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx


async def get_acl(ctx: Context, subject: Subject, workspace_id: UUID) -> WorkspaceACL:
    """Return the users and groups that share the workspace. Group members are counted, not listed."""
    view = await load_workspace(ctx, subject, workspace_id)
    row = view.workspace
    user_acl, group_acl = acl_store.by_id(row.user_acl), acl_store.by_id(row.group_acl)
    users, groups = await ctx.db.read(acl_store.load_actors, list(user_acl), list(group_acl))
    return WorkspaceACL(
        users=[
            WorkspaceUser(
                id=user.id,
                username=user.username,
                name=user.name or UNSET,
                avatar_url=user.avatar_url or UNSET,
                role=user_acl[str(user.id)],
            )
            for user in users
        ],
        group=[WorkspaceGroup(**structs.asdict(acl_group(group)), role=group_acl[str(group.id)]) for group in groups],
    )


async def update_acl(
    ctx: Context,
    subject: Subject,
    workspace_id: UUID,
    user_roles: Mapping[str, str],
    group_roles: Mapping[str, str],
) -> None:
    """Grant access, or revoke it (empty role). Raises Invalid, Forbidden, NotFound."""
    organization_id = (await load_workspace(ctx, subject, workspace_id)).workspace.organization_id

    async def update(tx: Tx) -> None:
        await hold_users(tx, organization_id, user_roles)
        row = await _lock_shareable(ctx, tx, subject, workspace_id, organization_id)
        # An id has several spellings: comparing the canonical one closes the way around this check.
        if str(subject.user_id) in acl_store.by_id(user_roles):
            raise Invalid("You cannot change your own workspace sharing role.")
        requested = RequestedRoles("group_roles", group_roles), RequestedRoles("user_roles", user_roles)
        faults = await role_faults(tx, subject, row.organization_id, "workspace", *requested)
        if faults:
            raise Invalid("Invalid request to update workspace ACL", validations=faults)
        user_acl, group_acl = _merged(row.user_acl, user_roles), _merged(row.group_acl, group_roles)
        await edit_workspace(tx, row, user_acl=user_acl, group_acl=group_acl)
        await notify_sharing_revoked(tx)

    await ctx.db.run(update)


async def clear_acl(ctx: Context, subject: Subject, workspace_id: UUID) -> None:
    """Revoke the access of all users and groups. Raises Forbidden, NotFound."""
    organization_id = (await load_workspace(ctx, subject, workspace_id)).workspace.organization_id

    async def clear(tx: Tx) -> None:
        row = await _lock_shareable(ctx, tx, subject, workspace_id, organization_id)
        await edit_workspace(tx, row, user_acl={}, group_acl={})
        await notify_sharing_revoked(tx)

    await ctx.db.run(clear)


async def _lock_shareable(
    ctx: Context, tx: Tx, subject: Subject, workspace_id: UUID, organization_id: UUID
) -> WorkspaceRow:
    """Lock the workspace until the transaction ends, and return it. Raises Forbidden, NotFound.

    The organization is held, too: disabling its sharing waits for this transaction and clears what it wrote, or this
    transaction sees that sharing is disabled.
    """
    if ctx.config.disable_workspace_sharing:
        raise Forbidden("Workspace sharing is disabled for this deployment.")
    organization = await system_organizations.get_organization(tx, organization_id, hold=True)
    if organization is None:
        raise NotFound
    row = (await lock_workspace(tx, subject, workspace_id, "read")).workspace
    if organization.workspace_sharing == "none":
        raise Forbidden("Workspace sharing is disabled for this organization.")
    if organization.workspace_sharing == "service_accounts":
        owner = await system_users.get_user(tx, row.owner_id)
        if owner is None or not owner.is_service_account:
            raise Forbidden(
                "Workspace sharing is limited to service accounts in this organization.",
                "Only workspaces that a service account owns can be shared.",
            )
    require(subject, "share", workspace_resource(row))
    return row


def _merged(before: Mapping[str, str], changes: Mapping[str, str]) -> dict[str, str]:
    merged = {**acl_store.by_id(before), **acl_store.by_id(changes)}
    return {key: role for key, role in merged.items() if role}
