"""Queries about workspace proxies."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import delete, func, insert, select, update
from sqlalchemy.dialects import postgresql

from coder.coderd.store.engine.sql_types import ColumnValues
from coder.coderd.store.tables.proxies import workspace_proxies, workspace_proxy_replicas

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx


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


@dataclass(frozen=True, slots=True)
class ProxyReplicaRow:
    """Process of a proxy, as of its last registration."""

    id: UUID
    proxy_id: UUID
    hostname: str
    relay_address: str
    error: str
    version: str
    created_at: datetime
    updated_at: datetime


SELECT = select(*(workspace_proxies.c[name] for name in ProxyRow.__slots__)).where(~workspace_proxies.c.deleted)


async def list_proxies(tx: Tx) -> list[ProxyRow]:
    """Return proxies by name."""
    statement = SELECT.order_by(func.lower(workspace_proxies.c.name))
    return [ProxyRow(*row) for row in await tx.execute(statement)]


async def get_region_id(tx: Tx, proxy_id: UUID) -> int:
    """Return the number of a proxy's relay region among the proxies, from 1."""
    statement = select(workspace_proxies.c.region_id).where(workspace_proxies.c.id == proxy_id)
    return int((await tx.execute(statement)).scalar_one())


async def list_region_ids(tx: Tx) -> dict[UUID, int]:
    """Return the numbers of living proxies' relay regions."""
    statement = select(workspace_proxies.c.id, workspace_proxies.c.region_id).where(~workspace_proxies.c.deleted)
    return {row[0]: row[1] for row in await tx.execute(statement)}


async def put_replica(tx: Tx, row: ProxyReplicaRow) -> bool:
    """Record that a process is alive. False when the id belongs to another proxy."""
    values = {name: getattr(row, name) for name in ProxyReplicaRow.__slots__}
    upsert = postgresql.insert(workspace_proxy_replicas).values(values)
    names = ("hostname", "relay_address", "error", "version", "updated_at")
    statement = upsert.on_conflict_do_update(
        index_elements=["id"],
        set_={name: upsert.excluded[name] for name in names},
        where=workspace_proxy_replicas.c.proxy_id == upsert.excluded.proxy_id,
    )
    return bool((await tx.execute(statement)).rowcount)


async def delete_replica(tx: Tx, proxy_id: UUID, replica_id: UUID) -> bool:
    table = workspace_proxy_replicas.c
    statement = delete(workspace_proxy_replicas).where(table.id == replica_id, table.proxy_id == proxy_id)
    return bool((await tx.execute(statement)).rowcount)


async def list_replicas(tx: Tx, proxy_id: UUID, since: datetime) -> list[ProxyReplicaRow]:
    """Return processes of a proxy seen since then, oldest first."""
    table = workspace_proxy_replicas.c
    statement = (
        select(*(table[name] for name in ProxyReplicaRow.__slots__))
        .where(table.proxy_id == proxy_id, table.updated_at >= since)
        .order_by(table.created_at, table.id)
    )
    return [ProxyReplicaRow(*row) for row in await tx.execute(statement)]


async def forget_replicas(tx: Tx, before: datetime) -> None:
    """Delete processes that ended without deregistering."""
    await tx.execute(delete(workspace_proxy_replicas).where(workspace_proxy_replicas.c.updated_at < before))


async def insert_proxy(tx: Tx, row: ProxyRow) -> None:
    await tx.execute(insert(workspace_proxies).values({name: getattr(row, name) for name in ProxyRow.__slots__}))


async def update_proxy(tx: Tx, proxy_id: UUID, values: ColumnValues) -> None:
    await tx.execute(update(workspace_proxies).where(workspace_proxies.c.id == proxy_id).values(**values))
