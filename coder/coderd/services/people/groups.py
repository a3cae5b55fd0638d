"""Groups: people of an organization who get access and quota together.

Every organization has the group Everyone, which has its id; its members are the organization's and it keeps its
name. Group members see their groups; who is in them is for those who may read group members.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

from coder.api.base.refusals import Conflict, Invalid, InvalidFields, NotFound
from coder.api.people.groups import CreateGroupRequest, Group, GroupMembersResponse, PatchGroupRequest
from coder.base.ids import new_uuid
from coder.coderd.services.access.authorization import may, require
from coder.coderd.services.foundation.field_checks import check_request
from coder.coderd.services.foundation.uniqueness import told_as
from coder.coderd.services.people.organizations import hold_organization
from coder.coderd.services.people.user_views import reduced_user
from coder.coderd.services.people.users import may_name
from coder.coderd.store.engine import names as name_store
from coder.coderd.store.people import groups as store
from coder.coderd.store.people import organizations as organization_store
from coder.coderd.store.people import users as user_store
from coder.coderd.store.people.groups import EVERYONE
from coder.coderd.store.people.groups import GroupRow as GroupRow
from coder.domain.access.policy import Resource, Subject

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx
    from coder.coderd.store.people.organizations import OrganizationRow
    from coder.coderd.store.people.users import UserRow

_READ = frozenset({"read"})


def group_resource(row: GroupRow) -> Resource:
    """A group may be read by those in it."""
    return Resource("group", id=str(row.id), organization_id=row.organization_id, group_acl={str(row.id): _READ})


def _may_see_member(subject: Subject, row: GroupRow, user_id: UUID) -> bool:
    resource = Resource("group_member", id=str(user_id), owner_id=user_id, organization_id=row.organization_id)
    return may(subject, "read", resource)


# ---- finding


async def load_group(ctx: Context, subject: Subject, group_id: UUID, action: str = "read") -> GroupRow:
    """Raises NotFound when it may not be read, Forbidden when only not changed."""
    return _checked(subject, await ctx.db.read(store.get_group, group_id), action)


async def load_group_by_name(ctx: Context, subject: Subject, organization: OrganizationRow, name: str) -> GroupRow:
    return _checked(subject, await ctx.db.read(store.get_group_by_name, organization.id, name), "read")


def _checked(subject: Subject, row: GroupRow | None, action: str) -> GroupRow:
    if row is None:
        raise NotFound
    require(subject, action, group_resource(row))
    return row


async def list_groups(
    ctx: Context, subject: Subject, *, organization: str = "", has_member: str = "", ids: Sequence[UUID] = ()
) -> list[Group]:
    """Those the caller may read, with their members. Raises Invalid for an unknown organization or user."""
    rows = await ctx.db.read(_list, subject, organization, has_member, ids)
    seen = [row for row in rows if may(subject, "read", group_resource(row))]
    members = await ctx.db.read(store.list_members, [row.id for row in seen])
    return [group_view(subject, row, members[row.id]) for row in seen]


async def _list(tx: Tx, subject: Subject, organization: str, has_member: str, ids: Sequence[UUID]) -> list[GroupRow]:
    organization_id = member_id = None
    if organization:
        organization_id = await name_store.find_organization(tx, organization)
        if organization_id is None or not may(
            subject, "read", Resource("organization", id=str(organization_id), organization_id=organization_id)
        ):
            raise InvalidFields(
                ("organization", f'Organization "{organization}" either does not exist, or you are unauthorized'),
                message="Query parameters have invalid values.",
            )
    if has_member:
        member_id = await name_store.find_user(tx, has_member)
        person = None if member_id is None else await user_store.get_user(tx, member_id)
        if person is None or not may_name(subject, person):
            raise InvalidFields(
                ("has_member", f'User "{has_member}" either does not exist, or you are unauthorized to view them'),
                message="Query parameters have invalid values.",
            )
    return await store.list_groups(tx, organization_id=organization_id, has_member=member_id, ids=ids)


async def show(ctx: Context, subject: Subject, row: GroupRow, *, with_members: bool = True) -> Group:
    """A group as the API shows it."""
    members = (await ctx.db.read(store.list_members, [row.id]))[row.id] if with_members else []
    return group_view(subject, row, members)


async def members_page(
    ctx: Context, subject: Subject, row: GroupRow, wanted: user_store.UserFilter
) -> GroupMembersResponse:
    """One page of the members the caller may see: all of them, or oneself."""
    everybody = may(subject, "read", Resource("group_member", organization_id=row.organization_id))
    seen = wanted if everybody else replace(wanted, only_id=subject.user_id)
    people, count = await ctx.db.read(store.page_members, row.id, seen)
    return GroupMembersResponse(users=[reduced_user(user) for user in people], count=count)


# ---- changing


async def create_group(
    ctx: Context, subject: Subject, organization: OrganizationRow, wanted: CreateGroupRequest
) -> Group:
    """Raises Forbidden, InvalidFields, Conflict."""
    require(subject, "create", Resource("group", organization_id=organization.id), hidden=False)
    _check_reserved(wanted.name)
    values = {
        "id": new_uuid(),
        "organization_id": organization.id,
        "name": wanted.name,
        "display_name": wanted.display_name,
        "avatar_url": wanted.avatar_url,
        "quota_allowance": _allowance(wanted.quota_allowance),
        "source": "user",
    }

    async def insert(tx: Tx) -> None:
        await hold_organization(tx, organization.id)
        await store.insert_group(tx, values)

    with told_as({_NAME_INDEX: _taken(wanted.name)}):
        await ctx.db.run(insert)
    return await show(ctx, subject, await load_group(ctx, subject, cast("UUID", values["id"])))


async def update_group(ctx: Context, subject: Subject, group_id: UUID, wanted: PatchGroupRequest) -> Group:
    """Empty and absent fields stay as they are. Raises Forbidden, Invalid, Conflict, NotFound."""
    row = await load_group(ctx, subject, group_id, "update")
    check_request(wanted, {"name": row.name, "display_name": row.display_name})
    values: dict[str, Any] = {}
    if wanted.name and wanted.name != row.name:
        _check_reserved(wanted.name)
        values["name"] = wanted.name
    for name in ("display_name", "avatar_url"):
        if getattr(wanted, name) is not None:
            values[name] = getattr(wanted, name)
    if wanted.quota_allowance not in (None, row.quota_allowance):
        values["quota_allowance"] = _allowance(wanted.quota_allowance)
    added, removed = _user_ids(wanted.add_users), _user_ids(wanted.remove_users)
    if row.is_everyone:
        _refuse_everyone(values, added, removed)
    with told_as({_NAME_INDEX: _taken(wanted.name)}):
        await ctx.db.run(_update, row, values, added, removed)
    return await show(ctx, subject, await load_group(ctx, subject, group_id))


async def _update(
    tx: Tx, row: GroupRow, values: dict[str, Any], added: Sequence[UUID], removed: Sequence[UUID]
) -> None:
    inside = await organization_store.hold_members(tx, row.organization_id, added)
    strangers = [user_id for user_id in added if user_id not in inside]
    if strangers:
        raise Invalid(f'User must be a member of organization "{row.organization_name}"', f"{strangers[0]} is not.")
    await store.update_group(tx, row.id, values)
    if await store.add_members(tx, row.id, added) < len(added):
        raise Invalid("Cannot add the same user to a group twice!")
    if removed and await store.remove_members(tx, row.id, removed) < len(removed):
        raise Invalid("Failed to add or remove non-existent group member")


def _refuse_everyone(values: dict[str, Any], added: Sequence[UUID], removed: Sequence[UUID]) -> None:
    if "name" in values:
        raise Invalid(f'Cannot rename the "{EVERYONE}" group!')
    if values.get("display_name"):
        raise Invalid(f'Cannot update the Display Name for the "{EVERYONE}" group!')
    if added or removed:
        raise Invalid(
            f'Cannot add or remove users from the "{EVERYONE}" group!',
            "Its members are the organization's: add somebody to the organization instead.",
        )


async def delete_group(ctx: Context, subject: Subject, group_id: UUID) -> None:
    """Raises Forbidden, Invalid (Everyone), NotFound."""
    row = await load_group(ctx, subject, group_id, "delete")
    if row.is_everyone:
        raise Invalid(f'"{EVERYONE}" is a reserved group and cannot be deleted!')
    await ctx.db.run(store.delete_group, row.id)


def _check_reserved(name: str) -> None:
    if name == EVERYONE:
        raise InvalidFields(("name", f'"{EVERYONE}" is a reserved group name'), message="Invalid group name.")


def _allowance(value: int) -> int:
    if not 0 <= value < 1 << 31:
        raise InvalidFields(("quota_allowance", "must be a number of credits, 0 or more"))
    return value


def _user_ids(texts: Sequence[str]) -> list[UUID]:
    found = []
    for text in texts:
        known = name_store.as_uuid(text)
        if known is None:
            raise Invalid(f'ID "{text}" must be a valid user UUID.')
        found.append(known)
    return found


_NAME_INDEX = "uq_groups_organization_id_name"


def _taken(name: str) -> Conflict:
    return Conflict(
        f'A group named "{name}" already exists.',
        validations=[("name", "This value is already in use and should be unique.")],
    )


# ---- showing


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
        source=cast("Any", row.source),
        organization_name=row.organization_name,
        organization_display_name=row.organization_display_name,
    )
