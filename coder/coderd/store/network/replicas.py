"""Queries about the server processes that share this database, and what they tell each other by NOTIFY."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import delete, select
from sqlalchemy.dialects.postgresql import insert

from coder.coderd.store.engine.pubsub import notify_all
from coder.coderd.store.tables.large_nodes import large_nodes
from coder.coderd.store.tables.replicas import replicas

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx

CHANNEL = "replicas_coordinate"
"""What coordinators tell each other; see `services/network/replica_coordination.py`."""


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
    """Says that this one lives; all that live, which were renewed after `oldest`. The rows of others are forgotten."""
    values = asdict(row)
    await tx.execute(insert(replicas).values(values).on_conflict_do_update(index_elements=["id"], set_=values))
    await tx.execute(delete(replicas).where(replicas.c.updated_at < oldest))
    return await list_replicas(tx, oldest)


async def list_replicas(tx: Tx, oldest: datetime) -> list[ReplicaRow]:
    """Those renewed since, the oldest replica first."""
    query = select(*_COLUMNS).where(replicas.c.updated_at >= oldest)
    return [ReplicaRow(*item) for item in await tx.execute(query.order_by(replicas.c.created_at, replicas.c.id))]


async def delete_replica(tx: Tx, replica_id: UUID) -> None:
    await tx.execute(delete(replicas).where(replicas.c.id == replica_id))


async def publish(tx: Tx, payloads: Sequence[str], nodes: Mapping[UUID, bytes], now: datetime) -> None:
    """Tells the other replicas, in this order, when `tx` commits. `nodes`, by peer, are those that fit no payload."""
    for peer, node in sorted(nodes.items()):  # in an order: two replicas may say the same of two peers
        values = {"peer_id": peer, "node": node, "told_at": now}
        fresh = insert(large_nodes).values(values)
        await tx.execute(fresh.on_conflict_do_update(index_elements=["peer_id"], set_=values))
    await notify_all(tx, CHANNEL, payloads)


async def get_large_node(tx: Tx, peer: UUID) -> bytes | None:
    """The last one that was told of a peer."""
    found = await tx.execute(select(large_nodes.c.node).where(large_nodes.c.peer_id == peer))
    node = found.scalar_one_or_none()
    return None if node is None else bytes(node)
