"""Plain WireGuard clients: added, listed, removed. The private key is made by whoever will use it, never here.

A client is as strong as an API key of its owner, so the policy is asked about those: who may make a key for somebody
may make a client for them, as far as their own key reaches and for no longer than a token may live.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal
from uuid import UUID

import trio
from msgspec import UNSET

from coder.api.base.refusals import Conflict, Invalid, InvalidFields, NotFound
from coder.api.wireguard.wireguard_clients import (
    CreateWireguardClientRequest,
    WireguardClient,
    WireguardServer,
    WireguardTarget,
)
from coder.base.ids import new_uuid
from coder.coderd.services.access import authentication
from coder.coderd.services.access.api_tokens import check_reach
from coder.coderd.services.access.authorization import require
from coder.coderd.services.access.keys import key_resource
from coder.coderd.services.access.made_by_applications import refuse_applications
from coder.coderd.services.access.workspace_access import load_workspace
from coder.coderd.services.audit import audit
from coder.coderd.services.audit.audit import AuditEvent, Origin
from coder.coderd.services.foundation.field_checks import check_request
from coder.coderd.services.foundation.uniqueness import told_as
from coder.coderd.services.wireguard import wireguard_audit
from coder.coderd.services.wireguard.wireguard_access import ReachableAgent, client_address, of_workspaces, targets_of
from coder.coderd.services.wireguard.wireguard_audit import key_text
from coder.coderd.services.wireguard.wireguard_gateway import KEEPALIVE, MTU, gateway_of, public_key
from coder.coderd.store.people import users as user_store
from coder.coderd.store.wireguard import wireguard_clients as client_store
from coder.coderd.store.wireguard.wireguard_clients import WireguardClientRow
from coder.domain.access import scopes
from coder.domain.network.overlay import TAILSCALE_SERVICE_PREFIX, read_public_key

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx
    from coder.coderd.store.people.users import UserRow
    from coder.domain.access.policy import Subject

MOST_CLIENTS = 32
"""Of one user, expired ones too: the gateway keeps each, and looks at what it may reach whenever rights change."""
FOREVER = timedelta(hours=876600)
"""What `--max-token-lifetime` is where nobody set it: no limit in earnest."""


async def server_view(ctx: Context) -> WireguardServer:
    """What every configuration says about this server."""
    gateway = gateway_of(ctx)
    return WireguardServer(
        enabled=gateway is not None,
        endpoint=gateway.endpoint if gateway else "",
        public_key=key_text(await public_key(ctx)) if gateway else "",
        allowed_ips=[str(TAILSCALE_SERVICE_PREFIX)],
        mtu=MTU,
        persistent_keepalive=KEEPALIVE,
    )


async def add_client(
    ctx: Context, subject: Subject, user: UserRow, wanted: CreateWireguardClientRequest, origin: Origin
) -> WireguardClient:
    """Raises Invalid (the gateway is off), InvalidFields, Conflict (name or key taken, too many), NotFound (a
    workspace), Forbidden.

    Each workspace named must be one the caller may enter with the key in use; a client for all of them, also those to
    come, needs a key without limits.
    """
    require(subject, "create", key_resource(user.id))
    await refuse_applications(ctx, subject, "wireguard_client")
    workspace_ids = None if wanted.workspace_ids is UNSET else wanted.workspace_ids
    if workspace_ids is None:
        check_reach(subject, scopes.ALL)
    if gateway_of(ctx) is None:
        raise Invalid(
            "This deployment serves no plain WireGuard clients.",
            "An administrator turns it on with --wireguard-address (CODER_WIREGUARD_ADDRESS), such as :51820.",
        )
    longest = ctx.config.max_token_lifetime
    check_request(wanted)
    seconds = 0 if wanted.lifetime_seconds is UNSET else wanted.lifetime_seconds
    if seconds > longest.total_seconds():
        most = int(longest.total_seconds())
        raise InvalidFields(("lifetime_seconds", f"At most {most} seconds, as for tokens."))
    for workspace_id in workspace_ids or ():
        await load_workspace(ctx, subject, workspace_id, "ssh")
    now = ctx.clock.now()
    lifetime = timedelta(seconds=seconds) or (longest if longest < FOREVER else None)
    row = WireguardClientRow(
        id=new_uuid(),
        user_id=user.id,
        name=wanted.name,
        public_key=read_public_key(wanted.public_key) or b"",
        created_at=now,
        expires_at=now + lifetime if lifetime else None,
        workspace_ids=list(workspace_ids) if workspace_ids is not None else None,
    )
    taken = Conflict(
        f'A WireGuard client named "{wanted.name}" already exists, or its key is in use.',
        validations=[("name", "This value is already in use and should be unique.")],
    )
    with told_as(dict.fromkeys(("ix_wireguard_clients_user_id_name", "uq_wireguard_clients_public_key"), taken)):
        await ctx.db.run(_insert, row, wireguard_audit.change("create", row, origin), now)
    _tell(ctx, subject, "create", row)
    return _view(ctx, row, user.username, await _owner_targets(ctx, user.id))


async def list_clients(ctx: Context, subject: Subject, user: UserRow) -> list[WireguardClient]:
    """A user's clients, expired ones too."""
    require(subject, "read", key_resource(user.id))
    rows = await ctx.db.read(client_store.list_clients, user.id)
    targets = await _owner_targets(ctx, user.id) if rows else []
    return [_view(ctx, row, user.username, targets) for row in rows]


