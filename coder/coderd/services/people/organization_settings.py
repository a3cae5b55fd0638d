"""Settings of IdP sync: how claims of an identity provider map to organizations, groups and roles.

`services/login/provider_sync.py` applies them at each login. Each setting is one JSON document in the site's
configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base import codec
from coder.api.base.refusals import BAD_BODY, Invalid
from coder.api.base.struct import ApiStruct
from coder.api.login.oauth2 import GroupSyncSettings, OrganizationSyncSettings, RoleSyncSettings
from coder.coderd.config.settings import struct_value
from coder.coderd.services.access.application_limits import refuse_applications
from coder.coderd.services.access.authorization import require
from coder.coderd.services.people.role_assignment import require_assign, require_default_roles
from coder.coderd.store.people import organizations as organization_store
from coder.coderd.store.people import system_organizations
from coder.coderd.store.site import site_settings
from coder.domain.access.policy import Class, Subject
from coder.domain.access.roles import ORGANIZATION_ROLES
from coder.domain.foundation.go_uuid import read_uuid
from coder.domain.foundation.patterns import PatternProblem, compiled

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx
    from coder.coderd.store.people.organizations import OrganizationRow

_ORGANIZATION_SYNC = "idp_sync_organization"


class SyncMapping(ApiStruct):
    """Pair of a mapping: the provider's value and what it maps to. The wire has capitals."""

    Given: str
    Gets: str


class MappingChange(ApiStruct):
    """Pairs to add to a mapping and to remove from it."""

    add: list[SyncMapping]
    remove: list[SyncMapping]


class GroupSyncChange(ApiStruct):
    """Group sync settings as clients send them: every field may be absent or null."""

    field: str
    mapping: dict[str, list[str] | None] | None
    regex_filter: str | None
    auto_create_missing_groups: bool
    legacy_group_name_mapping: dict[str, str] | None


class RoleSyncChange(ApiStruct):
    field: str
    mapping: dict[str, list[str] | None] | None


class OrganizationSyncChange(ApiStruct):
    field: str
    mapping: dict[str, list[str] | None] | None
    organization_assign_default: bool


def group_sync_key(organization_id: UUID) -> str:
    return f"idp_sync_groups:{organization_id}"


def role_sync_key(organization_id: UUID) -> str:
    return f"idp_sync_roles:{organization_id}"


async def load_group_sync(tx: Tx, organization_id: UUID) -> GroupSyncSettings:
    """Load the group sync settings, also for logins. Sync is off while `field` is empty."""
    stored = await site_settings.get_config(tx, group_sync_key(organization_id))
    if stored:
        return codec.decode(stored, GroupSyncSettings)
    return GroupSyncSettings(field="", mapping={}, regex_filter=None, auto_create_missing_groups=False)


async def load_role_sync(tx: Tx, organization_id: UUID) -> RoleSyncSettings:
    stored = await site_settings.get_config(tx, role_sync_key(organization_id))
    return codec.decode(stored, RoleSyncSettings) if stored else RoleSyncSettings(field="", mapping={})


async def has_organization_sync(tx: Tx) -> bool:
    """Whether an administrator has configured organization sync."""
    return bool(await site_settings.get_config(tx, _ORGANIZATION_SYNC))


async def load_organization_sync(tx: Tx) -> OrganizationSyncSettings:
    stored = await site_settings.get_config(tx, _ORGANIZATION_SYNC)
    if stored:
        return codec.decode(stored, OrganizationSyncSettings)
    return OrganizationSyncSettings(field="", mapping={}, organization_assign_default=True)


async def effective_organization_sync(ctx: Context, tx: Tx) -> OrganizationSyncSettings:
    """Return the settings that logins apply: the server's, until an administrator changes them in the dashboard."""
    if await has_organization_sync(tx):
        return await load_organization_sync(tx)
    config = ctx.config
    named = struct_value(config.oidc_organization_mapping) or {}
    mapping = {
        str(value): [configured] if isinstance(configured, str) else list(configured or [])
        for value, configured in named.items()
    }
    return OrganizationSyncSettings(
        field=config.oidc_organization_field,
        mapping=mapping,
        organization_assign_default=config.oidc_organization_assign_default,
    )


