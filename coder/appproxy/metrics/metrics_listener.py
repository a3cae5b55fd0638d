"""A listener for a few text pages without authentication: metrics and profiles, of the server and workspace proxies."""

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
"""Seconds one connection may take to send its request, and to receive its answer."""

PLAIN = "text/plain; charset=utf-8"
Exposition = Callable[[], Awaitable[str]]
Page = tuple[int, str, bytes]
"""Status, content type and body."""
Pages = Callable[[str, str], Awaitable[Page]]
"""(path, query) -> page."""


async def open_metrics_listeners(address: str, flag: str = "prometheus-address") -> list[trio.SocketListener]:
    """Open the listeners of the address in `flag`. Raises CoderError `prometheus_address` or `pprof_address`."""
    host, _, port = address.rpartition(":")
    try:
        return await trio.open_tcp_listeners(int(port), host=host.strip("[]") or None)
    except (OSError, ValueError) as error:
        raise CoderError(
            flag.replace("-", "_"),
            f"cannot listen on {address} for {'profiles' if flag == 'pprof-address' else 'metrics'}",
            f"Give a free address with --{flag}.",
        ) from error


async def serve_metrics(listeners: list[trio.SocketListener], exposition: Exposition, stopping: trio.Event) -> None:
    """Answer scrapes until `stopping` is set."""

    async def pages(path: str, _query: str) -> Page:
        if path in {"/", "/metrics"}:
            return 200, CONTENT_TYPE, (await exposition()).encode()
        return 404, PLAIN, b"404 page not found\n"

    await serve_pages(listeners, pages, stopping)


async def serve_pages(listeners: list[trio.SocketListener], pages: Pages, stopping: trio.Event) -> None:
    """Answer requests for pages until `stopping` is set."""

    async def answer(stream: trio.SocketStream) -> None:
        async with stream:
            await _serve(pages, stream)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, answer, listeners)
        await stopping.wait()
        nursery.cancel_scope.cancel()


async def _serve(pages: Pages, stream: trio.SocketStream) -> None:
    """Serve one request per connection: scrapes come every few seconds at most."""
    connection, event = BoundedHttp(h11.SERVER, max_incomplete_event_size=16 << 10), None
    try:
        with trio.move_on_after(_TIMEOUT):
            event = await connection.read_event(stream)
        if isinstance(event, h11.Request):
            answer = await _answer(pages, connection, event)
            with trio.move_on_after(_TIMEOUT):
                await stream.send_all(answer)
    except (h11.RemoteProtocolError, trio.BrokenResourceError):
        return
    except Exception as error:
        _log.error("a scrape failed", error=error)


async def _answer(pages: Pages, connection: h11.Connection, event: h11.Request) -> bytes:
    path, _, query = event.target.decode("latin-1").partition("?")
    status, content_type, body = await pages(path, query)
    headers = [
        ("Content-Type", content_type),
        ("Content-Length", str(len(body))),
        ("Connection", "close"),
    ]
    head = connection.send(h11.Response(status_code=status, headers=headers)) or b""
    if event.method == b"HEAD":
        return head
    return head + (connection.send(h11.Data(data=body)) or b"") + (connection.send(h11.EndOfMessage()) or b"")