async def get_client(ctx: Context, subject: Subject, user: UserRow, reference: str) -> WireguardClient:
    """By name or id. Raises NotFound."""
    row = await _find(ctx, subject, user, reference, "read")
    return _view(ctx, row, user.username, await _owner_targets(ctx, user.id))


async def remove_client(ctx: Context, subject: Subject, user: UserRow, reference: str, origin: Origin) -> None:
    """By name or id; it is cut off when the transaction's notice arrives, milliseconds later. Raises NotFound."""
    row = await _find(ctx, subject, user, reference, "delete")
    await ctx.db.run(_delete, row, wireguard_audit.change("delete", row, origin), ctx.clock.now())
    _tell(ctx, subject, "delete", row)


async def _insert(tx: Tx, row: WireguardClientRow, event: AuditEvent, now: datetime) -> None:
    user = await user_store.get_user(tx, row.user_id, lock=True)  # of two at once, one counts the other
    if user is None or user.deleted:
        raise NotFound
    if await client_store.count_clients(tx, row.user_id) >= MOST_CLIENTS:
        raise Conflict(
            f"A user has at most {MOST_CLIENTS} WireGuard clients.", "Remove one first; expired ones count until then."
        )
    await client_store.insert_client(tx, row)
    await audit.write(tx, event, now)


async def _delete(tx: Tx, row: WireguardClientRow, event: AuditEvent, now: datetime) -> None:
    await client_store.delete_client(tx, row.id)
    await audit.write(tx, event, now)


async def _find(ctx: Context, subject: Subject, user: UserRow, reference: str, action: str) -> WireguardClientRow:
    row = await ctx.db.read(client_store.get_client, user.id, reference)
    if row is None:
        raise NotFound
    require(subject, action, key_resource(user.id, str(row.id)))
    return row


async def _owner_targets(ctx: Context, user_id: UUID) -> list[ReachableAgent]:
    """What the owner may enter - the owner, not the caller: that is what the client can do."""
    owner = await authentication.user_subject(ctx, user_id)
    return await targets_of(ctx, owner) if owner is not None else []


def _tell(ctx: Context, subject: Subject, action: Literal["create", "delete"], row: WireguardClientRow) -> None:
    """A line for the server's log; the audit entry is written with the change itself."""
    ctx.log.info(
        "wireguard client",
        action=action,
        by=subject.username,
        client=row.name,
        client_id=str(row.id),
        owner_id=str(row.user_id),
        expires_at=row.expires_at.isoformat() if row.expires_at else "never",
        workspaces=len(row.workspace_ids) if row.workspace_ids is not None else "all",
    )


def _view(
    ctx: Context, row: WireguardClientRow, username: str, owner_targets: Sequence[ReachableAgent]
) -> WireguardClient:
    now = ctx.clock.now()
    is_expired = row.expires_at is not None and row.expires_at <= now
    gateway = gateway_of(ctx)
    status = gateway.status(row.public_key) if gateway else None
    targets = [] if is_expired else of_workspaces(owner_targets, row.workspace_ids)
    return WireguardClient(
        id=row.id,
        user_id=row.user_id,
        username=username,
        name=row.name,
        public_key=key_text(row.public_key),
        address=str(client_address(row.id)),
        created_at=row.created_at,
        expires_at=row.expires_at,
        workspace_ids=list(row.workspace_ids) if row.workspace_ids is not None else None,
        status="expired" if is_expired else "active",
        last_handshake_at=_moment(status.last_handshake, now) if status else None,
        endpoint=status.endpoint if status else "",
        rx_bytes=status.rx_bytes if status else 0,
        tx_bytes=status.tx_bytes if status else 0,
        targets=[_target_view(target) for target in targets],
    )


def _target_view(target: ReachableAgent) -> WireguardTarget:
    place = target.place
    return WireguardTarget(
        workspace_id=place.workspace_id,
        workspace_name=place.workspace_name,
        owner_name=place.owner_username,
        agent_id=place.agent.id,
        agent_name=place.agent.name,
        address=str(target.stable),
    )


def _moment(at: float | None, now: datetime) -> datetime | None:
    return None if at is None else now - timedelta(seconds=trio.current_time() - at)
