"""What Hypercorn 0.18 (trio) gets wrong for a long-lived server, put right by subclasses.

Quart's: `coderd/http/server/quart_fixes.py`.

1. `TCPServer.protocol_send` writes inside a shielded scope: a peer that stops reading could never be cancelled and
   blocked shutdown for ever. Here a write has a deadline, after which the connection is closed hard.
2. A request head could come byte by byte, for two minutes each. Here it has half a minute from its first byte.
3. After 1000 requests a connection was closed; clients that had sent the next one saw a reset.
4. A response that came before the whole request body cancelled its own task before the socket was closed: the peer
   went on writing into the void.
5. After a refused WebSocket handshake the connection was neither closed nor usable.
6. A small response left in three writes.
7. Every request cost a task, a nursery and two channels, even one that is answered within a millisecond. Those of the
   fast path (`FAST_PATHS`) are answered by the task that reads the connection, unless they announce a body.
8. A connection was closed under a body that was answered early, which resets it: the answer (413, 401) was lost.
h2 is not offered: WebSockets stay on HTTP/1.1 and uploads are ten times faster there.

Not here: our own paths of raw streams (`appproxy/http/listener.py`), WebSockets (`websocket_bounds.py`).
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass
from typing import Any

import h11
import trio
from hypercorn.config import Config
from hypercorn.events import Closed, Event, RawData, Updated
from hypercorn.logging import Logger as HypercornLogger
from hypercorn.protocol.events import EndBody, Response
from hypercorn.protocol.events import Event as StreamEvent
from hypercorn.protocol.h11 import H11Protocol, H11WSConnection
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.typing import H11SendableEvent

from coder.appproxy.http.websocket_bounds import PING, BoundedWSStream
from coder.base.log import get_logger
from coder.net.bounded_http import BoundedHttp

WRITE_TIMEOUT = 20.0
"Seconds one piece may wait for a peer that does not read; long enough for a phone in a lift."
CLOSE_TIMEOUT = 5.0
"Seconds closing a connection may take (TLS says goodbye)."
WRITE_PIECE = 1 << 17
"Bytes that must leave within WRITE_TIMEOUT: 6.4 KB/s is the slowest line served."
KEEP_ALIVE_REQUESTS = 10**9
KEEP_ALIVE_IDLE = 120.0
"Seconds an idle connection is kept; above Go's 90 s, so that the client closes first and no request is lost."
HELD_BYTES = 1 << 16
"Bytes of a response collected before the first write."
LINGER_SECONDS = 1.0
LINGER_BYTES = 1 << 24
"What is still taken, and dropped, of a body that was answered before it had come whole."
HEADER_LIMIT = 1 << 16
"Bytes of a request head before 431: nobody is known yet, and this is what strangers may send."
HEAD_PATIENCE = 30.0
"Seconds a request head may take from its first byte, however often one more comes."

FAST_PATHS: set[bytes] = set()
"""Paths whose GETs the fast path answers at once; it names them."""

_log = get_logger("http.server")


class _Log(HypercornLogger):
    """Sends Hypercorn's own messages to our log."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)

    async def error(self, message: str, *args: Any, **kwargs: Any) -> None:
        _log.error(message % args if args else message)

    async def exception(self, message: str, *args: Any, **kwargs: Any) -> None:
        import sys

        error = sys.exc_info()[1]
        _log.error(message % args if args else message, error=error or "unknown")

    async def info(self, message: str, *args: Any, **kwargs: Any) -> None:
        _log.debug(message % args if args else message)


def server_config() -> Config:
    """Hypercorn's settings for every listener of ours."""
    config = Config()
    config.errorlog = None
    config.accesslog = None
    config.logger_class = _Log
    config.alpn_protocols = ["http/1.1"]
    config.keep_alive_max_requests = KEEP_ALIVE_REQUESTS
    config.keep_alive_timeout = KEEP_ALIVE_IDLE
    config.h11_max_incomplete_size = HEADER_LIMIT
    config.websocket_ping_interval = PING
    config.include_server_header = False
    config.include_date_header = True
    return config


@dataclass(frozen=True)
class HeadBegun(Event):
    """The first bytes of a request head came, and not all of it."""


