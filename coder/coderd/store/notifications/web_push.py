"""Queries about browsers with Web Push subscriptions."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import delete, exists, func, select
from sqlalchemy.dialects.postgresql import insert

from coder.coderd.store.tables.people import users
from coder.coderd.store.tables.site_configs import site_configs
from coder.coderd.store.tables.web_push import webpush_subscriptions as table

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx


@dataclass(frozen=True, slots=True)
class SubscriptionRow:
    id: UUID
    user_id: UUID
    created_at: datetime
    endpoint: str
    p256dh_key: str
    auth_key: str


VAPID_KEYS = "vapid_keys"
"""Name of the site's key pair among the site settings."""
_COLUMNS = tuple(table.c[name] for name in SubscriptionRow.__slots__)


async def list_subscriptions(tx: Tx, user_id: UUID) -> list[SubscriptionRow]:
    """Return subscriptions, oldest first; none for a user who may not sign in: browsers would keep receiving the
    inbox."""
    may_sign_in = exists().where(users.c.id == table.c.user_id, ~users.c.deleted, users.c.status != "suspended")
    statement = select(*_COLUMNS).where(table.c.user_id == user_id, may_sign_in)
    statement = statement.order_by(table.c.created_at, table.c.id)
    return [SubscriptionRow(*row) for row in await tx.execute(statement)]


async def put_subscription(tx: Tx, row: SubscriptionRow, limit: int) -> None:
    """Upsert a subscription by browser; above the user's `limit` the oldest are deleted."""
    values = {name: getattr(row, name) for name in SubscriptionRow.__slots__}
    changed = {name: values[name] for name in ("created_at", "p256dh_key", "auth_key")}
    statement = insert(table).values(values)
    await tx.execute(statement.on_conflict_do_update(index_elements=["user_id", "endpoint"], set_=changed))
    newest_first = select(
        table.c.id, func.row_number().over(order_by=(table.c.created_at.desc(), table.c.id)).label("place")
    ).where(table.c.user_id == row.user_id)
    ranked = newest_first.subquery()
    await tx.execute(delete(table).where(table.c.id.in_(select(ranked.c.id).where(ranked.c.place > limit))))


async def delete_subscription(tx: Tx, user_id: UUID, endpoint: str) -> bool:
    """Delete it; False when there was none."""
    result = await tx.execute(delete(table).where(table.c.user_id == user_id, table.c.endpoint == endpoint))
    return bool(result.rowcount)


async def delete_dead(tx: Tx, subscription_id: UUID, auth_key: str) -> None:
    """Delete a subscription that its push service reports gone, unless the browser subscribed again meanwhile."""
    await tx.execute(delete(table).where(table.c.id == subscription_id, table.c.auth_key == auth_key))


async def forget_keys(tx: Tx) -> int:
    """Delete the key pair, which is created again on demand, with its subscriptions. Return their number."""
    await tx.execute(delete(site_configs).where(site_configs.c.key == VAPID_KEYS))
    return (await tx.execute(delete(table))).rowcount
