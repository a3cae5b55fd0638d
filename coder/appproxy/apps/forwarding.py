"""Forwarding of requests to applications and back: bodies stream in both directions, upgrades become two pipes.

Nothing is buffered as a whole: each side is read no faster than the other takes it, in pieces of 64 KiB.
`domain/apps/app_headers.py` filters the headers of a response.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import h11
import trio

from coder.appproxy.apps.upstream import READ_SIZE, AppConnection, AppPool, Sent, Target
from coder.base.exception_groups import single_failure
from coder.domain.apps import app_headers

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from coder.appproxy.apps.proxy_request import ProxyRequest
    from coder.domain.apps.app_headers import Headers
    from coder.net.bounded_http import HttpEvent

UNWATCHED = 0.1
"""Seconds that a response may take to begin before this server watches for the browser's disconnect: the watch is a
task, which costs more than most exchanges last."""
_RETRIED = frozenset({"GET", "HEAD", "OPTIONS"})
"""Requests that may be sent twice when a reused connection turns out dead (RFC 9110 section 9.2.2)."""


class BadUpstreamAnswerError(Exception):
    """An application's invalid response; the browser has received no part of it yet."""


@dataclass(frozen=True, slots=True)
class UpstreamRequest:
    """Request for an application, and additions to its response."""

    place: Target
    target: str
    headers: Headers
    base_path: str
    cors: Headers | None
    """CORS headers; see `app_headers.from_app`."""
    extra: Headers
    """Headers added to the response: the ticket's cookie."""


async def forward(
    pool: AppPool, proxied: ProxyRequest, upstream_request: UpstreamRequest, stopping: trio.Event
) -> None:
    """Run one exchange. Raises BadGateway (no listener) and BadUpstreamAnswerError while the request is unanswered."""
    with trio.CancelScope() as scope:
        pool.exchanges.add(scope)
        try:
            await _forward(pool, proxied, upstream_request, stopping)
        finally:
            pool.exchanges.discard(scope)
    if scope.cancelled_caught:
        proxied.gone = True


async def _forward(
    pool: AppPool, proxied: ProxyRequest, upstream_request: UpstreamRequest, stopping: trio.Event
) -> None:
    repeatable = proxied.method in _RETRIED and not proxied.has_body and not proxied.is_upgrade
    fresh = not repeatable
    while True:
        connection = await pool.connect(upstream_request.place, fresh=fresh)
        try:
            await _exchange(proxied, upstream_request, connection, stopping)
        except BadUpstreamAnswerError:
            await connection.aclose()
            if connection.reused:
                fresh = True  # it was closed while idle
                continue
            raise
        except BaseException:
            await connection.abandon()
            raise
        if proxied.gone:
            await connection.abandon()
            return
        await pool.put(upstream_request.place, connection)
        return


async def _exchange(
    proxied: ProxyRequest, upstream_request: UpstreamRequest, connection: AppConnection, stopping: trio.Event
) -> None:
    head = h11.Request(method=proxied.method, target=upstream_request.target, headers=list(upstream_request.headers))
    is_short = proxied.take_end()
    try:
        await connection.send(head, *([h11.EndOfMessage()] if is_short else []))
    except trio.BrokenResourceError as error:
        raise BadUpstreamAnswerError from error
    begun = await _begin(connection) if is_short else []
    if begun and type(begun[-1]) is h11.EndOfMessage:
        await _answer(proxied, upstream_request, connection, begun)
        return
    switched: h11.InformationalResponse | None = None
    with single_failure():
        async with trio.open_nursery() as nursery:
            upload = _Upload(proxied, connection, nursery.cancel_scope, is_sent=is_short)
            nursery.start_soon(upload.run)
            switched = await _answer(proxied, upstream_request, connection, begun)
            nursery.cancel_scope.cancel()
    if switched is not None and not proxied.gone:
        await _switch(proxied, upstream_request, connection, switched, stopping)


async def _begin(connection: AppConnection) -> list[HttpEvent]:
    """Return the events of a response's first piece, if it comes soon: most responses have no other."""
    events: list[HttpEvent] = []
    with trio.move_on_after(UNWATCHED):
        try:
            await connection.receive()
        except trio.BrokenResourceError as error:
            raise BadUpstreamAnswerError from error
    # An invalid response is noticed by the reader of these events, who finds the parser as it was left.
    with suppress(h11.RemoteProtocolError):
        while (event := connection.h11.next_event()) is not h11.NEED_DATA:
            events.append(event)
            if type(event) not in {h11.Response, h11.Data}:
                break
            await connection.h11.rest()
    return events


class _Upload:
    """Upload of the request's body, and afterwards a watch for the browser's disconnect."""

    def __init__(
        self, proxied: ProxyRequest, connection: AppConnection, both: trio.CancelScope, *, is_sent: bool
    ) -> None:
        self._proxied = proxied
        self._is_sent = is_sent
        self._connection = connection
        self._both = both

    async def run(self) -> None:
        try:
            await self._send_body()
        except trio.ClosedResourceError:
            return
        except (h11.RemoteProtocolError, trio.BrokenResourceError):
            self._proxied.gone = True
            self._both.cancel()

    async def _send_body(self) -> None:
        proxied = self._proxied
        while not self._is_sent:
            event = await proxied.next_event()
            if isinstance(event, h11.Data):
                if not await self._pass_on(h11.Data(data=bytes(event.data))):
                    return
            elif isinstance(event, h11.EndOfMessage):
                await self._pass_on(h11.EndOfMessage(headers=list(event.headers)))
                break
            elif event is h11.PAUSED:  # an upgrade: the following bytes are not HTTP
                await self._pass_on(h11.EndOfMessage())
                return
            else:
                raise trio.BrokenResourceError("the browser disconnected")
        data = bytes(await proxied.stream.receive_some(READ_SIZE))
        proxied.connection.receive_data(data)
        if not data:
            raise trio.BrokenResourceError("the browser disconnected")

    async def _pass_on(self, event: Sent) -> bool:
        """Pass an event on. False when the application takes no more; it may still respond."""
        try:
            await self._connection.send(event)
        except trio.BrokenResourceError:
            return False
        return True


