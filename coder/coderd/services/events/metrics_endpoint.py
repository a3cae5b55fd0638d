"""A listener of its own for Prometheus, on `--prometheus-address`: no sign-in, nothing but metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

import h11
import trio

from coder.base.errors import CoderError
from coder.base.log import get_logger
from coder.coderd.services.events.metrics import CONTENT_TYPE, Metrics
from coder.net.bounded_http import BoundedHttp

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

_log = get_logger("metrics")
_TIMEOUT = 30.0
"""Seconds one connection may take to ask."""


async def run(ctx: Context, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
    """Serves until the server stops; does nothing where it is off. Raises CoderError when it cannot listen."""
    if not ctx.config.prometheus_enable:
        task_status.started()
        return
    host, _, port = ctx.config.prometheus_address.rpartition(":")
    try:
        listeners = await trio.open_tcp_listeners(int(port), host=host.strip("[]") or None)
    except (OSError, ValueError) as error:
        raise CoderError(
            "prometheus_address",
            f"cannot listen on {ctx.config.prometheus_address} for metrics: {error}",
            "Give a free address with --prometheus-address.",
        ) from error
    ctx.parts[MetricsEndpoint] = MetricsEndpoint(listeners[0].socket.getsockname()[1])
    async with trio.open_nursery() as nursery:

        async def answer(stream: trio.SocketStream) -> None:
            async with stream:
                with trio.move_on_after(_TIMEOUT):
                    await _serve(ctx, stream)

        nursery.start_soon(trio.serve_listeners, answer, listeners)
        task_status.started()
        await ctx.stopping.wait()
        nursery.cancel_scope.cancel()


class MetricsEndpoint:
    """Where the listener is."""

    def __init__(self, port: int) -> None:
        self.port = port


async def _serve(ctx: Context, stream: trio.SocketStream) -> None:
    """One request, one answer: scrapes come every few seconds at most."""
    connection = BoundedHttp(h11.SERVER, max_incomplete_event_size=16 << 10)
    try:
        event = await connection.read_event(stream)
        if isinstance(event, h11.Request):
            await stream.send_all(await _answer(ctx, connection, event))
    except (h11.RemoteProtocolError, trio.BrokenResourceError):
        return
    except Exception as error:
        _log.error("a scrape failed", error=error)


async def _answer(ctx: Context, connection: h11.Connection, event: h11.Request) -> bytes:
    path = event.target.split(b"?")[0]
    status, body = (404, b"404 page not found\n")
    if path in {b"/", b"/metrics"}:
        status, body = 200, (await ctx.part(Metrics).exposition()).encode()
    headers = [
        ("Content-Type", CONTENT_TYPE if status == 200 else "text/plain; charset=utf-8"),
        ("Content-Length", str(len(body))),
        ("Connection", "close"),
    ]
    head = connection.send(h11.Response(status_code=status, headers=headers)) or b""
    if event.method == b"HEAD":
        return head
    return head + (connection.send(h11.Data(data=body)) or b"") + (connection.send(h11.EndOfMessage()) or b"")
