"""Reads of inbox messages without a subject, for loaders that check permission and for the server itself."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import select

from coder.coderd.store.notifications.inbox import COLUMNS, InboxRow
from coder.coderd.store.tables.notifications import inbox_notifications as table

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx


async def get_inbox(tx: Tx, user_id: UUID, notification_id: UUID) -> InboxRow | None:
    statement = select(*COLUMNS).where(table.c.id == notification_id, table.c.user_id == user_id)
    row = (await tx.execute(statement)).one_or_none()
    return None if row is None else InboxRow(*row)
