"""JSON shapes for reaching agents, shared by server and client."""

from __future__ import annotations

from coder.api.base.struct import ApiStruct
from coder.base.json_types import Json


class AgentConnectionInfo(ApiStruct):
    derp_map: dict[str, Json]
    """Relay map in Tailscale's form; read by `coder.mesh.derp_map`."""
    derp_force_websockets: bool
    disable_direct_connections: bool
    hostname_suffix: str
