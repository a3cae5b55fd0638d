"""`GET /derp`: the entry of the embedded relay, without authentication (docs/protocol/derp.md#opening).

Peers prove their keys inside the protocol, and packets are sealed end to end: the relay sees peers, never contents.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coder.appproxy.upgrades.derp import PLAIN, serve_derp
from coder.appproxy.upgrades.raw_links import EndpointTable
from coder.domain.access.rate_budgets import RELAY
from coder.domain.access.route_scopes import PUBLIC

if TYPE_CHECKING:
    from coder.appproxy.upgrades.raw_links import Upgrade
    from coder.coderd.services.foundation.context import Context


def register(table: EndpointTable) -> None:
    table.add("/derp", serve_relay, scope=PUBLIC, budgets=(RELAY,))


async def serve_relay(ctx: Context, upgrade: Upgrade) -> None:
    """Upgrade to DERP, raw or inside a WebSocket, and relay until the peer disconnects."""
    upgrade.anonymous = True
    server = ctx.services.relay.derp.server
    if server is None:
        await upgrade.answer(404, b"", (PLAIN,))
        return
    await serve_derp(server, upgrade)
