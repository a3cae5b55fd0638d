"""JSON shapes of reaching agents: what server and client both speak."""

from __future__ import annotations

from typing import Any

from coder.api.base.struct import ApiStruct


class AgentConnectionInfo(ApiStruct):
    derp_map: dict[str, Any]
    "As Tailscale writes relay maps; read by `coder.mesh.derp_map`."
    derp_force_websockets: bool
    disable_direct_connections: bool
    hostname_suffix: str
