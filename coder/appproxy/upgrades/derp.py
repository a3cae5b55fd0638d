"""Upgrade of an HTTP request to a client of a relay, for any process that has one: this server, a workspace proxy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trio.abc import HalfCloseableStream

from coder.appproxy.http.client_address import network_of
from coder.appproxy.http.connection_shares import promotion

if TYPE_CHECKING:
    from coder.appproxy.upgrades.raw_links import Upgrade
    from coder.mesh.relay import DerpServer

PLAIN = ("content-type", "text/plain; charset=utf-8")


async def serve_derp(server: DerpServer, upgrade: Upgrade) -> None:
    """Upgrade to DERP, raw or inside a WebSocket, and relay until the peer disconnects."""
    # An announced key is an account of its own. A relay that cannot tell keys has one account for each address.
    source = network_of(upgrade.request.remote_ip)
    on_known = promotion(f"relay client {id(upgrade)}" if server.tells_keys else f"relay clients of {source}")
    stream = await _accept(server, upgrade)
    if stream is not None:
        await server.serve_connection(stream, source=source, on_known=on_known)


async def _accept(server: DerpServer, upgrade: Upgrade) -> HalfCloseableStream | None:
    """Return the stream of DERP; None for a request that is answered otherwise."""
    headers = upgrade.request.headers
    protocol = headers.get("upgrade", "").lower()
    protocols = [name.strip().lower() for name in headers.get("sec-websocket-protocol", "").split(",")]
    if protocol == "websocket" and "derp" in protocols:
        return await upgrade.accept_websocket("derp", any_origin=True)
    if protocol in {"derp", "websocket"}:
        # A WebSocket without our subprotocol is served raw, as upstream does.
        fast = headers.get("derp-fast-start") == "1"
        head = (("upgrade", "DERP"), ("derp-version", "2"), ("derp-public-key", server.public_key.hex()))
        return await upgrade.accept_raw(head, fast=fast)
    await upgrade.answer(426, b"DERP requires connection upgrade\n", (PLAIN,))
    return None
