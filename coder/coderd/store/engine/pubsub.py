"""Notices to other tasks and replicas: Postgres NOTIFY inside a transaction.

Listening is `Database.listen`. A payload names the changed row, never its content (8000 bytes is Postgres' limit, and a
reader must have permission to read the row anyway).
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
    """Notify a channel: delivered when `tx` commits, dropped when it rolls back."""
    await tx.execute(_NOTIFY, {"channel": channel, "payload": payload})


async def notify_all(tx: Tx, channel: str, payloads: Sequence[str]) -> None:
    """Send many in one statement, delivered in order."""
    if payloads:
        await tx.execute(_NOTIFY_ALL, {"channel": channel, "payloads": list(payloads)})
