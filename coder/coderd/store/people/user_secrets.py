"""Queries about users' secrets for their workspaces. Values are opaque here."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import bindparam, delete, insert, select, update

from coder.coderd.store.engine.metadata import Uuid
from coder.coderd.store.engine.prepared_statements import PreparedStatement
from coder.coderd.store.engine.sql_types import ColumnValues
from coder.coderd.store.tables.user_secrets import user_secrets

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx


@dataclass(frozen=True, slots=True)
class UserSecretRow:
    id: UUID
    user_id: UUID
    name: str
    description: str
    env_name: str
    file_path: str
    enabled: bool
    value: str
    created_at: datetime
    updated_at: datetime


COLUMNS = tuple(user_secrets.c[name] for name in UserSecretRow.__slots__)


_OF_USER = select(*COLUMNS).where(user_secrets.c.user_id == bindparam("user_id", type_=Uuid))
_BY_NAME = PreparedStatement(_OF_USER.order_by(user_secrets.c.name))
_ENABLED_BY_NAME = PreparedStatement(_OF_USER.where(user_secrets.c.enabled).order_by(user_secrets.c.name))


async def list_secrets(tx: Tx, user_id: UUID, *, enabled_only: bool = False) -> list[UserSecretRow]:
    """Return secrets by name."""
    statement = _ENABLED_BY_NAME if enabled_only else _BY_NAME
    return [UserSecretRow(*row) for row in await statement.fetch(tx, user_id=user_id)]


async def insert_secret(tx: Tx, row: UserSecretRow) -> None:
    await tx.execute(insert(user_secrets).values({name: getattr(row, name) for name in UserSecretRow.__slots__}))


async def update_secret(tx: Tx, secret_id: UUID, values: ColumnValues) -> None:
    await tx.execute(update(user_secrets).where(user_secrets.c.id == secret_id).values(**values))


async def delete_secret(tx: Tx, secret_id: UUID) -> None:
    await tx.execute(delete(user_secrets).where(user_secrets.c.id == secret_id))
