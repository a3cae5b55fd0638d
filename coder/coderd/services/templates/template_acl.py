"""Access to a template: users and groups with a role each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType, structs

from coder.api.base.refusals import Invalid
from coder.api.base.struct import ApiStruct
from coder.api.people.groups import Group
from coder.api.site.deployment import ACLAvailable
from coder.api.templates.templates import TemplateACL, TemplateGroup, TemplateRole, TemplateUser
from coder.coderd.services.access.acl_actors import RequestedRoles, hold_users, role_faults
from coder.coderd.services.access.workspace_access import load_template, lock_template
from coder.coderd.services.people.user_views import reduced_user, user_view
from coder.coderd.store.access import acls as acl_store
from coder.coderd.store.access.acls import AclGroup
from coder.coderd.store.people import users as user_store
from coder.coderd.store.people.users import UserFilter, UserRow
from coder.coderd.store.templates import templates as store
from coder.domain.access.policy import Subject

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx


class AclChange(ApiStruct):
    """Roles by user and group id; an empty role revokes access."""

    user_perms: dict[str, str] | UnsetType = UNSET
    group_perms: dict[str, str] | UnsetType = UNSET


async def get_acl(ctx: Context, subject: Subject, template_id: UUID) -> TemplateACL:
    """Return users and groups with access; members of groups are counted, not listed."""
    row = await load_template(ctx, subject, template_id, "update")
    user_acl, group_acl = acl_store.by_id(row.user_acl), acl_store.by_id(row.group_acl)
    people, groups = await ctx.db.read(_load, list(user_acl), list(group_acl))
    return TemplateACL(
        users=[
            msgspec.convert({**msgspec.to_builtins(user_view(user)), "role": user_acl[str(user.id)]}, TemplateUser)
            for user in people
        ],
        group=[_template_group(group, group_acl[str(group.id)]) for group in groups],
    )


async def _load(tx: Tx, users: Sequence[str], groups: Sequence[str]) -> tuple[list[UserRow], list[AclGroup]]:
    people: list[UserRow] = []
    if users:
        people, _count = await user_store.list_users(tx, UserFilter(ids=[UUID(user) for user in users]))
    _, acl_groups = await acl_store.load_actors(tx, [], groups)
    return people, list(acl_groups)


def acl_group(group: AclGroup) -> Group:
    """Return a group of an access list, without its members."""
    return Group(
        id=group.id,
        name=group.name,
        display_name=group.display_name,
        organization_id=group.organization_id,
        members=[],
        total_member_count=group.member_count,
        avatar_url=group.avatar_url,
        quota_allowance=group.quota_allowance,
        source=group.source,
        organization_name=group.organization_name,
        organization_display_name=group.organization_display_name,
    )


def _template_group(group: AclGroup, role: TemplateRole) -> TemplateGroup:
    return TemplateGroup(**structs.asdict(acl_group(group)), role=role)


async def update_acl(ctx: Context, subject: Subject, template_id: UUID, change: AclChange) -> None:
    """Grant or revoke access. Raises Invalid for unknown roles, users and groups, NotFound, Forbidden.

    Requires `create`: an entry may grant every permission on the template, also `delete`, which `update` alone lacks.
    """
    organization_id = (await load_template(ctx, subject, template_id, "create")).organization_id
    users = change.user_perms if isinstance(change.user_perms, dict) else {}
    groups = change.group_perms if isinstance(change.group_perms, dict) else {}

    async def write(tx: Tx) -> None:
        await hold_users(tx, organization_id, users)
        await _update(tx, subject, template_id, users, groups)

    await ctx.db.run(write)


async def _update(
    tx: Tx, subject: Subject, template_id: UUID, users: Mapping[str, str], groups: Mapping[str, str]
) -> None:
    row = await lock_template(tx, subject, template_id, "create")
    requested = RequestedRoles("group_perms", groups), RequestedRoles("user_perms", users)
    faults = await role_faults(tx, subject, row.organization_id, "template", *requested)
    if faults:
        raise Invalid("Invalid request to update template ACL", validations=faults)
    await store.update_template(
        tx, row.id, user_acl=_merged(row.user_acl, users), group_acl=_merged(row.group_acl, groups)
    )


def _merged(before: Mapping[str, str], changes: Mapping[str, str]) -> dict[str, TemplateRole]:
    merged = {**acl_store.by_id(before), **acl_store.by_id(changes)}
    return {key: cast("TemplateRole", role) for key, role in merged.items() if role}


async def list_available(ctx: Context, subject: Subject, template_id: UUID, which: UserFilter) -> ACLAvailable:
    """Return users and groups that could get access and match the filter; its search applies to groups as well."""
    row = await load_template(ctx, subject, template_id, "update")
    people, groups = await ctx.db.read(_available, row.organization_id, which)
    return ACLAvailable(
        users=[reduced_user(person) for person in people], groups=[acl_group(group) for group in groups]
    )


async def _available(tx: Tx, organization_id: UUID, which: UserFilter) -> tuple[list[UserRow], list[AclGroup]]:
    people, _count = await user_store.list_users(tx, which)
    needle = which.search.lower()
    groups = [
        group
        for group in await acl_store.available_groups(tx, organization_id)
        if needle in group.name.lower() or needle in group.display_name.lower()
    ]
    return [person for person in people if organization_id in person.organization_ids], groups
