"""JSON shapes of plain WireGuard clients. Our own: upstream has nothing of the kind (docs/guides/wireguard.md)."""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from uuid import UUID

from msgspec import UNSET, UnsetType

from coder.api.base.struct import ApiStruct


class WireguardServer(ApiStruct):
    """What every client's configuration says about the server."""

    enabled: bool
    endpoint: str
    "host:port; empty when off."
    public_key: str
    "Base64, as WireGuard tools write keys."
    allowed_ips: list[str]
    mtu: int
    persistent_keepalive: int
    "Seconds."


class WireguardTarget(ApiStruct):
    """An agent a client may reach."""

    workspace_id: UUID
    workspace_name: str
    owner_name: str
    agent_id: UUID
    agent_name: str
    address: str
    "The same for as long as the workspace exists."


class WireguardClient(ApiStruct):
    """One client."""

    id: UUID
    user_id: UUID
    username: str
    name: str
    public_key: str
    address: str
    created_at: datetime
    expires_at: datetime | None
    workspace_ids: list[UUID] | None
    "null: every workspace its owner may enter."
    status: Literal["active", "expired"]
    last_handshake_at: datetime | None
    endpoint: str
    "Where it was last heard from; empty: not since the server started."
    rx_bytes: int
    tx_bytes: int
    targets: list[WireguardTarget]
    "What it may reach at this moment."


class CreateWireguardClientRequest(ApiStruct):
    name: str
    public_key: str
    lifetime_seconds: int | UnsetType = UNSET
    "Absent or 0: until removed."
    workspace_ids: list[UUID] | UnsetType = UNSET


class CreateWireguardClientResponse(ApiStruct):
    client: WireguardClient
    server: WireguardServer