async def _answer(
    proxied: ProxyRequest, upstream_request: UpstreamRequest, connection: AppConnection, begun: Iterable[HttpEvent] = ()
) -> h11.InformationalResponse | None:
    """Pass the response on, of which `begun` was read; return the application's 101 if it is one."""
    pending = bytearray()
    waiting = iter(begun)
    while True:
        try:
            await connection.h11.rest()
            event = next(waiting, None) or connection.h11.next_event()
            if event is h11.NEED_DATA:
                if pending:  # the waiting reader should have this piece
                    await proxied.stream.send_all(bytes(pending))
                    pending.clear()
                await connection.receive()
                continue
        except (h11.RemoteProtocolError, trio.BrokenResourceError) as error:
            if not proxied.answered:
                raise BadUpstreamAnswerError from error
            raise
        if isinstance(event, h11.InformationalResponse):
            if event.status_code == 101:
                return event
            await _pass_informational(proxied, upstream_request, event)
            continue
        if isinstance(event, h11.Response):
            proxied.status = event.status_code
            pending += _head_bytes(proxied, upstream_request, event)
        elif isinstance(event, h11.Data):
            pending += proxied.connection.send(h11.Data(data=event.data)) or b""
            if len(pending) >= READ_SIZE:
                await proxied.stream.send_all(bytes(pending))
                pending.clear()
        elif isinstance(event, h11.EndOfMessage):
            trailers = event.headers if proxied.connection.their_http_version == b"1.1" else ()
            pending += proxied.connection.send(h11.EndOfMessage(headers=list(trailers))) or b""
            await proxied.stream.send_all(bytes(pending))
            return None
        elif not proxied.answered:
            raise BadUpstreamAnswerError
        else:
            raise trio.BrokenResourceError("the application disconnected during its response")


async def _pass_informational(
    proxied: ProxyRequest, upstream_request: UpstreamRequest, event: h11.InformationalResponse
) -> None:
    """Pass on an interim response, as 103 with its links (RFC 8297). 100 is for a browser that waits for it."""
    connection = proxied.connection
    if event.status_code == 100:
        if connection.they_are_waiting_for_100_continue:
            await proxied.send_continue()
    elif connection.their_http_version == b"1.1":
        fields = app_headers.from_app(event.headers, base_path=upstream_request.base_path, cors=())
        passed = h11.InformationalResponse(status_code=event.status_code, headers=fields, reason=event.reason)
        await proxied.stream.send_all(connection.send(passed) or b"")


def _head_bytes(proxied: ProxyRequest, upstream_request: UpstreamRequest, event: h11.Response) -> bytes:
    fields = _fields(proxied, upstream_request, event.headers)
    if proxied.connection.their_state is h11.SEND_BODY and proxied.has_body:
        # Answered before the request was complete: its rest must not be taken for the next one.
        fields.append((b"connection", b"close"))
    response = h11.Response(status_code=event.status_code, headers=fields, reason=event.reason)
    return proxied.connection.send(response) or b""


def _fields(
    proxied: ProxyRequest, upstream_request: UpstreamRequest, headers: Sequence[tuple[bytes, bytes]]
) -> list[tuple[bytes, bytes]]:
    result = app_headers.from_app(headers, base_path=upstream_request.base_path, cors=upstream_request.cors)
    # The page depends on the visitor, which the application does not know.
    result.append((b"vary", b"Cookie"))
    names = {name for name, _ in result}
    return [*result, *((name, value) for name, value in proxied.ours if name not in names), *upstream_request.extra]


async def _switch(
    proxied: ProxyRequest,
    upstream_request: UpstreamRequest,
    connection: AppConnection,
    answer: h11.InformationalResponse,
    stopping: trio.Event,
) -> None:
    protocol = app_headers.joined(answer.headers, b"upgrade").encode("latin-1")
    fields = _fields(proxied, upstream_request, answer.headers)
    fields += [(b"Connection", b"Upgrade"), (b"Upgrade", protocol)]
    proxied.status = 101
    await proxied.send(h11.InformationalResponse(status_code=101, headers=fields, reason=b"Switching Protocols"))
    to_app, to_browser = proxied.connection.trailing_data[0], connection.h11.trailing_data[0]
    async with trio.open_nursery() as nursery:
        scope = nursery.cancel_scope
        nursery.start_soon(_pipe, proxied.stream, connection.stream, to_app, scope)
        nursery.start_soon(_pipe, connection.stream, proxied.stream, to_browser, scope)
        await stopping.wait()
        scope.cancel()


async def _pipe(source: trio.abc.Stream, sink: trio.abc.Stream, first: bytes, both: trio.CancelScope) -> None:
    """Copy until either side ends, which ends the other direction, too: half a WebSocket is of no use."""
    try:
        if first:
            await sink.send_all(first)
        while data := await source.receive_some(READ_SIZE):
            await sink.send_all(data)
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        pass  # either end disconnected: the other direction ends with it
    both.cancel()
