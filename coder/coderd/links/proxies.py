"""The link of workspace proxies: coordination with every agent, for a proxy decides by tickets who may reach which."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

import trio

from coder.base.groups import single_failure
from coder.coderd.links.coordination import ClientLink
from coder.coderd.links.versions import agent_api_version
from coder.coderd.services.proxy_calls import TOKEN_HEADER, authenticate_proxy
from coder.coderd.services.tailnet_rpc import TailnetPeer, TailnetService
from coder.domain.coordination import FullAccess
from coder.rpc.session import open_session

if TYPE_CHECKING:
    from coder.coderd.links.door import LinkTable, Upgrade
    from coder.coderd.services.context import Context


def register(table: LinkTable) -> None:
    table.add("/api/v2/workspaceproxies/me/coordinate", coordinate)


async def coordinate(ctx: Context, upgrade: Upgrade) -> None:
    """`GET /api/v2/workspaceproxies/me/coordinate`."""
    request = upgrade.request
    await authenticate_proxy(ctx, request.headers.get(TOKEN_HEADER.lower(), ""))
    agent_api_version(request, "2.0")
    websocket = await upgrade.accept_websocket(binary_only=True)
    link = ClientLink(websocket)
    with single_failure():
        async with open_session(websocket, role="server") as session, trio.open_nursery() as nursery:
            nursery.start_soon(link.keep_pinging, session)
            nursery.start_soon(link.leave_on_stop, session, ctx.stopping)
            await session.serve(TailnetService(ctx, TailnetPeer(uuid4(), FullAccess())).handlers())
            nursery.cancel_scope.cancel()
            await websocket.close(link.code, link.reason)
