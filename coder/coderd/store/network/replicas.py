"""Queries about the server processes that share this database, and their notices to each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import delete, func, select
from sqlalchemy.dialects.postgresql import insert

from coder.coderd.store.engine.pubsub import notify_all
from coder.coderd.store.tables.large_nodes import large_nodes
from coder.coderd.store.tables.replicas import replicas

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx

CHANNEL = "replicas_coordinate"
"""Channel of coordinators; see `services/network/replica_coordination.py`."""


@dataclass(frozen=True, slots=True)
class ReplicaRow:
    id: UUID
    hostname: str
    region_id: int
    relay_address: str
    database_latency_us: int
    created_at: datetime
    updated_at: datetime
    version: str
    error: str


_COLUMNS = tuple(replicas.c[field.name] for field in fields(ReplicaRow))


async def put_replica(tx: Tx, row: ReplicaRow, oldest: datetime) -> list[ReplicaRow]:
    """Record that this replica is alive; return all replicas renewed after `oldest`, and delete the others."""
    values = asdict(row)
    await tx.execute(insert(replicas).values(values).on_conflict_do_update(index_elements=["id"], set_=values))
    await tx.execute(delete(replicas).where(replicas.c.updated_at < oldest))
    return await list_replicas(tx, oldest)


async def database_time(tx: Tx) -> datetime:
    """Return the database's clock."""
    time: datetime = (await tx.execute(select(func.clock_timestamp()))).scalar_one()
    return time


async def list_replicas(tx: Tx, oldest: datetime) -> list[ReplicaRow]:
    """Return the replicas renewed since, the oldest replica first."""
    query = select(*_COLUMNS).where(replicas.c.updated_at >= oldest)
    return [ReplicaRow(*item) for item in await tx.execute(query.order_by(replicas.c.created_at, replicas.c.id))]


async def delete_replica(tx: Tx, replica_id: UUID) -> None:
    await tx.execute(delete(replicas).where(replicas.c.id == replica_id))


async def publish(tx: Tx, payloads: Sequence[str], nodes: Mapping[UUID, bytes], now: datetime) -> None:
    """Notify the other replicas, in this order, when `tx` commits. `nodes`, by peer, are too large for a payload."""
    for peer, node in sorted(nodes.items()):  # sorted, because two replicas may report the same two peers
        values = {"peer_id": peer, "node": node, "told_at": now}
        fresh = insert(large_nodes).values(values)
        await tx.execute(fresh.on_conflict_do_update(index_elements=["peer_id"], set_=values))
    await notify_all(tx, CHANNEL, payloads)


async def get_large_node(tx: Tx, peer: UUID) -> bytes | None:
    """Return the last large node published for a peer."""
    result = await tx.execute(select(large_nodes.c.node).where(large_nodes.c.peer_id == peer))
    node = result.scalar_one_or_none()
    return None if node is None else bytes(node)
