"""`GET /derp`: the embedded relay's door, without authentication (derp-disco-stun section 1).

Peers prove their keys inside the protocol, and packets are sealed end to end: the relay learns who talks, never what.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coder.coderd.links.door import LinkTable
from coder.coderd.services.relay import Relay

if TYPE_CHECKING:
    from coder.coderd.links.door import Upgrade
    from coder.coderd.services.context import Context

_PLAIN = ("content-type", "text/plain; charset=utf-8")


def register(table: LinkTable) -> None:
    table.add("/derp", serve_relay)


async def serve_relay(ctx: Context, upgrade: Upgrade) -> None:
    """Upgrades to DERP, raw or inside a WebSocket, and relays until the peer leaves."""
    upgrade.anonymous = True
    server = ctx.part(Relay).server
    if server is None:
        await upgrade.answer(404, b"", (_PLAIN,))
        return
    headers = upgrade.request.headers
    wanted = headers.get("upgrade", "").lower()
    protocols = [name.strip().lower() for name in headers.get("sec-websocket-protocol", "").split(",")]
    if wanted == "websocket" and "derp" in protocols:
        await server.serve_connection(await upgrade.accept_websocket("derp", any_origin=True))
    elif wanted in {"derp", "websocket"}:
        # A WebSocket without our subprotocol is served raw, as upstream does.
        fast = headers.get("derp-fast-start") == "1"
        head = (("upgrade", "DERP"), ("derp-version", "2"), ("derp-public-key", server.public_key.hex()))
        await server.serve_connection(await upgrade.accept_raw(head, fast=fast))
    else:
        await upgrade.answer(426, b"DERP requires connection upgrade\n", (_PLAIN,))
