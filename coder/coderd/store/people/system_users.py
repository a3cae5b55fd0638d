"""Reads of users without a subject, for loaders that check permission and for the server itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import func, literal_column, select

from coder.coderd.store.people.users import ORGANIZATIONS, USER_COLUMNS, UserRow, user_row
from coder.coderd.store.tables.people import users

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx

_SELECT = select(*USER_COLUMNS, ORGANIZATIONS)


async def get_user(
    tx: Tx, user_id: UUID, *, lock: bool = False, hold: bool = False, keep: bool = False
) -> UserRow | None:
    """Return a user by id, deleted ones too. Until the transaction ends

    - `lock` keeps others from changing the user, and waits for holders: before the user's grants are revoked;
    - `hold` excludes only `lock`: before the user receives a grant that a lock revokes;
    - `keep` keeps others from changing the user, and does not wait for rows that only reference it: for code that
      relies on the row, and continues with workspaces or templates. A transaction that has locked one of those
      references users in its rows (a build its initiator, a version its author), which waits for a `lock`.
    """
    statement = _SELECT.where(users.c.id == user_id)
    if lock or hold or keep:
        statement = statement.with_for_update(of=users, read=hold, key_share=not lock)
    row = (await tx.execute(statement)).one_or_none()
    return None if row is None else user_row(row)


async def get_user_by_name(tx: Tx, username: str) -> UserRow | None:
    """Return a living user by name, regardless of case."""
    statement = _SELECT.where(func.lower(users.c.username) == func.lower(username), ~users.c.deleted)
    row = (await tx.execute(statement)).one_or_none()
    return None if row is None else user_row(row)


async def get_user_by_email(tx: Tx, email: str) -> UserRow | None:
    # Same expression as the index, without a parameter, or the index would not be used.
    same = func.lower(users.c.email) == func.lower(email), users.c.email != literal_column("''")
    statement = _SELECT.where(*same, ~users.c.deleted, ~users.c.is_system)
    row = (await tx.execute(statement)).one_or_none()
    return None if row is None else user_row(row)


async def list_by_ids(tx: Tx, ids: Sequence[UUID]) -> list[UserRow]:
    """Return users by ids, deleted ones too, in no order."""
    if not ids:
        return []
    return [user_row(row) for row in await tx.execute(_SELECT.where(users.c.id.in_(list(ids))))]
