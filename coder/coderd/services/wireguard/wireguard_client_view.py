"""WireGuard clients as JSON, with their present state and the agents they reach."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

import trio

from coder.api.wireguard.wireguard_clients import (
    WireguardClient,
    WireguardTarget,
)
from coder.coderd.services.access import authentication
from coder.coderd.services.wireguard.wireguard_access import ReachableAgent, client_address, of_workspaces, targets_of
from coder.coderd.services.wireguard.wireguard_audit import key_text
from coder.coderd.services.wireguard.wireguard_service import gateway_of
from coder.coderd.store.wireguard.wireguard_clients import WireguardClientRow

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context


async def list_owner_targets(ctx: Context, user_id: UUID) -> list[ReachableAgent]:
    """Return the agents that the client's owner may enter, not the caller: these are what the client reaches."""
    owner = await authentication.user_subject(ctx, user_id)
    return await targets_of(ctx, owner) if owner is not None else []


def present_client(
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
        last_handshake_at=_wall_time(status.last_handshake, now) if status else None,
        endpoint=status.endpoint if status else "",
        rx_bytes=status.rx_bytes if status else 0,
        tx_bytes=status.tx_bytes if status else 0,
        targets=[_target_view(target) for target in targets],
    )


def _target_view(target: ReachableAgent) -> WireguardTarget:
    current = target.current
    return WireguardTarget(
        workspace_id=current.workspace_id,
        workspace_name=current.workspace_name,
        owner_name=current.owner_username,
        agent_id=current.agent.id,
        agent_name=current.agent.name,
        address=str(target.stable),
    )


def _wall_time(at: float | None, now: datetime) -> datetime | None:
    return None if at is None else now - timedelta(seconds=trio.current_time() - at)
