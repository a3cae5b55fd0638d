"""Reads of WireGuard devices without a subject, for loaders that check permission and for the server itself."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import func, select

from coder.coderd.store.engine.names import called
from coder.coderd.store.tables.wireguard import wireguard_clients
from coder.coderd.store.wireguard.wireguard_clients import COLUMNS, WireguardClientRow

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx


async def get_client(tx: Tx, user_id: UUID, reference: str) -> WireguardClientRow | None:
    """Return a user's client by name (without regard to case) or id."""
    own_clients = select(*COLUMNS).where(wireguard_clients.c.user_id == user_id)
    is_named = func.lower(wireguard_clients.c.name) == func.lower(reference)
    row = (await tx.execute(called(own_clients, reference, wireguard_clients.c.id, is_named))).one_or_none()
    return WireguardClientRow(*row) if row else None
