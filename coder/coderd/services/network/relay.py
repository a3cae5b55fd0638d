"""The embedded relay and STUN server of this process. The relay's key survives restarts, so clients know it again.

Frames and queues are the mesh's (`mesh/drivers/derp_server.py`); the HTTP side is `rpc_endpoints/relay.py`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import trio

from coder.base.log import get_logger
from coder.coderd.services.network.derp_map import fetch_configured
from coder.coderd.store.site import site_settings
from coder.mesh.keys import PrivateKey
from coder.mesh.relay import DerpServer, serve_stun

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

_KEY = "derp_private_key"
_MESH_KEY = "derp_mesh_key"
_log = get_logger("relay")


class Relay:
    """Holds the relay, see `Context.part`; `server` is None where the configuration turned it off."""

    def __init__(self, _ctx: Context) -> None:
        self.server: DerpServer | None = None
        self.mesh_key = ""
        "Hex; admits other replicas' relays."


async def run(ctx: Context, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
    """Part: makes the relay, and answers STUN when an address for it is configured."""
    relay = ctx.part(Relay)
    await fetch_configured(ctx)
    if ctx.config.derp_server_enable:
        raw, mesh_key = await ctx.db.run(_ensure_keys)
        rate = max(0, ctx.config.derp_server_bytes_per_second)
        relay.server = DerpServer(PrivateKey(raw), mesh_key=mesh_key, rate=rate)
        relay.mesh_key = mesh_key
    async with trio.open_nursery() as nursery:
        if ctx.config.stun_address:
            nursery.start_soon(_answer_stun, ctx.config.stun_address)
        task_status.started()
        await ctx.stopping.wait()
        if relay.server is not None:
            relay.server.disconnect_all()
        nursery.cancel_scope.cancel()


async def _answer_stun(address: str) -> None:
    parts = urlsplit(f"//{address}")
    try:
        await serve_stun(parts.hostname or "", parts.port or 3478)
    except OSError as error:
        # Without it peers behind NAT keep to the relay: slower, and no reason not to start.
        _log.warn("the STUN server cannot listen", address=address, error=str(error))


async def _ensure_keys(tx: Tx) -> tuple[bytes, str]:
    """The relay's own key, and the one by which relays of this deployment know each other: of all replicas the same."""
    own = bytes.fromhex(await site_settings.ensure_config(tx, _KEY, os.urandom(32).hex()))
    return own, await site_settings.ensure_config(tx, _MESH_KEY, os.urandom(32).hex())
