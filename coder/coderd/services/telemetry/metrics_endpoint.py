"""The server's listener for Prometheus, on `--prometheus-address`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from coder.appproxy.metrics.metrics_listener import open_metrics_listeners, serve_metrics

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context


async def run(ctx: Context, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
    """Serve until the server stops; do nothing when disabled. Raises CoderError when it cannot listen."""
    if not ctx.config.prometheus_enable:
        task_status.started()
        return
    listeners = await open_metrics_listeners(ctx.config.prometheus_address)
    ctx.services.metrics_port = listeners[0].socket.getsockname()[1]
    task_status.started()
    await serve_metrics(listeners, ctx.services.metrics.exposition, ctx.stopping)
