"""Plain WireGuard clients of a user: listed, read, removed. Creation is `new_wireguard_clients.py`."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from coder.api.base.refusals import NotFound
from coder.api.wireguard.wireguard_clients import (
    WireguardClient,
)
from coder.coderd.services.access.authorization import require
from coder.coderd.services.access.keys import key_resource, keys_of
from coder.coderd.services.audit import audit
from coder.coderd.services.audit.audit import AuditEvent, Origin
from coder.coderd.services.wireguard import wireguard_audit
from coder.coderd.services.wireguard.wireguard_client_view import list_owner_targets, present_client
from coder.coderd.store.wireguard import system_wireguard_clients
from coder.coderd.store.wireguard import wireguard_clients as client_store
from coder.coderd.store.wireguard.wireguard_clients import WireguardClientRow

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx
    from coder.coderd.store.people.users import UserRow
    from coder.domain.access.policy import Subject


async def list_clients(ctx: Context, subject: Subject, user: UserRow) -> list[WireguardClient]:
    """Return a user's clients, expired ones included."""
    require(subject, "read", keys_of(user.id))
    rows = await ctx.db.read(client_store.list_clients, user.id)
    targets = await list_owner_targets(ctx, user.id) if rows else []
    return [present_client(ctx, row, user.username, targets) for row in rows]


async def get_client(ctx: Context, subject: Subject, user: UserRow, reference: str) -> WireguardClient:
    """Return a client by name or id. Raises NotFound."""
    row = await _find(ctx, subject, user, reference, "read")
    return present_client(ctx, row, user.username, await list_owner_targets(ctx, user.id))


async def remove_client(ctx: Context, subject: Subject, user: UserRow, reference: str, origin: Origin) -> None:
    """Remove a client by name or id; the gateway disconnects it on the transaction's notice, milliseconds later.

    Raises NotFound.
    """
    row = await _find(ctx, subject, user, reference, "delete")
    await ctx.db.run(_delete, row, wireguard_audit.change("delete", row, origin), ctx.clock.now())
    wireguard_audit.log_change(ctx, subject, "delete", row)


async def _delete(tx: Tx, row: WireguardClientRow, event: AuditEvent, now: datetime) -> None:
    await client_store.delete_client(tx, row.id)
    await audit.write(tx, event, now)


async def _find(ctx: Context, subject: Subject, user: UserRow, reference: str, action: str) -> WireguardClientRow:
    row = await ctx.db.read(system_wireguard_clients.get_client, user.id, reference)
    if row is None:
        raise NotFound
    require(subject, action, key_resource(user.id, str(row.id)))
    return row
