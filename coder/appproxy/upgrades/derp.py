"""Upgrade of an HTTP request to a client of a relay, for any process that has one: this server, a workspace proxy."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coder.appproxy.upgrades.raw_links import Upgrade
    from coder.mesh.relay import DerpServer

PLAIN = ("content-type", "text/plain; charset=utf-8")


async def serve_derp(server: DerpServer, upgrade: Upgrade) -> None:
    """Upgrade to DERP, raw or inside a WebSocket, and relay until the peer disconnects."""
    headers = upgrade.request.headers
    protocol = headers.get("upgrade", "").lower()
    protocols = [name.strip().lower() for name in headers.get("sec-websocket-protocol", "").split(",")]
    if protocol == "websocket" and "derp" in protocols:
        await server.serve_connection(await upgrade.accept_websocket("derp", any_origin=True))
    elif protocol in {"derp", "websocket"}:
        # A WebSocket without our subprotocol is served raw, as upstream does.
        fast = headers.get("derp-fast-start") == "1"
        head = (("upgrade", "DERP"), ("derp-version", "2"), ("derp-public-key", server.public_key.hex()))
        await server.serve_connection(await upgrade.accept_raw(head, fast=fast))
    else:
        await upgrade.answer(426, b"DERP requires connection upgrade\n", (PLAIN,))
