"""Queries about the first owner of each node's public keys."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from sqlalchemy import delete, select, text

from coder.coderd.store.tables.node_keys import node_keys

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx

MAX_KEYS = 1024
"""Keys kept for one owner, two a node; the oldest are deleted, so that an owner cannot fill the table."""

_keys = node_keys.c
# An upsert inserted a row if `xmax` is 0: one that it updated has the transaction there. Text, because SQLAlchemy
# compiles an insert of several rows each time.
_CLAIM = text(
    "INSERT INTO node_keys (key, owner, seen_at) SELECT key, CAST(:owner AS text), CAST(:now AS timestamptz) "
    "FROM unnest(CAST(:keys AS bytea[])) AS key "
    "ON CONFLICT (key) DO UPDATE SET seen_at = excluded.seen_at WHERE node_keys.owner = excluded.owner "
    "RETURNING key, xmax = 0"
)


async def known_keys(tx: Tx, keys: Sequence[bytes]) -> set[bytes]:
    """Return those of the keys that any owner has announced."""
    rows = await tx.execute(select(_keys.key).where(_keys.key.in_(list(keys))))
    return {bytes(key) for (key,) in rows}


async def claim_keys(tx: Tx, keys: Sequence[bytes], owner: str, now: datetime) -> list[bytes]:
    """Return the `keys` that belong to other owners; if there are none, all belong to `owner` afterwards."""
    if not keys:
        return []
    rows = await tx.execute(_CLAIM, {"keys": sorted(keys), "owner": owner, "now": now})
    taken = {bytes(key): is_new for key, is_new in rows}
    foreign = [key for key in keys if key not in taken]
    if foreign or not any(taken.values()):
        return foreign  # agents return with the keys they had
    oldest = select(_keys.key).where(_keys.owner == owner).order_by(_keys.seen_at.desc()).offset(MAX_KEYS)
    await tx.execute(delete(node_keys).where(_keys.key.in_(oldest)))
    return []
