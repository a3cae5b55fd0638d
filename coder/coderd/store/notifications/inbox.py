"""Queries about the notification inbox."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import func, or_, select, update

from coder.coderd.store.tables.notifications import inbox_notifications as table

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx


@dataclass(frozen=True, slots=True)
class InboxRow:
    id: UUID
    user_id: UUID
    template_id: UUID
    targets: Sequence[str]
    title: str
    content: str
    icon: str
    actions: Sequence[Mapping[str, str]]
    read_at: datetime | None
    created_at: datetime


COLUMNS = tuple(table.c[name] for name in InboxRow.__slots__)
PAGE = 25


async def list_inbox(
    tx: Tx,
    user_id: UUID,
    *,
    targets: Sequence[str] = (),
    templates: Sequence[UUID] = (),
    read: bool | None = None,
    before: UUID | None = None,
) -> list[InboxRow]:
    """Return entries, newest first, a page of 25; equal times are ordered by id, so that pages lose none."""
    statement = select(*COLUMNS).where(table.c.user_id == user_id)
    if targets:
        statement = statement.where(table.c.targets.contains(list(targets)))
    if templates:
        statement = statement.where(table.c.template_id.in_(templates))
    if read is not None:
        statement = statement.where(table.c.read_at.is_not(None) if read else table.c.read_at.is_(None))
    if before is not None:
        cursor = table.alias("cursor")
        at = select(cursor.c.created_at).where(cursor.c.id == before, cursor.c.user_id == user_id).scalar_subquery()
        later = or_(table.c.created_at < at, (table.c.created_at == at) & (table.c.id < before))
        statement = statement.where(func.coalesce(later, True))
    statement = statement.order_by(table.c.created_at.desc(), table.c.id.desc()).limit(PAGE)
    return [InboxRow(*row) for row in await tx.execute(statement)]


async def count_unread(tx: Tx, user_id: UUID) -> int:
    statement = select(func.count()).where(table.c.user_id == user_id, table.c.read_at.is_(None))
    return int((await tx.execute(statement)).scalar_one())


async def set_read(tx: Tx, user_id: UUID, notification_id: UUID, read_at: datetime | None) -> InboxRow | None:
    statement = (
        update(table)
        .where(table.c.id == notification_id, table.c.user_id == user_id)
        .values(read_at=read_at)
        .returning(*COLUMNS)
    )
    row = (await tx.execute(statement)).one_or_none()
    return None if row is None else InboxRow(*row)


async def set_all_read(tx: Tx, user_id: UUID, now: datetime) -> None:
    await tx.execute(update(table).where(table.c.user_id == user_id, table.c.read_at.is_(None)).values(read_at=now))
