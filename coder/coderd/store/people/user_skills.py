"""Queries about users' skills."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import delete, insert, select, update

from coder.coderd.store.engine.sql_types import ColumnValues
from coder.coderd.store.tables.user_skills import user_skills

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx


@dataclass(frozen=True, slots=True)
class SkillRow:
    id: UUID
    user_id: UUID
    name: str
    description: str
    content: str
    created_at: datetime
    updated_at: datetime


COLUMNS = tuple(user_skills.c[name] for name in SkillRow.__slots__)


async def list_skills(tx: Tx, user_id: UUID) -> list[SkillRow]:
    """Return skills by name."""
    statement = select(*COLUMNS).where(user_skills.c.user_id == user_id).order_by(user_skills.c.name)
    return [SkillRow(*row) for row in await tx.execute(statement)]


async def insert_skill(tx: Tx, row: SkillRow) -> None:
    await tx.execute(insert(user_skills).values({name: getattr(row, name) for name in SkillRow.__slots__}))


async def update_skill(tx: Tx, skill_id: UUID, values: ColumnValues) -> None:
    await tx.execute(update(user_skills).where(user_skills.c.id == skill_id).values(**values))


async def delete_skill(tx: Tx, skill_id: UUID) -> None:
    await tx.execute(delete(user_skills).where(user_skills.c.id == skill_id))
