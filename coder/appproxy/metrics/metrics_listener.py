"""A listener for metrics only, without authentication. For the server and for workspace proxies."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import h11
import trio

from coder.base.errors import CoderError
from coder.base.log import get_logger
from coder.net.bounded_http import BoundedHttp

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"
_log = get_logger("metrics")
_TIMEOUT = 30.0
"""Seconds one connection may take to send its request."""

Exposition = Callable[[], Awaitable[str]]


async def open_metrics_listeners(address: str) -> list[trio.SocketListener]:
    """Open the listeners. Raises CoderError `prometheus_address`."""
    host, _, port = address.rpartition(":")
    try:
        return await trio.open_tcp_listeners(int(port), host=host.strip("[]") or None)
    except (OSError, ValueError) as error:
        raise CoderError(
            "prometheus_address",
            f"cannot listen on {address} for metrics: {error}",
            "Give a free address with --prometheus-address.",
        ) from error


async def serve_metrics(listeners: list[trio.SocketListener], exposition: Exposition, stopping: trio.Event) -> None:
    """Answer scrapes until `stopping` is set."""

    async def answer(stream: trio.SocketStream) -> None:
        async with stream:
            with trio.move_on_after(_TIMEOUT):
                await _serve(exposition, stream)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, answer, listeners)
        await stopping.wait()
        nursery.cancel_scope.cancel()


async def _serve(exposition: Exposition, stream: trio.SocketStream) -> None:
    """Serve one request per connection: scrapes come every few seconds at most."""
    connection = BoundedHttp(h11.SERVER, max_incomplete_event_size=16 << 10)
    try:
        event = await connection.read_event(stream)
        if isinstance(event, h11.Request):
            await stream.send_all(await _answer(exposition, connection, event))
    except (h11.RemoteProtocolError, trio.BrokenResourceError):
        return
    except Exception as error:
        _log.error("a scrape failed", error=error)


async def _answer(exposition: Exposition, connection: h11.Connection, event: h11.Request) -> bytes:
    path = event.target.split(b"?")[0]
    status, body = (404, b"404 page not found\n")
    if path in {b"/", b"/metrics"}:
        status, body = 200, (await exposition()).encode()
    headers = [
        ("Content-Type", CONTENT_TYPE if status == 200 else "text/plain; charset=utf-8"),
        ("Content-Length", str(len(body))),
        ("Connection", "close"),
    ]
    head = connection.send(h11.Response(status_code=status, headers=headers)) or b""
    if event.method == b"HEAD":
        return head
    return head + (connection.send(h11.Data(data=body)) or b"") + (connection.send(h11.EndOfMessage()) or b"")
