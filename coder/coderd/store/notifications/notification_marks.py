"""Queries on notification marks: a message of a kind about one object is sent again only for another mark."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import delete, select
from sqlalchemy.dialects.postgresql import insert

from coder.coderd.store.tables.notifications import notification_marks as marks

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx


async def mark(tx: Tx, template_id: UUID, about: UUID, text: str, now: datetime) -> bool:
    """Set the mark; False if exactly this was sent already, by any replica."""
    statement = insert(marks).values(template_id=template_id, about=about, mark=text, marked_at=now)
    statement = statement.on_conflict_do_update(
        index_elements=["template_id", "about"],
        set_={"mark": text, "marked_at": now},
        where=marks.c.mark != text,
    )
    return (await tx.execute(statement.returning(marks.c.about))).first() is not None


async def get_mark(tx: Tx, template_id: UUID, about: UUID) -> str | None:
    """Return the mark, locked until it is replaced."""
    where = (marks.c.template_id == template_id, marks.c.about == about)
    row: str | None = (await tx.execute(select(marks.c.mark).where(*where).with_for_update())).scalar_one_or_none()
    return row


async def forget_marks(tx: Tx, template_id: UUID, before: datetime) -> None:
    await tx.execute(delete(marks).where(marks.c.template_id == template_id, marks.c.marked_at < before))
