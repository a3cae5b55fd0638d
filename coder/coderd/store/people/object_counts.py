"""How many things somebody has of a kind, and how many bytes they are. Waits for others who ask the same of the same
person, so that of two at once the second counts what the first made."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import ColumnElement, Table, delete, func, literal, select

from coder.coderd.store.tables.identity import api_keys
from coder.coderd.store.tables.user_assets import user_secrets, user_skills

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx

_SECRET_TEXTS = ("name", "description", "env_name", "file_path", "value")
_SEED = 7308  # of these advisory locks: apart from the locks that are numbers
_KINDS: dict[str, tuple[Table, ColumnElement[bool], ColumnElement[int]]] = {
    "tokens": (api_keys, api_keys.c.login_type == "token", literal(0)),
    "secrets": (
        user_secrets,
        literal(True),
        # Each of them is read when an agent asks, whoever wrote how much into which.
        func.octet_length(func.concat(*(user_secrets.c[name] for name in _SECRET_TEXTS))),
    ),
    "skills": (user_skills, literal(True), func.octet_length(user_skills.c.content)),
}
_ENDS = {"tokens": (api_keys.c.login_type == "token", api_keys.c.expires_at)}
"""What is shown for a while after its end, and has to make room."""


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


async def forget_expired(tx: Tx, kind: str, user_id: UUID, now: datetime) -> bool:
    """Whether anything of the kind was over, and is gone now."""
    if kind not in _ENDS:
        return False
    table, _, _ = _KINDS[kind]
    of_kind, ends = _ENDS[kind]
    return bool((await tx.execute(delete(table).where(table.c.user_id == user_id, of_kind, ends < now))).rowcount)
