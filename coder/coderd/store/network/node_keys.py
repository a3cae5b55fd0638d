"""Queries about the first owner of each node's public keys."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from sqlalchemy import Boolean, delete, literal_column, select
from sqlalchemy.dialects.postgresql import insert

from coder.coderd.store.tables.node_keys import node_keys

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx

MAX_KEYS = 1024
"""Keys kept for one owner, two a node; the oldest are deleted, so that an owner cannot fill the table."""

_keys = node_keys.c
_IS_NEW = literal_column("xmax = 0", Boolean)
"""Whether an upsert inserted the row: one that it updated has the transaction in `xmax`."""


async def known_keys(tx: Tx, keys: Sequence[bytes]) -> set[bytes]:
    """Return those of the keys that any owner has announced."""
    rows = await tx.execute(select(_keys.key).where(_keys.key.in_(list(keys))))
    return {bytes(key) for (key,) in rows}


async def claim_keys(tx: Tx, keys: Sequence[bytes], owner: str, now: datetime) -> list[bytes]:
    """Return the `keys` that belong to other owners; if there are none, all belong to `owner` afterwards."""
    if not keys:
        return []
    fresh = insert(node_keys).values([{"key": key, "owner": owner, "seen_at": now} for key in sorted(keys)])
    claim = fresh.on_conflict_do_update(
        index_elements=["key"], set_={"seen_at": fresh.excluded.seen_at}, where=_keys.owner == fresh.excluded.owner
    ).returning(_keys.key, _IS_NEW)
    taken = {bytes(key): is_new for key, is_new in await tx.execute(claim)}
    foreign = [key for key in keys if key not in taken]
    if foreign or not any(taken.values()):
        return foreign  # agents return with the keys they had
    oldest = select(_keys.key).where(_keys.owner == owner).order_by(_keys.seen_at.desc()).offset(MAX_KEYS)
    await tx.execute(delete(node_keys).where(_keys.key.in_(oldest)))
    return []
