"""Members of organizations: list, load and present them, and end a membership."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from msgspec import UNSET

from coder.api.base.refusals import NotFound
from coder.api.people.organizations import OrganizationMember, OrganizationMemberWithUserData
from coder.coderd.services.access.authorization import may, require
from coder.coderd.services.people.organizations import organization_resource
from coder.coderd.services.people.user_views import slim_roles
from coder.coderd.services.people.users import narrow_users
from coder.coderd.store.access import acls as acl_store
from coder.coderd.store.access import build_keys
from coder.coderd.store.people import custom_roles as role_store
from coder.coderd.store.people import groups as group_store
from coder.coderd.store.people import organizations as store
from coder.coderd.store.people import system_organizations
from coder.coderd.store.people.organizations import MemberRow, OrganizationRow
from coder.domain.access.policy import Object, Subject, key_allows
from coder.domain.access.roles import ORGANIZATION_ROLES

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx
    from coder.coderd.store.people.users import UserFilter, UserRow


def member_resource(organization_id: UUID, user_id: UUID) -> Object:
    """Return the policy's object of a membership."""
    return Object("organization_member", str(user_id), owner_id=user_id, organization_id=organization_id)


async def list_members(
    ctx: Context, subject: Subject, organization: OrganizationRow, filters: UserFilter
) -> tuple[list[MemberRow], int]:
    """Return a page of members and the number of matches. A key that lists single members reads only those."""
    require(subject, "read", organization_resource(organization.id))
    narrowed = narrow_users(subject, "organization_member", filters)
    return ([], 0) if narrowed is None else await ctx.db.read(store.list_members, organization.id, narrowed)


async def get_member(
    ctx: Context, subject: Subject, organization: OrganizationRow, user: UserRow, action: str = "read"
) -> MemberRow:
    """Load a member. Members of an organization may see each other. Raises NotFound."""
    row = await ctx.db.read(system_organizations.get_member, organization.id, user.id)
    if row is None:
        raise NotFound
    if action != "read" or not sees_member(subject, organization.id, user.id):
        require(subject, action, member_resource(organization.id, user.id))
    return row


def sees_member(subject: Subject, organization_id: UUID, user_id: UUID) -> bool:
    """Return whether the caller may read a membership. Members of an organization may see each other."""
    resource = member_resource(organization_id, user_id)
    if may(subject, "read", organization_resource(organization_id)) and key_allows(subject, "read", resource):
        return True
    return may(subject, "read", resource)


async def organizations_of(ctx: Context, subject: Subject, user_id: UUID) -> list[OrganizationRow]:
    """Return the organizations of a user that the caller may read."""
    rows = await ctx.db.read(store.list_organizations_of, user_id)
    return [row for row in rows if may(subject, "read", organization_resource(row.id))]


async def leave_organization(tx: Tx, organization_id: UUID, user_id: UUID) -> None:
    """Delete a membership, with the member's groups, everything shared with the user, and the user's identity in the
    organization's workspaces."""
    # Lock the membership first and query the rest afterwards: only holders of the lock add groups and shares.
    await store.lock_member(tx, organization_id, user_id)
    await group_store.leave_groups(tx, organization_id, user_id)
    await acl_store.revoke_user(tx, organization_id, user_id)
    await store.delete_member(tx, organization_id, user_id)
    await build_keys.delete_build_keys_of_member(tx, organization_id, user_id)


async def role_titles(ctx: Context, organization_id: UUID, rows: Sequence[MemberRow]) -> dict[str, str]:
    """Return display names of the organization's custom roles among the members' roles. No query when there are
    none.
    """
    own = sorted({name for row in rows for name in row.roles if name not in ORGANIZATION_ROLES})
    if not own:
        return {}
    return {role.name: role.display_name for role in await ctx.db.read(role_store.list_roles, organization_id, own)}


def member_view(row: MemberRow, titles: Mapping[str, str] = {}) -> OrganizationMember:
    return OrganizationMember(
        user_id=row.user_id,
        organization_id=row.organization_id,
        created_at=row.created_at,
        updated_at=row.updated_at,
        roles=slim_roles(row.roles, row.organization_id, titles),
    )


def member_with_user_view(row: MemberRow, titles: Mapping[str, str] = {}) -> OrganizationMemberWithUserData:
    return OrganizationMemberWithUserData(
        user_id=row.user_id,
        organization_id=row.organization_id,
        created_at=row.created_at,
        updated_at=row.updated_at,
        roles=slim_roles(row.roles, row.organization_id, titles),
        username=row.username,
        name=row.name or UNSET,
        avatar_url=row.avatar_url or UNSET,
        email=row.email,
        status=row.status,
        login_type=row.login_type,
        last_seen_at=row.last_seen_at,
        user_created_at=row.user_created_at,
        user_updated_at=row.user_updated_at,
        global_roles=slim_roles(row.global_roles),
        has_ai_seat=False,
        is_service_account=row.is_service_account or UNSET,
    )
