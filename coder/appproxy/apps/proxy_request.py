"""Request of a browser for an application: its head, its streamed body, and the ways to answer it.

The connection belongs to the request until `leftover` returns its following bytes. Framing is h11's.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import h11
import trio

from coder.appproxy.apps.app_pages import HEADERS, ErrorPage
from coder.appproxy.apps.upstream import MAX_HEAD, READ_SIZE, Sent
from coder.base.threads import QuickLock
from coder.domain.apps import app_headers
from coder.net.bounded_http import BoundedHttp, HttpEvent

if TYPE_CHECKING:
    from coder.domain.apps.app_headers import Headers

_REASONS = {
    200: b"OK",
    204: b"No Content",
    303: b"See Other",
    307: b"Temporary Redirect",
    400: b"Bad Request",
    401: b"Unauthorized",
    403: b"Forbidden",
    404: b"Not Found",
    429: b"Too Many Requests",
    500: b"Internal Server Error",
    502: b"Bad Gateway",
}


EXPECT_PATIENCE = 1.0
"""Seconds (ours) that a browser which expects 100 (RFC 9110 section 10.1.1) waits for the application. Then this server
sends 100, because some applications wait for the body and send none."""


class _OneWriter(trio.abc.Stream):
    """Stream on which the tasks of both directions may write: one after the other."""

    def __init__(self, inside: trio.abc.Stream) -> None:
        self._inside, self._writing = inside, QuickLock()

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        async with self._writing:
            await self._inside.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._inside.wait_send_all_might_not_block()

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        return await self._inside.receive_some(max_bytes)

    async def aclose(self) -> None:
        await self._inside.aclose()


class ProxyRequest:
    """Request whose head was read by the HTTP server."""

    def __init__(
        self,
        head: h11.Request,
        stream: trio.abc.Stream,
        trailing: bytes,
        *,
        remote_ip: str,
        scheme: str,
        ours: Sequence[tuple[str, str]],
    ) -> None:
        self.method = head.method.decode("latin-1")
        self.target = head.target.decode("latin-1")
        self.path, mark, self.query = self.target.partition("?")
        self.has_query = bool(mark)
        """Whether the target has a question mark, also with an empty query."""
        self.headers: Headers = [(bytes(name), bytes(value)) for name, value in head.headers]
        self.host = app_headers.first(self.headers, b"host")
        self.remote_ip = remote_ip
        self.scheme = scheme
        self.stream: trio.abc.Stream = _OneWriter(stream)
        self.ours = [(name.lower().encode(), value.encode()) for name, value in ours]
        """Headers that every response of this server carries."""
        self.status = 0
        """Status of the response, once it has begun."""
        self.gone = False
        """Whether the browser disconnected before its response was complete."""
        self.connection = BoundedHttp(h11.SERVER, max_incomplete_event_size=MAX_HEAD)
        self.connection.take_head(head, trailing)

    @property
    def answered(self) -> bool:
        return self.status != 0

    @property
    def is_upgrade(self) -> bool:
        return app_headers.wants_upgrade(self.headers)

    @property
    def has_body(self) -> bool:
        """Return whether a body is announced."""
        return any(
            name == b"transfer-encoding" or (name == b"content-length" and value.strip() != b"0")
            for name, value in self.headers
        )

    @property
    def full_query(self) -> str:
        """Return the query with its question mark; "" without one."""
        return f"?{self.query}" if self.has_query else ""

    def take_end(self) -> bool:
        """Take the end of a request without a body; return whether it was one. False for an upgrade: other bytes than
        HTTP may follow it."""
        return not self.has_body and not self.is_upgrade and type(self.connection.next_event()) is h11.EndOfMessage

    async def next_event(self) -> HttpEvent:
        """Return the next part of the body. Raises h11.RemoteProtocolError, trio.BrokenResourceError."""
        while True:
            await self.connection.rest()
            event = self.connection.next_event()
            if event is not h11.NEED_DATA:
                return event
            with trio.CancelScope() as waiting:
                if self.connection.they_are_waiting_for_100_continue:
                    waiting.deadline = trio.current_time() + EXPECT_PATIENCE
                self.connection.receive_data(bytes(await self.stream.receive_some(READ_SIZE)))
            if waiting.cancelled_caught:
                await self.send_continue()

    async def send_continue(self) -> None:
        """Send 100, if the browser still waits for it."""
        if self.connection.they_are_waiting_for_100_continue:
            await self.send(h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue"))

    async def send(self, event: Sent) -> None:
        data = self.connection.send(event)
        if data:
            await self.stream.send_all(data)

    async def answer(self, status: int, headers: Iterable[tuple[bytes, bytes]], body: bytes) -> None:
        """Send a complete response of our own. Its connection ends when the request's body was not read."""
        fields = [*headers, *self.ours]
        # RFC 9110 section 8.6: no length where there cannot be a body
        if status != 204:
            fields.append((b"content-length", str(len(body)).encode()))
        if not self._request_is_read():
            fields.append((b"connection", b"close"))
        self.status = status
        data = [
            self.connection.send(h11.Response(status_code=status, headers=fields, reason=_REASONS.get(status, b""))),
            self.connection.send(h11.Data(data=b"" if self.method == "HEAD" else body)),
            self.connection.send(h11.EndOfMessage()),
        ]
        await self.stream.send_all(b"".join(part or b"" for part in data))

    def _request_is_read(self) -> bool:
        if self.connection.their_state is h11.SEND_BODY and not self.has_body:
            self.connection.next_event()
        return self.connection.their_state is h11.DONE

    async def show(self, page: ErrorPage, headers: Iterable[tuple[bytes, bytes]] = ()) -> None:
        await self.answer(page.status, [*HEADERS, *headers], page.html())

    async def redirect(self, status: int, location: str, headers: Iterable[tuple[bytes, bytes]] = ()) -> None:
        words = _REASONS[status].decode()
        body = f'<a href="{html.escape(location, quote=True)}">{words}</a>.\n\n'.encode()
        kind = (b"content-type", b"text/html; charset=utf-8")
        await self.answer(status, [kind, (b"location", _header_safe(location)), *headers], body)

    def leftover(self) -> bytes | None:
        """Return the bytes after this request on a reusable connection; None when it must be closed."""
        parser = self.connection
        if self.gone or parser.our_state is not h11.DONE or parser.their_state is not h11.DONE:
            return None
        data, ended = parser.trailing_data
        return None if ended and not data else data


def _header_safe(text: str) -> bytes:
    return text.replace("\r", "%0D").replace("\n", "%0A").encode("latin-1", "replace")
