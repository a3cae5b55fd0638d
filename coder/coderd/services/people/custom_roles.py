"""Custom roles of an organization: named sets of permissions inside it.

They are limited to the organization, and a role never has more permissions than the user who created it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import UNSET

from coder.api.base.refusals import Conflict, Forbidden, Invalid, InvalidFields, NotFound
from coder.api.base.struct import ApiStruct
from coder.api.people.roles import AssignableRoles, Role
from coder.base.ids import new_uuid
from coder.coderd.services.access.application_limits import require_lasting
from coder.coderd.services.access.authorization import may
from coder.coderd.services.foundation.uniqueness import constraint_refusals
from coder.coderd.services.people.roles import permission_list
from coder.coderd.store.people import custom_roles as store
from coder.coderd.store.people import system_custom_roles
from coder.coderd.store.people.custom_roles import CustomRoleRow
from coder.domain.access.policy import Class, Subject, allowed_ids
from coder.domain.access.resources import ACTIONS
from coder.domain.access.roles import ORGANIZATION_ROLES, SITE_ROLES

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx
    from coder.coderd.store.people.organizations import OrganizationRow

_NAME = re.compile(r"[a-zA-Z0-9]+(?:-[a-zA-Z0-9]+)*")
_MAX_NAME = 64


class PermissionSpec(ApiStruct):
    """Permission as clients send it; `*` stands for every action."""

    negate: bool
    resource_type: str
    action: str


class RoleSpec(ApiStruct):
    """Role as clients send it."""

    name: str
    display_name: str
    site_permissions: list[PermissionSpec]
    user_permissions: list[PermissionSpec]
    organization_permissions: list[PermissionSpec]
    organization_member_permissions: list[PermissionSpec]


async def list_assignable(ctx: Context, organization: OrganizationRow, assignable: bool) -> list[AssignableRoles]:
    """Return the organization's custom roles as its list of roles shows them."""
    rows = await ctx.db.read(store.list_roles, organization.id)
    return [_assignable(row, assignable) for row in rows]


async def create_role(ctx: Context, subject: Subject, organization: OrganizationRow, role: RoleSpec) -> Role:
    """Create a custom role. Raises Forbidden, Invalid, Conflict."""
    await _require(ctx, subject, organization, "create")
    permissions = _checked(subject, organization, role)
    now = ctx.clock.now()
    row = CustomRoleRow(new_uuid(), organization.id, role.name, role.display_name, permissions, now, now)
    conflict = Conflict(
        f'Role "{role.name}" already exists in this organization.',
        "Choose another name, or change the role that has it.",
    )
    with constraint_refusals({"uq_custom_roles_organization_id_name": conflict}):
        await ctx.db.run(store.insert_role, row)
    return role_view(row)


async def update_role(ctx: Context, subject: Subject, organization: OrganizationRow, role: RoleSpec) -> Role:
    """Replace the permissions of the role with that name. Raises Forbidden, Invalid, NotFound."""
    await _require(ctx, subject, organization, "update")
    permissions = _checked(subject, organization, role)
    now = ctx.clock.now()

    async def write(tx: Tx) -> CustomRoleRow | None:
        row = await system_custom_roles.get_role(tx, organization.id, role.name, lock=True)
        if row is None:
            raise NotFound
        _check_denials(subject, organization, row.permissions, permissions)
        await store.update_role(tx, row.id, updated_at=now, display_name=role.display_name, permissions=permissions)
        return await system_custom_roles.get_role(tx, organization.id, role.name)

    changed = await ctx.db.run(write)
    if changed is None:
        raise NotFound
    return role_view(changed)


async def delete_role(ctx: Context, subject: Subject, organization: OrganizationRow, name: str) -> None:
    """Delete a role. Its members lose it, also what it denied them. Raises Forbidden, NotFound, Invalid (a built-in
    role).
    """
    await _require(ctx, subject, organization, "delete")
    if name in ORGANIZATION_ROLES or name in SITE_ROLES:
        raise Invalid("Reserved role name", f'"{name}" is a built-in role and cannot be deleted')

    async def write(tx: Tx) -> None:
        row = await system_custom_roles.get_role(tx, organization.id, name, lock=True)
        if row is None:
            raise NotFound
        _check_denials(subject, organization, row.permissions, {})
        await store.delete_role(tx, organization.id, name)

    await ctx.db.run(write)


async def _require(ctx: Context, subject: Subject, organization: OrganizationRow, action: str) -> None:
    roles = Class("assign_org_role", organization_id=organization.id)
    await require_lasting(ctx, subject, action, roles, "custom_role", hidden=False)


