"""Apply the claims of an identity provider to organizations, groups and roles at each login.

A setting with an empty field changes nothing. Site-wide options (`--oidc-group-field` …) apply where an organization
has no setting. The rules for reading claims are `domain/login/identity.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from coder.base.ids import new_uuid
from coder.base.json_types import Json
from coder.coderd.config.settings import struct_mapping
from coder.coderd.services.people.members import leave_organization
from coder.coderd.services.people.organization_settings import (
    effective_organization_sync,
    load_group_sync,
    load_role_sync,
)
from coder.coderd.store.people import custom_roles as custom_role_store
from coder.coderd.store.people import groups as group_store
from coder.coderd.store.people import organizations as organization_store
from coder.coderd.store.people import system_organizations, system_users
from coder.coderd.store.people import users as user_store
from coder.domain.access.roles import ORGANIZATION_ROLES, SITE_ROLES
from coder.domain.login import identity

if TYPE_CHECKING:
    from datetime import datetime

    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx


async def apply(ctx: Context, tx: Tx, user_id: UUID, claims: Mapping[str, Json], now: datetime) -> None:
    """Apply the claims of a user who may log in."""
    await _organizations(ctx, tx, user_id, claims, now)
    await _site_roles(ctx, tx, user_id, claims)
    default = await organization_store.get_default_organization(tx)
    for organization in await organization_store.list_organizations_of(tx, user_id):
        await _groups(ctx, tx, organization.id, user_id, claims, organization.id == default.id)
        await _roles(tx, organization.id, user_id, claims)


async def _organizations(ctx: Context, tx: Tx, user_id: UUID, claims: Mapping[str, Json], now: datetime) -> None:
    settings = await effective_organization_sync(ctx, tx)
    if not settings.field:
        return
    named = identity.mapped(identity.words_of(claims, settings.field), settings.mapping or {}, keep=False)
    organization_ids = {UUID(item) for item in named}
    if settings.organization_assign_default:
        organization_ids.add((await organization_store.get_default_organization(tx)).id)
    current = {organization.id for organization in await organization_store.list_organizations_of(tx, user_id)}
    for organization_id in sorted(organization_ids - current):
        if await system_organizations.get_organization(tx, organization_id, hold=True) is not None:
            await organization_store.insert_member(tx, organization_id, user_id, now)
    # in a fixed order, so that two users who leave the same organizations do not deadlock
    for organization_id in sorted(current - organization_ids):
        await leave_organization(tx, organization_id, user_id)


async def _site_roles(ctx: Context, tx: Tx, user_id: UUID, claims: Mapping[str, Json]) -> None:
    config = ctx.config
    if not config.oidc_user_role_field:
        return
    named = identity.mapped(
        identity.words_of(claims, config.oidc_user_role_field), struct_mapping(config.oidc_user_role_mapping)
    )
    roles = [role for role in (*config.oidc_user_role_default, *named) if role in SITE_ROLES and role != "member"]
    user = await system_users.get_user(tx, user_id, keep=True)
    leaves = user is not None and "owner" in user.rbac_roles and "owner" not in roles
    if leaves and not await user_store.has_other_owner(tx, user_id):
        # A mapping that misses every owner must not leave the site without one who can correct it.
        roles.append("owner")
        ctx.log.warn("the provider's claims would remove the last owner's role; keeping it", user=user_id)
    await user_store.update_user(tx, user_id, rbac_roles=list(dict.fromkeys(roles)))


async def _groups(
    ctx: Context, tx: Tx, organization_id: UUID, user_id: UUID, claims: Mapping[str, Json], is_default: bool
) -> None:
    settings = await load_group_sync(tx, organization_id)
    field, pattern, make = settings.field, settings.regex_filter, settings.auto_create_missing_groups
    mapping: Mapping[str, str | Sequence[str]] = settings.mapping or {}
    names: Mapping[str, str | Sequence[str]] = {}
    if not field and is_default and ctx.config.oidc_group_field:
        field, pattern, make = (
            ctx.config.oidc_group_field,
            ctx.config.oidc_group_regex_filter,
            ctx.config.oidc_group_auto_create,
        )
        mapping, names = {}, struct_mapping(ctx.config.oidc_group_mapping)
    if not field:
        return
    # As upstream: the deployment's mapping of names comes before the filter, an organization's mapping to ids after it.
    values = identity.matching(identity.mapped(identity.words_of(claims, field), names), pattern)
    groups = {group.name: group for group in await group_store.list_groups(tx, organization_id=organization_id)}
    by_id = {str(group.id): group for group in groups.values()}
    group_ids: set[UUID] = set()
    # in a fixed order, so that two logins that create the same groups do not deadlock
    for name in sorted(identity.mapped(values, mapping)):
        group = by_id.get(name) or groups.get(name)
        if group is None and make:
            group_id = new_uuid()
            await group_store.insert_group(
                tx, {"id": group_id, "organization_id": organization_id, "name": name, "source": "oidc"}
            )
            group_ids.add(group_id)
        elif group is not None and not group.is_everyone:
            group_ids.add(group.id)
    # Lock the groups first: deleting a group goes on to its members. Groups deleted meanwhile are left out.
    current = await group_store.hold_groups(tx, group_ids)
    await group_store.leave_groups(tx, organization_id, user_id, but=current)
    for group_id in sorted(current):
        await group_store.add_members(tx, group_id, [user_id])


async def _roles(tx: Tx, organization_id: UUID, user_id: UUID, claims: Mapping[str, Json]) -> None:
    settings = await load_role_sync(tx, organization_id)
    if not settings.field:
        return
    named = identity.mapped(identity.words_of(claims, settings.field), settings.mapping or {})
    own = await custom_role_store.hold_roles(tx, organization_id, named)
    roles = [name for name in named if name in own or name in ORGANIZATION_ROLES]
    await organization_store.update_member_roles(tx, organization_id, user_id, roles)
