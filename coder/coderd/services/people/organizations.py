"""Organizations: find, list, create, change, delete and lock them. `members` has their members."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal
from uuid import UUID

from msgspec import UNSET

from coder.api.base.refusals import Conflict, Invalid, InvalidFields, NotFound
from coder.api.people.organizations import CreateOrganizationRequest, Organization, UpdateOrganizationRequest
from coder.base.ids import new_uuid
from coder.coderd.services.access.application_limits import refuse_applications
from coder.coderd.services.access.authorization import may, require
from coder.coderd.services.foundation.field_checks import check_request
from coder.coderd.services.foundation.uniqueness import constraint_refusals
from coder.coderd.services.people.role_assignment import require_assign, unknown_roles
from coder.coderd.store.engine.names import as_id
from coder.coderd.store.engine.sql_types import ColumnValues
from coder.coderd.store.people import organizations as store
from coder.coderd.store.people import system_organizations
from coder.coderd.store.people.organizations import OrganizationRow as OrganizationRow
from coder.domain.access.policy import Class, Object, Subject, Target, allowed_organizations, scope_allows

if TYPE_CHECKING:
    from datetime import datetime

    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

_TEXTS: tuple[Literal["name", "display_name", "description", "icon"], ...] = (
    "name",
    "display_name",
    "description",
    "icon",
)
_NAME_INDEX = "ix_organizations_name_living"


def organization_resource(organization_id: UUID) -> Target:
    return Object("organization", str(organization_id), organization_id=organization_id)


async def resolve_organization(ctx: Context, subject: Subject, reference: str) -> OrganizationRow:
    """Find an organization by id, name or `default` that the caller may read. Raises NotFound."""
    row = await ctx.db.read(_find, reference)
    if row is None:
        raise NotFound
    require(subject, "read", organization_resource(row.id))
    return row


async def _find(tx: Tx, reference: str) -> OrganizationRow | None:
    if reference == "default":
        return await store.get_default_organization(tx)
    organization_id = as_id(reference)
    if organization_id is None:
        return await system_organizations.get_organization_by_name(tx, reference)
    return await system_organizations.get_organization(tx, organization_id)


async def list_organizations(ctx: Context, subject: Subject) -> list[OrganizationRow]:
    if subject.kind != "system" and not scope_allows(subject, "read", "organization"):
        return []
    allowed = allowed_organizations(subject, "read", "organization", narrowed=True)
    rows = await ctx.db.read(store.list_organizations, None if allowed is None else sorted(allowed))
    return [row for row in rows if may(subject, "read", organization_resource(row.id))]


_WITH_ORGANIZATION = (("organization_member", "create"), ("assign_org_role", "assign"), ("group", "create"))
"""Rights to the objects created with an organization: its first administrator and its Everyone group."""
_CONTENTS = ("organization_member", "workspace", "group", "template", "provisioner_daemon")
"""Kinds whose numbers the refusal to delete an organization tells."""
_RESERVED = "default"
"""Name of the default organization in paths."""


async def create_organization(ctx: Context, subject: Subject, request: CreateOrganizationRequest) -> OrganizationRow:
    """Create an organization and its Everyone group. The caller becomes its administrator.

    Raises Forbidden, InvalidFields, Conflict.
    """
    require(subject, "create", Class("organization"), hidden=False)
    display_name = request.name if request.display_name in (UNSET, "") else str(request.display_name)
    _check_reserved(request.name)
    now = ctx.clock.now()
    organization_id = new_uuid()
    values: ColumnValues = {
        "id": organization_id,
        "name": request.name,
        "display_name": display_name,
        "description": request.description or "",
        "icon": request.icon or "",
        "created_at": now,
        "updated_at": now,
    }
    for kind, action in _WITH_ORGANIZATION:
        require(subject, action, Class(kind, organization_id=organization_id), hidden=False)
    maker = subject.user_id if subject.kind == "user" else None
    with constraint_refusals({_NAME_INDEX: _name_conflict()}):
        return await ctx.db.run(_insert, organization_id, values, maker, now)


async def _insert(
    tx: Tx, organization_id: UUID, values: ColumnValues, maker: UUID | None, now: datetime
) -> OrganizationRow:
    await store.insert_organization(tx, values)
    if maker is not None:
        await store.insert_member(tx, organization_id, maker, now, ["organization-admin"])
    row = await system_organizations.get_organization(tx, organization_id)
    if row is None:  # inserted above, in this transaction
        raise NotFound
    return row


async def update_organization(
    ctx: Context, subject: Subject, organization: OrganizationRow, request: UpdateOrganizationRequest
) -> OrganizationRow:
    """Change an organization; absent fields stay unchanged.

    Raises Forbidden, InvalidFields, Conflict, and Invalid for roles the caller may not assign.
    """
    check_request(request, {"name": organization.name, "display_name": organization.display_name})
    require(subject, "update", organization_resource(organization.id))
    if isinstance(request.default_org_member_roles, list):
        await refuse_applications(ctx, subject, "role_grant")
    now = ctx.clock.now()
    with constraint_refusals({_NAME_INDEX: _name_conflict()}):
        await ctx.db.run(_update, subject, organization.id, request, now)
    return await resolve_organization(ctx, subject, str(organization.id))


async def _update(
    tx: Tx, subject: Subject, organization_id: UUID, request: UpdateOrganizationRequest, now: datetime
) -> None:
    values: store.OrganizationChanges = {}
    for name in _TEXTS:
        value = getattr(request, name)
        if value is not UNSET and (value or name in {"description", "icon"}):
            values[name] = value
    roles: list[str] | None = None
    if isinstance(request.default_org_member_roles, list):
        roles = await _default_roles(tx, organization_id, request.default_org_member_roles)
    present = await lock_organization(tx, organization_id)
    # Compare with the current roles: the caller must be allowed to undo a concurrent change.
    before = set(present.default_member_roles)
    if roles is not None and before != set(roles):
        require_assign(subject, organization_id, set(roles) - before, before - set(roles))
        values["default_member_roles"] = roles
    if values.get("name", present.name) != present.name:
        _check_reserved(values["name"])
    values["updated_at"] = now
    await store.update_organization(tx, organization_id, **values)


async def lock_organization(tx: Tx, organization_id: UUID) -> OrganizationRow:
    """Read an organization and lock it until the transaction ends. Raises NotFound after a concurrent deletion."""
    return _require_found(await system_organizations.get_organization(tx, organization_id, lock=True))


async def hold_organization(tx: Tx, organization_id: UUID) -> OrganizationRow:
    """Read an organization and prevent its deletion until the transaction ends, to add something to it. Raises
    NotFound.
    """
    return _require_found(await system_organizations.get_organization(tx, organization_id, hold=True))


def _require_found(row: OrganizationRow | None) -> OrganizationRow:
    if row is None:
        raise NotFound
    return row


async def _default_roles(tx: Tx, organization_id: UUID, names: Sequence[str]) -> list[str]:
    request = sorted(set(names))
    for name in await unknown_roles(tx, organization_id, request):
        raise InvalidFields(("default_org_member_roles", f'"{name}" is not a role of this organization'))
    return request


async def delete_organization(ctx: Context, subject: Subject, organization: OrganizationRow) -> None:
    """Delete an organization without contents. Raises Forbidden, Invalid."""
    require(subject, "delete", organization_resource(organization.id))
    if organization.is_default:
        raise Invalid("Default organization cannot be deleted.")
    await ctx.db.run(_delete, subject, organization.id, ctx.clock.now())


async def _delete(tx: Tx, subject: Subject, organization_id: UUID, now: datetime) -> None:
    await lock_organization(tx, organization_id)
    contents = {name: count for name, count in (await store.count_contents(tx, organization_id)).items() if count}
    if contents:
        if not all(may(subject, "read", Class(kind, organization_id=organization_id)) for kind in _CONTENTS):
            raise Invalid("Unable to delete organization.", "cannot delete organization: it is not empty")
        description = ", ".join(f"{count} {name}" for name, count in contents.items())
        raise Invalid(
            "Unable to delete organization.",
            f"cannot delete organization: organization has {description} that must be deleted first",
        )
    await store.update_organization(tx, organization_id, deleted=True, updated_at=now)


def _check_reserved(name: str) -> None:
    if name == _RESERVED:
        raise Invalid(f'Organization name "{name}" is reserved.')


def _name_conflict() -> Conflict:
    return Conflict(
        "Organization already exists with that name.",
        validations=[("name", "This value is already in use and should be unique.")],
    )


def organization_view(row: OrganizationRow) -> Organization:
    return Organization(
        id=row.id,
        name=row.name,
        display_name=row.display_name,
        icon=row.icon,
        description=row.description,
        created_at=row.created_at,
        updated_at=row.updated_at,
        is_default=row.is_default,
        default_org_member_roles=list(row.default_member_roles),
    )
