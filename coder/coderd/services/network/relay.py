"""Embedded relay and STUN server of this process. The relay's key survives restarts, so that clients recognize it.

Frames and queues are part of the mesh (`mesh/drivers/derp_server.py`); the HTTP side is `rpc_endpoints/relay.py`.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import trio

from coder.base.log import get_logger
from coder.coderd.services.network.derp_map import fetch_configured
from coder.coderd.services.network.node_keys import announced_keys
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
    """The embedded relay; `server` is None when the configuration disables it."""

    def __init__(self) -> None:
        self.server: DerpServer | None = None
        self.mesh_key = ""
        "Key in hex by which other replicas' relays are admitted."


async def run(ctx: Context, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
    """Part: run the relay, and the STUN server when its address is configured."""
    relay = ctx.services.relay.derp
    await fetch_configured(ctx)
    if ctx.config.derp_server_enable:
        raw, mesh_key = await ctx.db.run(_ensure_keys)
        rate = max(0, ctx.config.derp_server_bytes_per_second)
        relay.server = DerpServer(
            PrivateKey(raw), mesh_key=mesh_key, rate=rate, find_known=partial(announced_keys, ctx)
        )
        relay.mesh_key = mesh_key
    async with trio.open_nursery() as nursery:
        if ctx.config.stun_address and ctx.process.has("relay"):
            nursery.start_soon(_answer_stun, ctx)
        task_status.started()
        await ctx.stopping.wait()
        if relay.server is not None:
            relay.server.disconnect_all()
        nursery.cancel_scope.cancel()


async def _answer_stun(ctx: Context) -> None:
    address = ctx.config.stun_address
    await ctx.process.wait_ports_free()
    parts = urlsplit(f"//{address}")
    try:
        await serve_stun(parts.hostname or "", 3478 if parts.port is None else parts.port)
    except OSError as error:
        # Without STUN, peers behind NAT stay on the relay: slower, but the server can start.
        _log.warn("the STUN server cannot listen", address=address, error=str(error))


async def _ensure_keys(tx: Tx) -> tuple[bytes, str]:
    """Return the relay's private key, and the mesh key of this deployment's relays; all replicas share both."""
    own = bytes.fromhex(await site_settings.ensure_config(tx, _KEY, os.urandom(32).hex()))
    return own, await site_settings.ensure_config(tx, _MESH_KEY, os.urandom(32).hex())