def require_sync(subject: Subject, action: str, organization: OrganizationRow | None = None) -> None:
    """Require permission on the sync settings of the organization, or of the site for None. Raises Forbidden."""
    organization_id = None if organization is None else organization.id
    require(subject, action, Class("idpsync_settings", organization_id=organization_id), hidden=False)


async def group_sync(ctx: Context, subject: Subject, organization: OrganizationRow) -> GroupSyncSettings:
    require_sync(subject, "read", organization)
    return await ctx.db.read(load_group_sync, organization.id)


async def role_sync(ctx: Context, subject: Subject, organization: OrganizationRow) -> RoleSyncSettings:
    require_sync(subject, "read", organization)
    return await ctx.db.read(load_role_sync, organization.id)


async def organization_sync(ctx: Context, subject: Subject) -> OrganizationSyncSettings:
    require_sync(subject, "read")
    return await ctx.db.read(load_organization_sync)


# Each `change` function gets the stored settings and returns the new ones, inside one transaction.


async def change_group_sync(
    ctx: Context,
    subject: Subject,
    organization: OrganizationRow,
    change: Callable[[GroupSyncSettings], GroupSyncSettings],
) -> GroupSyncSettings:
    """Change the group sync.

    Raises Invalid, and Forbidden, also for a caller who may not change the members of groups.
    """
    require_sync(subject, "update", organization)
    await refuse_applications(ctx, subject, "idp_sync")

    async def write(tx: Tx) -> GroupSyncSettings:
        await site_settings.lock_config(tx, group_sync_key(organization.id))
        stored = await load_group_sync(tx, organization.id)
        changed = change(stored)
        _check_filter(changed.regex_filter)
        _check_ids(changed.mapping)
        # as with roles, sync must not do what the caller may not do directly
        for action in _actions_on_groups(stored, changed):
            require(subject, action, Class("group", organization_id=organization.id), hidden=False)
        await site_settings.put_config(tx, group_sync_key(organization.id), codec.encode(changed).decode())
        return changed

    return await ctx.db.run(write)


def _actions_on_groups(before: GroupSyncSettings, after: GroupSyncSettings) -> list[str]:
    """Return the actions on groups that a login performs by one of the settings only. Without a field it performs
    none.
    """
    unchanged = (before.mapping or {}, before.regex_filter or "") == (after.mapping or {}, after.regex_filter or "")
    moves = not unchanged or after.field not in {"", before.field}
    makes = after.auto_create_missing_groups and (moves or not before.auto_create_missing_groups)
    return [*(["update"] if moves else []), *(["create"] if makes else [])]


async def change_role_sync(
    ctx: Context,
    subject: Subject,
    organization: OrganizationRow,
    change: Callable[[RoleSyncSettings], RoleSyncSettings],
) -> RoleSyncSettings:
    """Change the role sync. Raises Forbidden, and Invalid for roles the caller may not assign."""
    require_sync(subject, "update", organization)
    await refuse_applications(ctx, subject, "idp_sync")

    async def write(tx: Tx) -> RoleSyncSettings:
        # Lock the settings, so that a caller with an outdated copy cannot restore a role that was just removed.
        await site_settings.lock_config(tx, role_sync_key(organization.id))
        stored = await load_role_sync(tx, organization.id)
        changed = change(stored)
        changed_roles = _affected_roles(stored, changed)
        if changed_roles:  # a caller who may not assign a role must not have sync assign it
            require_assign(subject, organization.id, changed_roles)
        await site_settings.put_config(tx, role_sync_key(organization.id), codec.encode(changed).decode())
        return changed

    return await ctx.db.run(write)


