"""Reads of custom roles without a subject, for loaders that check permission and for the server itself."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import select

from coder.coderd.store.people.custom_roles import COLUMNS, CustomRoleRow
from coder.coderd.store.tables.people import custom_roles

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx


async def get_role(tx: Tx, organization_id: UUID, name: str, *, lock: bool = False) -> CustomRoleRow | None:
    condition = (custom_roles.c.organization_id == organization_id, custom_roles.c.name == name)
    statement = select(*COLUMNS).where(*condition)
    row = (await tx.execute(statement.with_for_update() if lock else statement)).one_or_none()
    return None if row is None else CustomRoleRow(*row)
