"""Reads of groups without a subject, for loaders that check permission and for the server itself."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from coder.coderd.store.people.groups import GROUPS, GroupRow
from coder.coderd.store.tables.people import groups

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx


async def get_group(tx: Tx, group_id: UUID) -> GroupRow | None:
    row = (await tx.execute(GROUPS.where(groups.c.id == group_id))).one_or_none()
    return None if row is None else GroupRow(*row)


async def get_group_by_name(tx: Tx, organization_id: UUID, name: str) -> GroupRow | None:
    statement = GROUPS.where(groups.c.organization_id == organization_id, groups.c.name == name)
    row = (await tx.execute(statement)).one_or_none()
    return None if row is None else GroupRow(*row)
