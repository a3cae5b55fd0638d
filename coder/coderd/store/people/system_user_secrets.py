"""Reads of user secrets without a subject, for loaders that check permission and for the server itself."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import select

from coder.coderd.store.people.user_secrets import COLUMNS, UserSecretRow
from coder.coderd.store.tables.user_secrets import user_secrets

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx


async def get_secret(tx: Tx, user_id: UUID, name: str) -> UserSecretRow | None:
    statement = select(*COLUMNS).where(user_secrets.c.user_id == user_id, user_secrets.c.name == name)
    row = (await tx.execute(statement)).one_or_none()
    return None if row is None else UserSecretRow(*row)
