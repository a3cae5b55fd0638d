"""Queries about plain WireGuard clients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import ColumnElement, case, delete, func, insert, select, update

from coder.coderd.store.tables.people import users
from coder.coderd.store.tables.wireguard import wireguard_clients, wireguard_reach

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx

CHANNEL = "wireguard_access"
"""Channel notified by triggers (migration 0008) when clients' access may have changed; the payload is a table's
name."""


@dataclass(frozen=True, slots=True)
class WireguardClientRow:
    id: UUID
    user_id: UUID
    name: str
    public_key: bytes
    created_at: datetime
    expires_at: datetime | None
    workspace_ids: Sequence[UUID] | None
    """Ids; None for every workspace whose agents the owner may enter."""


ACTIVE, EXPIRED = "active", "expired"
"""Status of a client; the others are `owner_suspended` and `owner_deleted`."""


@dataclass(frozen=True, slots=True)
class Reach:
    """Access of a client as last recorded in the audit log."""

    standing: str
    workspaces: Sequence[UUID]
    """Workspaces it could enter, stopped ones included."""
    revision: int = 0


@dataclass(frozen=True, slots=True)
class WatchedClient:
    """Client with its current and its recorded access."""

    row: WireguardClientRow
    username: str
    standing: str
    known: Reach


COLUMNS = tuple(wireguard_clients.c[name] for name in WireguardClientRow.__slots__)
_reach = wireguard_reach.c


async def insert_client(tx: Tx, row: WireguardClientRow) -> None:
    """Insert a client. Raises IntegrityError when the owner has one of that name, or any user that key."""
    await tx.execute(insert(wireguard_clients).values({name: getattr(row, name) for name in row.__slots__}))
    await tx.execute(insert(wireguard_reach).values(client_id=row.id, standing=ACTIVE, workspaces=[], revision=0))


async def list_clients(tx: Tx, user_id: UUID) -> list[WireguardClientRow]:
    """Return a user's clients by name, expired ones too."""
    query = (
        select(*COLUMNS).where(wireguard_clients.c.user_id == user_id).order_by(func.lower(wireguard_clients.c.name))
    )
    return [WireguardClientRow(*row) for row in await tx.execute(query)]


async def count_clients(tx: Tx, user_id: UUID) -> int:
    """Return the number of a user's rows, expired ones too. The user must be locked for the result to stay true."""
    query = select(func.count()).select_from(wireguard_clients).where(wireguard_clients.c.user_id == user_id)
    return int((await tx.execute(query)).scalar_one())


async def delete_client(tx: Tx, client_id: UUID) -> None:
    await tx.execute(delete(wireguard_clients).where(wireguard_clients.c.id == client_id))


async def list_watched(tx: Tx, now: datetime) -> list[WatchedClient]:
    """Return every client with access, and clients without it whose end is not in the audit log yet."""
    standing = _standing(now)
    query = (
        select(*COLUMNS, users.c.username, standing, _reach.standing, _reach.workspaces, _reach.revision)
        .join(users, users.c.id == wireguard_clients.c.user_id)
        .join(wireguard_reach, _reach.client_id == wireguard_clients.c.id)
        .where((standing == ACTIVE) | (standing != _reach.standing) & (_reach.standing != EXPIRED))
        .order_by(wireguard_clients.c.user_id, wireguard_clients.c.created_at)
    )
    count = len(COLUMNS)
    return [
        WatchedClient(WireguardClientRow(*row[:count]), row[count], row[count + 1], Reach(*row[count + 2 :]))
        for row in await tx.execute(query)
    ]


def _standing(now: datetime) -> ColumnElement[str]:
    return case(
        (users.c.deleted, "owner_deleted"),
        (users.c.status == "suspended", "owner_suspended"),
        (wireguard_clients.c.expires_at <= now, EXPIRED),
        else_=ACTIVE,
    )


async def change_reach(tx: Tx, client_id: UUID, known: Reach, new: Reach) -> bool:
    """Update the recorded access; False when another process changed it since it was read."""
    statement = (
        update(wireguard_reach)
        .where(_reach.client_id == client_id, _reach.revision == known.revision)
        .values(standing=new.standing, workspaces=list(new.workspaces), revision=known.revision + 1)
    )
    return bool((await tx.execute(statement)).rowcount)