def _checked(subject: Subject, organization: OrganizationRow, role: RoleSpec) -> dict[str, dict[str, list[str]]]:
    """Return the permissions as they are stored. Raises Invalid, Forbidden."""
    if role.name in ORGANIZATION_ROLES or role.name in SITE_ROLES:
        raise Invalid("Reserved role name", f'"{role.name}" is a reserved role name, and not allowed to be used')
    if not _NAME.fullmatch(role.name) or len(role.name) > _MAX_NAME:
        raise InvalidFields(
            ("name", "must be letters, digits and single hyphens, at most 64"), message="Invalid role name"
        )
    if role.site_permissions:
        raise Invalid(
            "Invalid request, not allowed to assign site wide permissions for an organization role.",
            "organization scoped roles may not contain site wide permissions",
        )
    if role.user_permissions:
        raise Invalid(
            "Invalid request, not allowed to assign user permissions for an organization role.",
            "organization scoped roles may not contain user permissions",
        )
    for permission in (*role.organization_permissions, *role.organization_member_permissions):
        _check_permission(subject, organization, permission)
    if any(permission.negate for permission in role.organization_member_permissions):
        raise Invalid("Invalid request", "member permissions cannot be negated")
    return {
        "organization": _table(role.organization_permissions, negate=False),
        "organization_denied": _table(role.organization_permissions, negate=True),
        "member": _table(role.organization_member_permissions, negate=False),
    }


def _check_permission(subject: Subject, organization: OrganizationRow, permission: PermissionSpec) -> None:
    kind, action = permission.resource_type, permission.action
    actions = ACTIONS.get(kind)
    if actions is None:
        raise Invalid("Failed to validate role permissions.", f'invalid resource type "{kind}"')
    if action != "*" and action not in actions:
        raise Invalid("Failed to validate role permissions.", f'invalid action "{action}" for type "{kind}"')
    if not permission.negate:  # a denied permission does not escalate
        _check_grant(subject, organization, kind, action)


def _check_grant(subject: Subject, organization: OrganizationRow, kind: str, action: str) -> None:
    """Require that the caller has the permission. A key limited to some objects of a kind cannot grant all. Raises
    Forbidden.
    """
    for required in ACTIONS.get(kind, ()) if action == "*" else (action,):
        limited = allowed_ids(subject, kind) is not None
        if limited or not may(subject, required, Class(kind, organization_id=organization.id)):
            raise Forbidden(
                "Invalid role: you cannot grant a permission that you do not have.",
                f'You may not "{required}" objects of type "{kind}" in this organization.',
            )


def _check_denials(
    subject: Subject,
    organization: OrganizationRow,
    before: Mapping[str, Mapping[str, Sequence[str]]],
    after: Mapping[str, Mapping[str, Sequence[str]]],
) -> None:
    """Require that the caller may grant each permission that the role stops denying. Raises Forbidden."""
    stay = after.get("organization_denied", {})
    for kind, actions in before.get("organization_denied", {}).items():
        for action in sorted(set(actions) - set(stay.get(kind, ()))):
            _check_grant(subject, organization, kind, action)


def _table(permissions: Sequence[PermissionSpec], *, negate: bool) -> dict[str, list[str]]:
    table: dict[str, set[str]] = {}
    for permission in permissions:
        if permission.negate == negate:
            table.setdefault(permission.resource_type, set()).add(permission.action)
    return {kind: sorted(actions) for kind, actions in sorted(table.items())}


def role_view(row: CustomRoleRow) -> Role:
    levels = row.permissions
    denied = permission_list(levels.get("organization_denied", {}), negate=True)
    return Role(
        name=row.name,
        display_name=row.display_name,
        organization_id=row.organization_id or UNSET,
        site_permissions=[],
        user_permissions=[],
        organization_permissions=permission_list(levels.get("organization", {})) + denied,
        organization_member_permissions=permission_list(levels.get("member", {})),
    )


def _assignable(row: CustomRoleRow, assignable: bool) -> AssignableRoles:
    role = role_view(row)
    return AssignableRoles(
        name=role.name,
        display_name=role.display_name,
        organization_id=role.organization_id,
        site_permissions=role.site_permissions,
        user_permissions=role.user_permissions,
        organization_permissions=role.organization_permissions,
        organization_member_permissions=role.organization_member_permissions,
        assignable=assignable,
        built_in=False,
    )
