"""How many things somebody has of a kind, and how many bytes they are. Waits for others who ask the same of the same
person, so that of two at once the second counts what the first made."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import ColumnElement, Table, and_, func, literal, select

from coder.coderd.store.tables.identity import api_keys
from coder.coderd.store.tables.user_assets import user_secrets, user_skills

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx

_SEED = 7308  # of these advisory locks: apart from the locks that are numbers
_KINDS: dict[str, tuple[Table, ColumnElement[bool], ColumnElement[int]]] = {
    "tokens": (api_keys, api_keys.c.login_type == "token", literal(0)),
    "sessions": (
        api_keys,
        and_(api_keys.c.login_type != "token", api_keys.c.token_name == "", api_keys.c.expires_at > func.now()),
        literal(0),
    ),
    "secrets": (user_secrets, literal(True), func.octet_length(user_secrets.c.value)),
    "skills": (user_skills, literal(True), func.octet_length(user_skills.c.content)),
}


async def lock_objects(tx: Tx, kind: str, user_id: UUID) -> None:
    """Until the transaction ends."""
    await tx.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(f"{kind} {user_id}", _SEED))))


async def count_objects(tx: Tx, kind: str, user_id: UUID) -> tuple[int, int]:
    """(how many, bytes), with what the transaction made itself."""
    await lock_objects(tx, kind, user_id)
    table, condition, size = _KINDS[kind]
    statement = select(func.count(), func.coalesce(func.sum(size), 0)).where(table.c.user_id == user_id, condition)
    count, total = (await tx.execute(statement)).one()
    return int(count), int(total)
