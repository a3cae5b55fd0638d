"""HTTP clients for tests: httpx with a timeout of a minute, and a reader of server-sent events.

httpx gives up after five seconds by default, which a busy machine passes. It also hands a body on through nested
generators, of which only the outermost can be closed: breaking off leaves the others to the garbage collector, whose
warning fails a later test. So `event_stream` reads on a connection of its own.
"""

from __future__ import annotations

import contextlib
import functools
import ssl
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import h11
import httpx
import trio

PATIENCE = 60.0


@functools.cache
def client_tls() -> ssl.SSLContext:
    """What clients verify servers with. Reading the list of authorities takes 40 ms: once is enough."""
    return httpx.create_ssl_context()


def http_client(base_url: str = "", **options: Any) -> httpx.AsyncClient:
    """With `options` of httpx."""
    return httpx.AsyncClient(base_url=base_url, **{"timeout": PATIENCE, "verify": client_tls(), **options})


@dataclass
class EventStream:
    """An answer whose head has come; its body is read line by line."""

    _stream: trio.SocketStream
    _connection: h11.Connection
    head: httpx.Response
    _rest: bytearray = field(default_factory=bytearray)

    async def line(self) -> str | None:
        """The next line without its end; None when the answer is over."""
        while b"\n" not in self._rest:
            event = await _next_event(self._stream, self._connection)
            if not isinstance(event, h11.Data):
                return None
            self._rest += event.data
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode()

    async def body(self) -> bytes:
        """All that is left: for answers that are no streams of events."""
        while isinstance(event := await _next_event(self._stream, self._connection), h11.Data):
            self._rest += event.data
        return bytes(self._rest)


@contextlib.asynccontextmanager
async def event_stream(url: str, path: str, headers: Mapping[str, str]) -> AsyncIterator[EventStream]:
    """A GET, for the length of the block; the head of an endless answer comes with its first event."""
    parts = urlsplit(url)
    connection = h11.Connection(h11.CLIENT)
    async with await trio.open_tcp_stream(parts.hostname or "", parts.port or 80) as stream:
        request = h11.Request(method="GET", target=path, headers=[("Host", parts.netloc), *headers.items()])
        await stream.send_all((connection.send(request) or b"") + (connection.send(h11.EndOfMessage()) or b""))
        head = await _next_event(stream, connection)
        assert isinstance(head, h11.Response), head
        yield EventStream(stream, connection, httpx.Response(head.status_code, headers=list(head.headers)))


async def _next_event(stream: trio.SocketStream, connection: h11.Connection) -> object:
    while (event := connection.next_event()) is h11.NEED_DATA:
        connection.receive_data(bytes(await stream.receive_some()))
    return event
