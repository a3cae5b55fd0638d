"""Queries about plain WireGuard clients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from sqlalchemy import delete, func, insert, select

from coder.coderd.store.tables.identity import users
from coder.coderd.store.tables.wireguard import wireguard_clients

if TYPE_CHECKING:
    from coder.coderd.store.database import Tx

CHANNEL = "wireguard_access"
"""Notified by triggers (migration 0008): what clients may reach can have changed; the payload is a table's name."""


@dataclass(frozen=True, slots=True)
class WireguardClientRow:
    id: UUID
    user_id: UUID
    name: str
    public_key: bytes
    created_at: datetime
    expires_at: datetime | None
    workspace_ids: Sequence[UUID] | None
    "None: every workspace of which its owner may enter the agents."


_COLUMNS = tuple(wireguard_clients.c[name] for name in WireguardClientRow.__slots__)


async def insert_client(tx: Tx, row: WireguardClientRow) -> None:
    """Raises IntegrityError when the owner has one of that name, or anybody that key."""
    await tx.execute(insert(wireguard_clients).values({name: getattr(row, name) for name in row.__slots__}))


async def list_clients(tx: Tx, user_id: UUID) -> list[WireguardClientRow]:
    """A user's, by name, expired ones too."""
    query = (
        select(*_COLUMNS).where(wireguard_clients.c.user_id == user_id).order_by(func.lower(wireguard_clients.c.name))
    )
    return [WireguardClientRow(*row) for row in await tx.execute(query)]


async def get_client(tx: Tx, user_id: UUID, reference: str) -> WireguardClientRow | None:
    """By name (without regard to case) or id, among a user's."""
    condition: Any = func.lower(wireguard_clients.c.name) == reference.lower()
    try:
        condition = condition | (wireguard_clients.c.id == UUID(reference))
    except ValueError:
        pass  # not an id: a name
    query = select(*_COLUMNS).where(wireguard_clients.c.user_id == user_id, condition)
    row = (await tx.execute(query)).first()
    return WireguardClientRow(*row) if row else None


async def delete_client(tx: Tx, client_id: UUID) -> None:
    await tx.execute(delete(wireguard_clients).where(wireguard_clients.c.id == client_id))


async def list_living(tx: Tx, now: datetime) -> list[WireguardClientRow]:
    """Every client that is not expired and whose owner is there and not suspended."""
    query = (
        select(*_COLUMNS)
        .join(users, users.c.id == wireguard_clients.c.user_id)
        .where(
            ~users.c.deleted,
            users.c.status != "suspended",
            wireguard_clients.c.expires_at.is_(None) | (wireguard_clients.c.expires_at > now),
        )
        .order_by(wireguard_clients.c.user_id, wireguard_clients.c.created_at)
    )
    return [WireguardClientRow(*row) for row in await tx.execute(query)]
