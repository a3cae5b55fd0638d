"""Queries about custom roles: per organization, or for the site when there is none.

`permissions` is `{"organization": {resource: [actions]}, "organization_denied": {…}, "member": {…}, "site": {…}}`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, TypedDict, Unpack
from uuid import UUID

from sqlalchemy import delete, func, insert, select, update

from coder.coderd.store.tables.people import custom_roles, organization_members, organizations

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx


@dataclass(frozen=True, slots=True)
class CustomRoleRow:
    id: UUID
    organization_id: UUID | None
    name: str
    display_name: str
    permissions: Mapping[str, Mapping[str, Sequence[str]]]
    created_at: datetime
    updated_at: datetime


COLUMNS = tuple(custom_roles.c[name] for name in CustomRoleRow.__slots__)


async def list_roles(tx: Tx, organization_id: UUID, names: Sequence[str] | None = None) -> list[CustomRoleRow]:
    """Return roles by name; only those of `names` when given."""
    statement = select(*COLUMNS).where(custom_roles.c.organization_id == organization_id)
    if names is not None:
        statement = statement.where(custom_roles.c.name.in_(names))
    return [CustomRoleRow(*row) for row in await tx.execute(statement.order_by(custom_roles.c.name))]


async def hold_roles(tx: Tx, organization_id: UUID, names: Sequence[str]) -> set[str]:
    """Return the `names` that are the organization's own roles, locked until the transaction ends: before they are
    assigned. Otherwise a role deleted meanwhile would return with the next role of its name."""
    condition = (custom_roles.c.organization_id == organization_id, custom_roles.c.name.in_(names))
    statement = select(custom_roles.c.name).where(*condition).order_by(custom_roles.c.id)
    rows = await tx.execute(statement.with_for_update(read=True, key_share=True))
    return {row[0] for row in rows}


async def insert_role(tx: Tx, row: CustomRoleRow) -> None:
    await tx.execute(insert(custom_roles).values({name: getattr(row, name) for name in CustomRoleRow.__slots__}))


class RoleChanges(TypedDict, total=False):
    """Columns of `custom_roles` that may be set, by name."""

    organization_id: UUID | None
    name: str
    display_name: str
    permissions: Mapping[str, Mapping[str, Sequence[str]]]
    created_at: datetime
    updated_at: datetime


async def update_role(tx: Tx, role_id: UUID, **values: Unpack[RoleChanges]) -> None:
    await tx.execute(update(custom_roles).where(custom_roles.c.id == role_id).values(**values))


async def delete_role(tx: Tx, organization_id: UUID, name: str) -> None:
    """Delete a role, and its present and future assignments."""
    condition = (custom_roles.c.organization_id == organization_id, custom_roles.c.name == name)
    await tx.execute(delete(custom_roles).where(*condition))
    holders = (organization_members.c.organization_id == organization_id, organization_members.c.roles.contains([name]))
    # In the order of every other lock of several memberships; an UPDATE of many has none.
    in_order = select(organization_members.c.user_id).where(*holders).order_by(organization_members.c.user_id)
    await tx.execute(in_order.with_for_update(key_share=True))
    await tx.execute(
        update(organization_members).where(*holders).values(roles=func.array_remove(organization_members.c.roles, name))
    )
    defaults = organizations.c.default_member_roles
    await tx.execute(
        update(organizations)
        .where(organizations.c.id == organization_id, defaults.contains([name]))
        .values(default_member_roles=func.array_remove(defaults, name))
    )
