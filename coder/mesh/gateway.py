"""Public API: the gateway that routes plain WireGuard clients into the mesh."""

from __future__ import annotations

from coder.mesh.drivers.wireguard_gateway import (
    CLIENT_MTU,
    ClientStatus,
    GatewayClient,
    WireguardGateway,
    open_gateway,
)

__all__ = ["CLIENT_MTU", "ClientStatus", "GatewayClient", "WireguardGateway", "open_gateway"]