@dataclass(frozen=True)
class HeadRefused(Event):
    """A head was answered before it had come whole."""


class PatientServer(TCPServer):
    """A connection whose writes can be cancelled and time out (1), with one idle timer for its whole life."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._idle_timer = trio.CancelScope(deadline=trio.current_time() + self.config.keep_alive_timeout)
        self._watch = trio.CancelScope()
        self._busy = False

    async def watch_idle(self) -> None:
        """Closes the connection when it was idle too long, or is idle at shutdown. Runs beside `_read_data`."""
        with self._watch:
            with self._idle_timer:
                await self.context.terminated.wait()
            if not self._busy:  # a busy one is closed after its response
                with trio.CancelScope(shield=True, deadline=trio.current_time() + CLOSE_TIMEOUT):
                    await self._initiate_server_close()

    def end_idle_watch(self) -> None:
        self._watch.cancel()

    async def protocol_send(self, event: Event) -> None:
        if isinstance(event, Updated):
            # Hypercorn starts and cancels a task here, twice a request.
            self._busy = not event.idle
            timeout = self.config.keep_alive_timeout if event.idle else math.inf
            self._idle_timer.deadline = trio.current_time() + timeout
            return
        if isinstance(event, HeadBegun):
            self._idle_timer.deadline = min(self._idle_timer.deadline, trio.current_time() + HEAD_PATIENCE)
            return
        if isinstance(event, HeadRefused):
            await self._drop_the_rest()
            return
        if not isinstance(event, RawData):
            # The end of a response cancels the task that sent it, which is this one: closing must go through.
            with trio.CancelScope(shield=True, deadline=trio.current_time() + CLOSE_TIMEOUT):
                await super().protocol_send(event)
            return
        async with self.send_lock:
            try:
                await self._send_pieces(event.data)
                return
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                pass  # the peer left: told below
            except trio.TooSlowError:
                await self._abandon()
            except trio.Cancelled:
                # Half a response may be out: the connection is of no more use to anybody.
                await self._abandon()
                raise
        await self.protocol.handle(Closed())

    async def _send_pieces(self, data: bytes) -> None:
        """The deadline is for a piece: a large download on a slow line is slow, not stalled."""
        view = memoryview(data)
        for start in range(0, len(view), WRITE_PIECE):
            with trio.fail_after(WRITE_TIMEOUT):
                await self.stream.send_all(view[start : start + WRITE_PIECE])

    async def _drop_the_rest(self) -> None:
        """So that the answer is not lost, see (8). Called by the task that reads."""
        with (
            contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError),
            trio.move_on_after(LINGER_SECONDS),
        ):
            send_eof = getattr(self.stream, "send_eof", None)
            if send_eof is not None:  # TLS has no half close
                await send_eof()
            dropped = 0
            while dropped < LINGER_BYTES and (data := await self.stream.receive_some(WRITE_PIECE)):
                dropped += len(data)

    async def _abandon(self) -> None:
        with trio.CancelScope(shield=True):
            await trio.aclose_forcefully(self.stream)


class _OneFraming(BoundedHttp):
    """Refuses a request whose length is said twice (RFC 9112 section 6.1): who is in front may count otherwise."""

    def next_event(self) -> Any:
        event = super().next_event()
        if type(event) is h11.Request:  # isinstance asks an abstract base class, several times for each request
            names = {name for _, name, _ in event.headers._full_items}
            if b"content-length" in names and b"transfer-encoding" in names:
                raise h11.RemoteProtocolError("both Content-Length and Transfer-Encoding", error_status_hint=400)
        return event


class OneWriteH11(H11Protocol):
    """Sends the head, a short body and the end of a response of known length in one write instead of three (6)."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._framing = _OneFraming(h11.SERVER, max_incomplete_event_size=self.config.h11_max_incomplete_size)
        self.connection = self._framing
        self._held = b""
        self._holding = False
        self._lingering: trio.Event | None = None
        self._dropped = 0
        self._inside_head = False

    async def handle(self, event: Event) -> None:
        if self._lingering is None:
            await super().handle(event)
            await self._watch_head()
            return
        if isinstance(event, RawData) and event.data and await self._drop(event.data):
            return
        self._lingering.set()

    async def _watch_head(self) -> None:
        """Says once for each request that its head has begun and not ended."""
        connection = self.connection
        inside = isinstance(connection, h11.Connection) and (
            connection.their_state is h11.IDLE and len(connection._receive_buffer) > 0
        )
        if inside and not self._inside_head:
            await self.send(HeadBegun())
        self._inside_head = inside

    async def _drop(self, data: bytes) -> bool:
        """Whether more of the body is to come."""
        self._dropped += len(data)
        try:
            if data:
                self._framing.receive_data(data)
            while isinstance(self._framing.next_event(), h11.Data):
                await self._framing.rest()
        except h11.RemoteProtocolError:
            return False
        return self._dropped <= LINGER_BYTES and self._framing.their_state is h11.SEND_BODY

    async def _send_error_response(self, status_code: int) -> None:
        await super()._send_error_response(status_code)
        await self.send(HeadRefused())

    async def _maybe_recycle(self) -> None:
        if self.connection.our_state in {h11.DONE, h11.MUST_CLOSE} and self.connection.their_state is h11.SEND_BODY:
            await self._linger()
        await super()._maybe_recycle()

    async def _linger(self) -> None:
        """Drops what still comes of a body that was answered early (RFC 9112 section 9.6): a socket closed with unread
        bytes resets the connection, and the answer would be lost on its way."""
        self._lingering = trio.Event()
        if await self._drop(b""):
            with trio.move_on_after(LINGER_SECONDS):
                await self._lingering.wait()

    async def stream_send(self, event: StreamEvent) -> None:
        rejected = isinstance(self.connection, H11WSConnection)
        if isinstance(event, Response) and event.status_code >= 200:
            self._holding = any(name == b"content-length" for name, _ in event.headers)
            if rejected or self.connection.their_state is h11.SEND_BODY:
                event.headers.append((b"connection", b"close"))
        await super().stream_send(event)
        if rejected and isinstance(event, EndBody):
            # A refused handshake cannot be followed by another request here; say so and close.
            await self.send(Closed())

    async def _send_h11_event(self, event: H11SendableEvent) -> None:
        if not self._holding:
            await super()._send_h11_event(event)
            return
        try:
            data = self.connection.send(event)
        except h11.LocalProtocolError:
            self._holding = False
            if self.connection.their_state != h11.ERROR:
                raise
            return
        self._held += data or b""
        if isinstance(event, h11.EndOfMessage):
            self._holding = False
        if self._held and (not self._holding or len(self._held) > HELD_BYTES):
            held, self._held = self._held, b""
            await self.send(RawData(data=held))

    async def _close_stream(self) -> None:
        stream = self.stream
        await super()._close_stream()
        if isinstance(stream, BoundedWSStream):
            stream.pinging.cancel()

    async def _create_stream(self, request: h11.Request) -> None:
        if request.method != b"GET" or request.target.partition(b"?")[0] not in FAST_PATHS or _is_more(request):
            await super()._create_stream(request)
            return
        # The stream takes its task group while it is made.
        task_group, self.task_group = self.task_group, _AT_ONCE  # type: ignore[assignment]
        try:
            await super()._create_stream(request)
        finally:
            self.task_group = task_group


_MORE = frozenset({b"upgrade", b"content-length", b"transfer-encoding"})


def _is_more(request: h11.Request) -> bool:
    """Whether anything may follow the head: what is answered at its end waits for no body. A length of 0 is none."""
    for _, name, value in request.headers._full_items:
        if name in _MORE and (value != b"0" or name != b"content-length"):
            return True
    return False


class _AtOnce:
    """In a task group's place: runs the application where the request's last byte was read (7)."""

    async def spawn_app(self, app: Any, _config: Config, scope: Any, send: Any) -> Any:
        async def put(message: Any) -> None:
            if message["type"] != "http.request" or message["more_body"]:
                return  # these requests have no body that anybody wants
            try:
                await app(scope, _nothing, send, None, None)
            except Exception as error:
                _log.error("a request failed", error=error)
            await send(None)

        return put


async def _nothing() -> Any:
    await trio.sleep_forever()


_AT_ONCE = _AtOnce()
