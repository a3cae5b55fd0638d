"""Queries about workspace proxies."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from sqlalchemy import func, insert, select, update

from coder.coderd.store.names import as_uuid
from coder.coderd.store.tables.belongings import workspace_proxies

if TYPE_CHECKING:
    from coder.coderd.store.database import Tx


@dataclass(frozen=True, slots=True)
class ProxyRow:
    id: UUID
    name: str
    display_name: str
    icon: str
    url: str
    wildcard_hostname: str
    derp_enabled: bool
    derp_only: bool
    version: str
    hashed_secret: bytes
    deleted: bool
    created_at: datetime
    updated_at: datetime


_SELECT = select(*(workspace_proxies.c[name] for name in ProxyRow.__slots__)).where(~workspace_proxies.c.deleted)


async def list_proxies(tx: Tx) -> list[ProxyRow]:
    """By name."""
    statement = _SELECT.order_by(func.lower(workspace_proxies.c.name))
    return [ProxyRow(*row) for row in await tx.execute(statement)]


async def find_proxy(tx: Tx, reference: str) -> ProxyRow | None:
    """By id or name."""
    known = as_uuid(reference)
    condition = workspace_proxies.c.id == known if known else func.lower(workspace_proxies.c.name) == reference.lower()
    row = (await tx.execute(_SELECT.where(condition))).one_or_none()
    return None if row is None else ProxyRow(*row)


async def insert_proxy(tx: Tx, row: ProxyRow) -> None:
    await tx.execute(insert(workspace_proxies).values({name: getattr(row, name) for name in ProxyRow.__slots__}))


async def update_proxy(tx: Tx, proxy_id: UUID, values: dict[str, Any]) -> None:
    await tx.execute(update(workspace_proxies).where(workspace_proxies.c.id == proxy_id).values(**values))
