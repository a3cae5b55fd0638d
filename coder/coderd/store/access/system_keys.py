"""Reads of API keys without a subject, for loaders that check permission and for the server itself."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import and_, select

from coder.coderd.store.access.keys import KEY_COLUMNS, KeyRow
from coder.coderd.store.tables.people import api_keys

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx


async def get_key(tx: Tx, key_id: str) -> KeyRow | None:
    row = (await tx.execute(select(*KEY_COLUMNS).where(api_keys.c.id == key_id))).one_or_none()
    return None if row is None else KeyRow(*row)


async def get_token_by_name(tx: Tx, user_id: UUID, name: str) -> KeyRow | None:
    condition = and_(api_keys.c.user_id == user_id, api_keys.c.token_name == name, api_keys.c.login_type == "token")
    row = (await tx.execute(select(*KEY_COLUMNS).where(condition))).one_or_none()
    return None if row is None else KeyRow(*row)
