"""Add and remove members of an organization, and set their roles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import Forbidden, Invalid, NotFound
from coder.api.people.organizations import OrganizationMember
from coder.coderd.services.access.application_limits import refuse_applications
from coder.coderd.services.access.authorization import may, require
from coder.coderd.services.foundation.uniqueness import constraint_refusals
from coder.coderd.services.people.members import (
    get_member,
    leave_organization,
    member_resource,
    member_view,
    role_titles,
)
from coder.coderd.services.people.organization_settings import effective_organization_sync, load_role_sync
from coder.coderd.services.people.organizations import hold_organization
from coder.coderd.services.people.role_assignment import (
    denying_roles,
    hold_roles_of_both,
    require_assign,
    require_default_roles,
    roles_to_assign,
    unknown_roles,
)
from coder.coderd.store.people import organizations as store
from coder.coderd.store.people import system_organizations, system_users
from coder.coderd.store.people.organizations import MemberRow, OrganizationRow
from coder.domain.access.policy import Class, Subject

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx
    from coder.coderd.store.people.users import UserRow


_NO_MEMBERSHIP = (
    "Organization sync is enabled for OIDC users, meaning manual organization assignment is not allowed for this user."
)
NO_ROLES = "Cannot modify roles for OIDC users when role sync is enabled."
"""Message of upstream for member roles and site roles that claims decide about."""


async def add_member(
    ctx: Context, subject: Subject, organization: OrganizationRow, user: UserRow
) -> OrganizationMember:
    """Add a user to an organization.

    Raises NotFound, Forbidden, and Invalid for a member or for default roles the caller may not assign,
    or that the identity provider decides about.
    """
    require(subject, "create", Class("organization_member", organization_id=organization.id))
    if roles_to_assign(organization):
        await refuse_applications(ctx, subject, "role_grant")
    await _require_manual_membership(ctx, user)
    now = ctx.clock.now()

    async def write(tx: Tx) -> None:
        # Lock the user first, as a login does, which also inserts memberships: the row references both.
        locked = await system_users.get_user(tx, user.id, hold=True)
        if locked is None or locked.deleted:
            raise NotFound
        require_default_roles(subject, await hold_organization(tx, organization.id))
        await store.insert_member(tx, organization.id, user.id, now)

    message = f"{user.username} is already a member of {organization.display_name}"
    with constraint_refusals({"pk_organization_members": Invalid("User is already an organization member.", message)}):
        await ctx.db.run(write)
    row = await ctx.db.read(system_organizations.get_member, organization.id, user.id)
    if row is None:
        raise NotFound
    return member_view(row)


async def remove_member(ctx: Context, subject: Subject, organization: OrganizationRow, user: UserRow) -> None:
    """Remove a user from an organization.

    Raises NotFound, Forbidden, and Invalid for the caller. Removing and adding a member again would take away a role
    that denies a permission, so removing requires the right to unassign that role.
    """
    if user.id == subject.user_id:
        raise Invalid("cannot remove self from an organization")
    removed = await get_member(ctx, subject, organization, user)
    if not may(subject, "delete", member_resource(organization.id, user.id)):
        raise NotFound  # recorded: NotFound, not Forbidden, though members see each other
    if await ctx.db.read(denying_roles, organization.id, removed.roles):
        await refuse_applications(ctx, subject, "role_grant")  # the user could be added again without the denial
    await _require_manual_membership(ctx, user)

    async def write(tx: Tx) -> None:
        await hold_roles_of_both(tx, subject, user.id, organization)
        member = await system_organizations.get_member(tx, organization.id, user.id, lock=True)
        if member is None:
            raise NotFound
        denying = await denying_roles(tx, organization.id, member.roles)
        try:
            if denying:
                require_assign(subject, organization.id, unassigned=denying)
        except (Forbidden, Invalid) as refusal:
            raise Forbidden(
                f'"{user.username}" has a role that denies permissions: {", ".join(denying)}.',
                "You need permission to unassign this role to remove the member.",
            ) from refusal
        await leave_organization(tx, organization.id, user.id)

    await ctx.db.run(write)


async def set_member_roles(
    ctx: Context, subject: Subject, organization: OrganizationRow, user: UserRow, roles: Sequence[str]
) -> OrganizationMember:
    """Set the roles of a member.

    Raises Invalid for the caller's own roles, unknown roles and roles the caller may not assign or unassign.
    """
    await get_member(ctx, subject, organization, user)
    if user.id == subject.user_id:
        raise Invalid(
            "You cannot change your own organization roles.",
            "Another user with the appropriate permissions must change your roles.",
        )
    require_assign(subject, organization.id)
    await _require_manual_member_roles(ctx, user, organization.id)
    await refuse_applications(ctx, subject, "role_grant")
    names = sorted(set(roles))

    async def write(tx: Tx) -> MemberRow:
        unknown = await unknown_roles(tx, organization.id, names)
        await hold_roles_of_both(tx, subject, user.id, organization)
        if unknown:
            raise Invalid(f'"{unknown[0]}:{organization.id}" is not a supported role')
        member = await system_organizations.get_member(tx, organization.id, user.id, lock=True)
        if member is None:
            raise NotFound
        # Compare with the current roles: the caller must be allowed to undo a concurrent change.
        before = set(member.roles)
        require_assign(subject, organization.id, set(names) - before, before - set(names))
        await store.update_member_roles(tx, organization.id, user.id, names)
        return replace(member, roles=names)

    row = await ctx.db.run(write)
    return member_view(row, await role_titles(ctx, organization.id, [row]))


# ---- memberships and roles that the identity provider assigns at each login: users do not change them by hand


async def _require_manual_membership(ctx: Context, user: UserRow) -> None:
    """Raise Invalid if organization sync decides about the user's memberships."""

    async def is_synced(tx: Tx) -> bool:
        return bool((await effective_organization_sync(ctx, tx)).field)

    if user.login_type == "oidc" and await ctx.db.read(is_synced):
        detail = (
            f"User {user.username} is an OIDC user and organization sync is enabled. "
            "Ask an administrator to resolve the membership in your external IDP."
        )
        raise Invalid(_NO_MEMBERSHIP, detail)


async def _require_manual_member_roles(ctx: Context, user: UserRow, organization_id: UUID) -> None:
    """Raise Invalid if role sync decides about the user's roles in the organization."""
    if user.login_type == "oidc" and (await ctx.db.read(load_role_sync, organization_id)).field:
        raise Invalid(
            f"{NO_ROLES} This organization member's roles are managed by the identity provider. "
            "Have the user re-login to refresh their roles.",
            "'User Role Field' is set in the organization settings. Ask an administrator to adjust or disable these "
            "settings.",
        )
