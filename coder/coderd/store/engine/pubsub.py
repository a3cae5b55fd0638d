"""Telling other tasks and replicas that something changed: Postgres NOTIFY inside a transaction.

Listening is `Database.listen`. A payload says which row changed, never the row itself (8000 bytes is Postgres'
limit, and a reader must be allowed to read it anyway).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlalchemy import text

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx

_NOTIFY = text("SELECT pg_notify(:channel, :payload)")
_NOTIFY_ALL = text("SELECT pg_notify(:channel, payload) FROM unnest(CAST(:payloads AS text[])) AS payload")


async def notify(tx: Tx, channel: str, payload: str = "") -> None:
    """Delivered when `tx` commits, not delivered when it rolls back."""
    await tx.execute(_NOTIFY, {"channel": channel, "payload": payload})


async def notify_all(tx: Tx, channel: str, payloads: Sequence[str]) -> None:
    """Many in one statement, delivered in their order."""
    if payloads:
        await tx.execute(_NOTIFY_ALL, {"channel": channel, "payloads": list(payloads)})
