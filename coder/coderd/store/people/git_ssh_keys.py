"""Queries about users' git keys."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert as upsert

from coder.coderd.store.tables.people import git_ssh_keys

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx


@dataclass(frozen=True, slots=True)
class GitSSHKeyRow:
    user_id: UUID
    created_at: datetime
    updated_at: datetime
    private_key: str
    """Key in OpenSSH's PEM form."""
    public_key: str
    """Line of authorized_keys."""


_COLUMNS = tuple(git_ssh_keys.c[name] for name in GitSSHKeyRow.__slots__)


async def get_git_ssh_key(tx: Tx, user_id: UUID) -> GitSSHKeyRow | None:
    row = (await tx.execute(select(*_COLUMNS).where(git_ssh_keys.c.user_id == user_id))).one_or_none()
    return None if row is None else GitSSHKeyRow(*row)


async def put_git_ssh_key(tx: Tx, user_id: UUID, private_key: str, public_key: str, now: datetime) -> None:
    """Insert, or replace the pair and keep `created_at`."""
    values = {"private_key": private_key, "public_key": public_key, "updated_at": now}
    statement = upsert(git_ssh_keys).values(user_id=user_id, created_at=now, **values)
    await tx.execute(statement.on_conflict_do_update(index_elements=["user_id"], set_=values))