def _affected_roles(before: RoleSyncSettings, after: RoleSyncSettings) -> set[str]:
    """Return the roles that a login assigns or unassigns by one of the settings only.

    A claim value without a mapping is itself the name of a role, so another field may assign every role.
    """
    was, becomes = before.mapping or {}, after.mapping or {}
    values = {value for value in was.keys() | becomes.keys() if was.get(value) != becomes.get(value)}
    roles = {role for value in values for role in (*was.get(value, ()), *becomes.get(value, ()))}
    roles |= was.keys() ^ becomes.keys()
    if after.field not in {"", before.field}:  # without a field, users keep their roles
        roles |= {*ORGANIZATION_ROLES, *(role for given in becomes.values() for role in given)}
    return roles


async def change_organization_sync(
    ctx: Context, subject: Subject, change: Callable[[OrganizationSyncSettings], OrganizationSyncSettings]
) -> OrganizationSyncSettings:
    """Change the organization sync. Raises Forbidden, and Invalid for organizations whose default roles the caller may
    not assign.
    """
    require_sync(subject, "update")
    await refuse_applications(ctx, subject, "idp_sync")

    async def write(tx: Tx) -> OrganizationSyncSettings:
        await site_settings.lock_config(tx, _ORGANIZATION_SYNC)
        stored = await load_organization_sync(tx)
        changed = change(stored)
        _check_ids(changed.mapping)
        for organization in await _joined_organizations(tx, stored, changed):
            # as with roles, sync must not do what the caller may not do directly
            require_default_roles(subject, organization)
        await site_settings.put_config(tx, _ORGANIZATION_SYNC, codec.encode(changed).decode())
        return changed

    return await ctx.db.run(write)


async def _joined_organizations(
    tx: Tx, before: OrganizationSyncSettings, after: OrganizationSyncSettings
) -> list[OrganizationRow]:
    """Return the organizations that a login adds users to by the new settings only, ordered by id.

    Another field, or a first field, adds other users to every mapped organization. Leaving an organization assigns no
    roles, so it needs no check.
    """
    is_other_field = after.field not in {"", before.field}
    was, becomes = before.mapping or {}, after.mapping or {}
    ids = {
        read_uuid(text)
        for value, texts in becomes.items()
        for text in texts
        if is_other_field or text not in was.get(value, ())
    }
    if after.organization_assign_default and (is_other_field or not before.organization_assign_default):
        ids.add((await organization_store.get_default_organization(tx)).id)
    rows = [
        await system_organizations.get_organization(tx, organization_id, hold=True) for organization_id in sorted(ids)
    ]
    return [row for row in rows if row is not None]


def clean_mapping(mapping: Mapping[str, Sequence[str] | None] | None) -> dict[str, list[str]]:
    """Return the mapping with empty lists in place of nulls."""
    return {value: list(names or ()) for value, names in (mapping or {}).items()}


def changed_mapping(mapping: Mapping[str, Sequence[str]] | None, change: MappingChange) -> dict[str, list[str]]:
    """Return `mapping` after adding and removing pairs, without names that map to nothing."""
    result = {value: list(names) for value, names in (mapping or {}).items()}
    for pair in change.remove:
        if pair.Gets in result.get(pair.Given, ()):
            result[pair.Given].remove(pair.Gets)
    for pair in change.add:
        mapped = result.setdefault(pair.Given, [])
        if pair.Gets not in mapped:
            mapped.append(pair.Gets)
    return {value: names for value, names in result.items() if names}


def _check_filter(expression: str | None) -> None:
    try:
        compiled(expression or "")
    except PatternProblem as error:
        raise Invalid(BAD_BODY, f"error parsing regexp: {error}") from error


def _check_ids(mapping: Mapping[str, Sequence[str]] | None) -> None:
    for gets in (mapping or {}).values():
        for text in gets:
            try:
                read_uuid(text)
            except ValueError as error:
                raise Invalid(BAD_BODY, str(error)) from error
