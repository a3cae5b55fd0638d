"""What this process accepts from its siblings: connections, relay links and scrapes that they bring."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from coder.coderd.services.foundation.sibling_messages import Handler, serve_messages
from coder.coderd.services.network.sibling_routes import connection_handler, relay_handler

if TYPE_CHECKING:
    from coder.appproxy.http.listener import HttpServer
    from coder.coderd.services.foundation.context import Context


async def run(
    ctx: Context, server: HttpServer, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    """Part: answer siblings until the server stops; do nothing in the only process."""
    if ctx.process.listener is None:
        task_status.started()
        return
    handlers: dict[str, Handler] = {"connection": connection_handler(server), **ctx.process.handlers}
    relay = ctx.services.relay.derp.server
    if relay is not None:
        handlers["relay"] = relay_handler(relay)
    async with trio.open_nursery() as nursery:
        await nursery.start(serve_messages, ctx.process.listener, handlers)
        task_status.started()
        await ctx.stopping.wait()
        nursery.cancel_scope.cancel()
