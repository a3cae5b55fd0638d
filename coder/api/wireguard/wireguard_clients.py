"""JSON shapes of plain WireGuard clients. Ours: upstream has no counterpart (docs/guides/wireguard.md)."""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from uuid import UUID

from msgspec import UNSET, UnsetType

from coder.api.base.struct import ApiStruct


class WireguardServer(ApiStruct):
    """Server section of every client's configuration."""

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
    """Agent that a client may reach."""

    workspace_id: UUID
    workspace_name: str
    owner_name: str
    agent_id: UUID
    agent_name: str
    address: str
    """Address; stable as long as the workspace exists."""


class WireguardClient(ApiStruct):
    """A client."""

    id: UUID
    user_id: UUID
    username: str
    name: str
    public_key: str
    address: str
    created_at: datetime
    expires_at: datetime | None
    workspace_ids: list[UUID] | None
    """Ids; null for every workspace its owner may enter."""
    status: Literal["active", "expired"]
    last_handshake_at: datetime | None
    endpoint: str
    """Address of the client's last packet; empty if none since the server started."""
    rx_bytes: int
    tx_bytes: int
    targets: list[WireguardTarget]
    """Agents it may reach at this moment."""


class CreateWireguardClientRequest(ApiStruct):
    name: str
    public_key: str
    lifetime_seconds: int | UnsetType = UNSET
    """Seconds; absent or 0: until removed."""
    workspace_ids: list[UUID] | UnsetType = UNSET


class CreateWireguardClientResponse(ApiStruct):
    client: WireguardClient
    server: WireguardServer
