"""The gateway plain WireGuard clients connect to: a part of the server, on when `--wireguard-address` is set.

Starts the gateway's mesh node, its coordination and its tasks (`wireguard_service.py`). Permissions are
`wireguard_access.py`, packets `coder.mesh.gateway`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import trio

from coder.base.errors import CoderError
from coder.base.log import get_logger
from coder.coderd.config.checks import check_wireguard_endpoint
from coder.coderd.services.network.derp_map import current_map
from coder.coderd.services.network.server_node import coordinate_inside, relay_dialer
from coder.coderd.services.wireguard.wireguard_server import load_private_key
from coder.coderd.services.wireguard.wireguard_service import WireguardService
from coder.domain.foundation.endpoints import HostPort
from coder.mesh.errors import MeshError
from coder.mesh.gateway import open_gateway
from coder.mesh.node import NodeConfig, open_node
from coder.tailnet.addresses import random_address, random_node_id
from coder.tailnet.controller import open_controller

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context


_log = get_logger("wireguard")


async def run(ctx: Context, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
    """Part: run the gateway when it has an address. Raises CoderError when the address cannot be bound."""
    if not ctx.config.wireguard_address or ctx.config.browser_only:
        task_status.started()
        return
    host, port = _split(ctx.config.wireguard_address)
    key = await load_private_key(ctx)
    async with trio.open_nursery() as nursery:
        config = NodeConfig(
            addresses=(random_address(),),
            derp_map=current_map(ctx),
            derp_dialer=relay_dialer(ctx, nursery),
            direct=not ctx.config.block_direct_connections,
        )
        async with (
            open_node(config) as node,
            open_controller(node, "source", number=random_node_id(), direct=config.direct) as controller,
        ):
            part = WireguardService(ctx, node, controller, "")
            try:
                async with open_gateway(node, key, host, port, part.request_tunnel) as part.gateway:
                    part.endpoint = _endpoint(ctx, part.gateway.port)
                    ctx.services.edge.wireguard = part
                    for task in (part.follow, part.audit_losses, part.open_tunnels, part.drop_idle):
                        nursery.start_soon(task)
                    nursery.start_soon(coordinate_inside, ctx, controller)
                    _log.info(
                        "serving plain WireGuard clients", address=ctx.config.wireguard_address, told=part.endpoint
                    )
                    task_status.started()
                    await ctx.stopping.wait()
                    nursery.cancel_scope.cancel()
            except MeshError as error:
                raise CoderError("wireguard_address", error.message, "Choose another --wireguard-address.") from error


def _split(address: str) -> tuple[str, int]:
    """Split `host:port`, `[v6]:port` or `:port`. Raises CoderError."""
    try:
        parts = urlsplit(f"//{address}")
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port = "", None
    if port is None:
        raise CoderError(
            "wireguard_address", f"--wireguard-address {address!r} has no port", "Write host:port, such as :51820."
        )
    return ("" if host == "0.0.0.0" else host), port


def _endpoint(ctx: Context, port: int) -> str:
    """Return the endpoint for configurations of clients. Raises CoderError when clients could not use it."""
    host = urlsplit(ctx.access_url).hostname or "localhost"
    endpoint = ctx.config.wireguard_endpoint or str(HostPort(host, port))
    check_wireguard_endpoint(endpoint)
    return endpoint
