"""Queries about plain WireGuard clients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import ColumnElement, case, delete, func, insert, select, update

from coder.coderd.store.engine.names import called
from coder.coderd.store.tables.people import users
from coder.coderd.store.tables.wireguard import wireguard_clients, wireguard_reach

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx

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


ACTIVE, EXPIRED = "active", "expired"
"""How a client stands; the others are `owner_suspended` and `owner_deleted`."""


@dataclass(frozen=True, slots=True)
class Reach:
    """What a client had when the audit log was last told of it."""

    standing: str
    workspaces: Sequence[UUID]
    "Those it could enter, also stopped ones."
    revision: int = 0


@dataclass(frozen=True, slots=True)
class WatchedClient:
    """A client with what it may now and what it might before."""

    row: WireguardClientRow
    username: str
    standing: str
    known: Reach


_COLUMNS = tuple(wireguard_clients.c[name] for name in WireguardClientRow.__slots__)
_reach = wireguard_reach.c


async def insert_client(tx: Tx, row: WireguardClientRow) -> None:
    """Raises IntegrityError when the owner has one of that name, or anybody that key."""
    await tx.execute(insert(wireguard_clients).values({name: getattr(row, name) for name in row.__slots__}))
    await tx.execute(insert(wireguard_reach).values(client_id=row.id, standing=ACTIVE, workspaces=[], revision=0))


async def list_clients(tx: Tx, user_id: UUID) -> list[WireguardClientRow]:
    """A user's, by name, expired ones too."""
    query = (
        select(*_COLUMNS).where(wireguard_clients.c.user_id == user_id).order_by(func.lower(wireguard_clients.c.name))
    )
    return [WireguardClientRow(*row) for row in await tx.execute(query)]


async def count_clients(tx: Tx, user_id: UUID) -> int:
    """How many rows a user has, expired ones too. The user must be locked for the answer to stay true."""
    query = select(func.count()).select_from(wireguard_clients).where(wireguard_clients.c.user_id == user_id)
    return int((await tx.execute(query)).scalar_one())


async def get_client(tx: Tx, user_id: UUID, reference: str) -> WireguardClientRow | None:
    """By name (without regard to case) or id, among a user's."""
    mine = select(*_COLUMNS).where(wireguard_clients.c.user_id == user_id)
    is_named = func.lower(wireguard_clients.c.name) == func.lower(reference)
    row = (await tx.execute(called(mine, reference, wireguard_clients.c.id, is_named))).one_or_none()
    return WireguardClientRow(*row) if row else None


async def delete_client(tx: Tx, client_id: UUID) -> None:
    await tx.execute(delete(wireguard_clients).where(wireguard_clients.c.id == client_id))


async def list_watched(tx: Tx, now: datetime) -> list[WatchedClient]:
    """Every client that may come, and those that may not any more of which the audit log has not been told."""
    standing = _standing(now)
    query = (
        select(*_COLUMNS, users.c.username, standing, _reach.standing, _reach.workspaces, _reach.revision)
        .join(users, users.c.id == wireguard_clients.c.user_id)
        .join(wireguard_reach, _reach.client_id == wireguard_clients.c.id)
        .where((standing == ACTIVE) | (standing != _reach.standing) & (_reach.standing != EXPIRED))
        .order_by(wireguard_clients.c.user_id, wireguard_clients.c.created_at)
    )
    count = len(_COLUMNS)
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
    """False when somebody else changed it since it was read."""
    statement = (
        update(wireguard_reach)
        .where(_reach.client_id == client_id, _reach.revision == known.revision)
        .values(standing=new.standing, workspaces=list(new.workspaces), revision=known.revision + 1)
    )
    return bool((await tx.execute(statement)).rowcount)
