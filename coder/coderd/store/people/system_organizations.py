"""Reads of organizations and members without a subject, for loaders that check permission and for the server itself."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import func, select

from coder.coderd.store.people.organizations import MEMBER, ORGANIZATION, MemberRow, OrganizationRow
from coder.coderd.store.tables.people import organization_members, organizations, users

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx

_MEMBERS = (
    select(*MEMBER)
    .join(users, users.c.id == organization_members.c.user_id)
    .where(~users.c.deleted, ~users.c.is_system)
)


async def get_organization(
    tx: Tx, organization_id: UUID, *, lock: bool = False, hold: bool = False
) -> OrganizationRow | None:
    """Return an organization. `lock` excludes all other transactions until this one ends: for changes, and for checks
    of its content. `hold` excludes only those: many may rely on the row concurrently, and add objects."""
    statement = select(*ORGANIZATION).where(organizations.c.id == organization_id, ~organizations.c.deleted)
    if lock or hold:
        statement = statement.with_for_update(read=not lock, key_share=not lock)
    row = (await tx.execute(statement)).one_or_none()
    return None if row is None else OrganizationRow(*row)


async def get_organization_by_name(tx: Tx, name: str) -> OrganizationRow | None:
    statement = select(*ORGANIZATION).where(
        func.lower(organizations.c.name) == func.lower(name), ~organizations.c.deleted
    )
    row = (await tx.execute(statement)).one_or_none()
    return None if row is None else OrganizationRow(*row)


async def get_member(tx: Tx, organization_id: UUID, user_id: UUID, *, lock: bool = False) -> MemberRow | None:
    """Return a membership. `lock` keeps others from changing it until the transaction ends."""
    statement = _MEMBERS.where(
        organization_members.c.organization_id == organization_id, organization_members.c.user_id == user_id
    )
    statement = statement.with_for_update(of=organization_members) if lock else statement
    row = (await tx.execute(statement)).one_or_none()
    return None if row is None else MemberRow(*row)
