"""Reads of user skills without a subject, for loaders that check permission and for the server itself."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import select

from coder.coderd.store.people.user_skills import COLUMNS, SkillRow
from coder.coderd.store.tables.user_skills import user_skills

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx


async def get_skill(tx: Tx, user_id: UUID, name: str) -> SkillRow | None:
    statement = select(*COLUMNS).where(user_skills.c.user_id == user_id, user_skills.c.name == name)
    row = (await tx.execute(statement)).one_or_none()
    return None if row is None else SkillRow(*row)
