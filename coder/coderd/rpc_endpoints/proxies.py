"""The link of workspace proxies: coordination with every agent, since a proxy authorizes visitors by tickets."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID, uuid4

import trio

from coder.api.base.refusals import Unauthenticated
from coder.api.proxies.proxy_token import TOKEN_HEADER
from coder.appproxy.http.rate_limits import counted
from coder.base.exception_groups import single_failure
from coder.coderd.rpc_endpoints.coordination import ClientConnection
from coder.coderd.rpc_endpoints.versions import agent_api_version
from coder.coderd.services.network.node_keys import proxy_owner
from coder.coderd.services.network.tailnet_rpc import TailnetPeer, TailnetService
from coder.coderd.services.proxies.proxy_authentication import authenticate_proxy
from coder.domain.access.route_scopes import PROXY
from coder.domain.network.coordination_rules import FullAccess
from coder.rpc.session import open_session

if TYPE_CHECKING:
    from coder.appproxy.upgrades.raw_links import EndpointTable, Upgrade
    from coder.coderd.services.foundation.context import Context

CHECK_INTERVAL = 15.0
"""Seconds between checks of a connected proxy's token."""


def register(table: EndpointTable) -> None:
    table.add("/api/v2/workspaceproxies/me/coordinate", coordinate, scope=PROXY, refuses=(400,))


async def coordinate(ctx: Context, upgrade: Upgrade) -> None:
    """Serve `GET /api/v2/workspaceproxies/me/coordinate`."""
    request = upgrade.request
    token = request.headers.get(TOKEN_HEADER.lower(), "")
    authentication = authenticate_proxy(ctx, token)
    proxy = (await counted(authentication, lambda result: f"proxy {result.row.id}", upgrade.count)).row
    agent_api_version(request, "2.0")
    websocket = await upgrade.accept_websocket(binary_only=True)
    link = ClientConnection(websocket)
    with single_failure():
        async with open_session(websocket, role="server") as session, trio.open_nursery() as nursery:
            nursery.start_soon(link.keep_pinging, session)
            nursery.start_soon(link.leave_on_stop, session, ctx.stopping)
            peer = TailnetPeer(uuid4(), FullAccess(), owner=proxy_owner(proxy.id))
            nursery.start_soon(_leave_when_revoked, ctx, token, peer.id, nursery.cancel_scope)
            await session.serve(TailnetService(ctx, peer).handlers())
            nursery.cancel_scope.cancel()
            await websocket.close(link.code, link.reason)


async def _leave_when_revoked(ctx: Context, token: str, peer_id: UUID, scope: trio.CancelScope) -> None:
    """Disconnect a proxy that was deleted, or whose token was replaced."""
    while True:
        await trio.sleep(CHECK_INTERVAL)
        try:
            await authenticate_proxy(ctx, token)
        except Unauthenticated:
            ctx.services.relay.coordinator.cut(peer_id)
            scope.cancel()
        except Exception as error:
            # A short outage of the database ends no session.
            ctx.log.warn("the token of a workspace proxy could not be checked", error=error)
