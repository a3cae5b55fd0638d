"""Groups: find, list and present them. `group_changes` creates, changes and deletes them.

Members of a group share access and quota. Every organization has the group Everyone, with the organization's id; its
members are those of the organization, and the group cannot be renamed. Members of a group can read the group. Only
callers with read permission on group members see the list of members.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import InvalidFields, NotFound
from coder.api.people.groups import Group, GroupMembersResponse
from coder.coderd.services.access.application_limits import refuse_applications
from coder.coderd.services.access.authorization import may, require
from coder.coderd.services.people.user_views import reduced_user
from coder.coderd.services.people.users import may_name
from coder.coderd.store.engine import names as name_store
from coder.coderd.store.people import groups as store
from coder.coderd.store.people import system_groups, system_users
from coder.coderd.store.people import users as user_store
from coder.coderd.store.people.groups import GroupRow as GroupRow
from coder.domain.access.policy import Class, Object, Subject, Target

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx
    from coder.coderd.store.people.organizations import OrganizationRow
    from coder.coderd.store.people.users import UserRow

_READ = frozenset({"read"})


def group_resource(row: GroupRow) -> Target:
    """Return the resource of a group, which the group's members may read."""
    return Object("group", str(row.id), organization_id=row.organization_id, group_acl={str(row.id): _READ})


def _may_see_member(subject: Subject, row: GroupRow, user_id: UUID) -> bool:
    resource = Object("group_member", str(user_id), owner_id=user_id, organization_id=row.organization_id)
    return may(subject, "read", resource)


async def load_group(ctx: Context, subject: Subject, group_id: UUID, action: str = "read") -> GroupRow:
    """Load a group. Raises NotFound unless the caller may read it, Forbidden when only `action` is not allowed, and for
    an application that would change it."""
    row = _checked(subject, await ctx.db.read(system_groups.get_group, group_id), action)
    if action == "update":
        await refuse_applications(ctx, subject, "group")
    return row


async def load_group_by_name(ctx: Context, subject: Subject, organization: OrganizationRow, name: str) -> GroupRow:
    return _checked(subject, await ctx.db.read(system_groups.get_group_by_name, organization.id, name), "read")


def _checked(subject: Subject, row: GroupRow | None, action: str) -> GroupRow:
    if row is None:
        raise NotFound
    require(subject, action, group_resource(row))
    return row


async def list_groups(
    ctx: Context, subject: Subject, *, organization: str = "", has_member: str = "", ids: Sequence[UUID] = ()
) -> list[Group]:
    """List the groups the caller may read, with members. Raises Invalid for an unknown organization or user."""
    rows = await ctx.db.read(_list, subject, organization, has_member, ids)
    readable = [row for row in rows if may(subject, "read", group_resource(row))]
    members = await ctx.db.read(store.list_members, [row.id for row in readable])
    return [group_view(subject, row, members[row.id]) for row in readable]


async def _list(tx: Tx, subject: Subject, organization: str, has_member: str, ids: Sequence[UUID]) -> list[GroupRow]:
    organization_id = member_id = None
    if organization:
        organization_id = await name_store.find_organization(tx, organization)
        if organization_id is None or not may(
            subject, "read", Object("organization", str(organization_id), organization_id=organization_id)
        ):
            raise InvalidFields(
                ("organization", f'Organization "{organization}" either does not exist, or you are unauthorized'),
                message="Query parameters have invalid values.",
            )
    if has_member:
        member_id = await name_store.find_user(tx, has_member)
        person = None if member_id is None else await system_users.get_user(tx, member_id)
        if person is None or not may_name(subject, person):
            raise InvalidFields(
                ("has_member", f'User "{has_member}" either does not exist, or you are unauthorized to view them'),
                message="Query parameters have invalid values.",
            )
    return await store.list_groups(tx, organization_id=organization_id, has_member=member_id, ids=ids)


async def show(ctx: Context, subject: Subject, row: GroupRow, *, with_members: bool = True) -> Group:
    """Present a group as the API shows it."""
    members = (await ctx.db.read(store.list_members, [row.id]))[row.id] if with_members else []
    return group_view(subject, row, members)


async def members_page(
    ctx: Context, subject: Subject, row: GroupRow, filters: user_store.UserFilter
) -> GroupMembersResponse:
    """Return a page of the members the caller may see: all of them, or only the caller."""
    sees_all = may(subject, "read", Class("group_member", organization_id=row.organization_id))
    visible = filters if sees_all else replace(filters, only_id=subject.user_id)
    people, count = await ctx.db.read(store.page_members, row.id, visible)
    return GroupMembersResponse(users=[reduced_user(user) for user in people], count=count)


def group_view(subject: Subject, row: GroupRow, members: Sequence[UserRow]) -> Group:
    return Group(
        id=row.id,
        name=row.name,
        display_name=row.display_name,
        organization_id=row.organization_id,
        members=[reduced_user(user) for user in members if _may_see_member(subject, row, user.id)],
        total_member_count=row.member_count,
        avatar_url=row.avatar_url,
        quota_allowance=row.quota_allowance,
        source=row.source,
        organization_name=row.organization_name,
        organization_display_name=row.organization_display_name,
    )
