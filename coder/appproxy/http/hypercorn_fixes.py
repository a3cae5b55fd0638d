"""Fixes of Hypercorn 0.18 (trio) for a long-lived server, as subclasses.

Quart's: `coderd/http/server/quart_fixes.py`.

1. `TCPServer.protocol_send` writes inside a shielded scope: a write to a peer that stops reading could never be
   cancelled and blocked shutdown forever. Here a write has a deadline, after which the connection is closed hard.
2. A request head could arrive byte by byte, for two minutes each. Here it has half a minute from its first byte.
3. After 1000 requests a connection was closed; clients that had sent the next one saw a reset.
4. A response that came before the whole request body cancelled its own task before the socket was closed: the peer kept
   writing into the void.
5. After a refused WebSocket handshake the connection was neither closed nor usable.
6. A small response took three writes.
7. Every request cost a task, a nursery and two channels, even one that is answered within a millisecond. Those of the
   fast path (`FAST_PATHS`) are answered by the task that reads the connection, unless they announce a body.
8. A connection was closed under a body that was answered early, which resets it: the response (413, 401) was lost.
9. After a failed write the pipelined requests of the connection were still parsed and served.
10. An application that answers without reading its body never released its connection once ten pieces had arrived. h2
    is not offered: WebSockets stay on HTTP/1.1 and uploads are ten times faster there.
11. A connection was closed without regard to the other task that may write to it: its write failed as a defect.

Not here: our own paths of raw streams (`appproxy/http/listener.py`), WebSockets (`websocket_bounds.py`).
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import cast

import h11
import trio
from hypercorn.config import Config
from hypercorn.events import Closed, Event, RawData, Updated
from hypercorn.protocol.events import EndBody, Response
from hypercorn.protocol.events import Event as StreamEvent
from hypercorn.protocol.h11 import H11Protocol, H11WSConnection
from hypercorn.trio.task_group import TaskGroup, _handle
from hypercorn.trio.tcp_server import MAX_RECV, TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import (
    AppWrapper,
    ASGIReceiveEvent,
    ASGISendEvent,
    ConnectionState,
    H11SendableEvent,
    LifespanState,
    Scope,
)
from hypercorn.typing import TaskGroup as AnyTaskGroup

from coder.appproxy.http.inline_tasks import AT_ONCE
from coder.appproxy.http.listening_sockets import ClientStream
from coder.appproxy.http.request_framing import OneFraming
from coder.appproxy.http.server_log import ServerLog
from coder.appproxy.http.websocket_bounds import PING, BoundedWSStream
from coder.base.log import STRANGERS_LINES, get_logger

WRITE_TIMEOUT = 20.0
"""Seconds one piece may wait for a peer that does not read; long enough for a phone in a lift."""
CLOSE_TIMEOUT = 5.0
"""Seconds that closing a connection may take (for TLS close_notify)."""
WRITE_PIECE = 1 << 17
"""Bytes that must be sent within WRITE_TIMEOUT: 6.4 KB/s is the slowest line served."""
KEEP_ALIVE_REQUESTS = 10**9
KEEP_ALIVE_IDLE = 120.0
"""Seconds an idle connection is kept; above Go's 90 s, so that the client closes first and no request is lost."""
HELD_BYTES = 1 << 16
"""Bytes of a response buffered before the first write."""
LINGER_SECONDS = 1.0
"""Seconds a connection stays open after an early response, so that its client can read it."""
LINGER_BYTES = 256 << 10
"""Bytes of a body that are dropped unparsed after an early response, as by Go's server; then the sender must wait."""
HEADER_LIMIT = 1 << 16
"""Bytes of a request head before 431: the caller is still unknown, so this bound applies to every client."""
HEAD_PATIENCE = 30.0
"""Seconds a request head may take from its first byte, even if bytes keep arriving."""

FAST_PATHS: set[bytes] = set()
"""Paths whose GETs the fast path answers immediately, and top folders (`/assets/`) of such paths; it adds them."""

_log = get_logger("http.server", per_minute=STRANGERS_LINES)


def server_config() -> Config:
    """Return Hypercorn's settings for all our listeners."""
    config = Config()
    config.errorlog = None
    config.accesslog = None
    config.logger_class = ServerLog
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
    """The first bytes of a request head arrived, but not all of it."""


@dataclass(frozen=True)
class RequestRefused(Event):
    """The input is not HTTP, or exceeds a limit; it was answered, and the rest is not parsed."""


@dataclass(frozen=True)
class AnsweredEarly(Event):
    """The response is complete before the request's body: nothing more will be sent."""


class PatientServer(TCPServer):
    """Connection whose writes can be cancelled and time out (1), with one idle timer for its whole life."""

    def __init__(
        self,
        app: AppWrapper,
        config: Config,
        context: WorkerContext,
        state: LifespanState,
        stream: ClientStream,
    ) -> None:
        # Hypercorn names one of the two kinds only.
        super().__init__(app, config, context, state, cast("trio.SSLStream[trio.SocketStream]", stream))
        self._idle_timer = trio.CancelScope(deadline=trio.current_time() + self.config.keep_alive_timeout)
        self._watch = trio.CancelScope()
        self._busy = False
        self._broken = False
        """Whether a write failed: the connection is closed, and further output of the application is dropped."""

    async def watch_idle(self) -> None:
        """Close the connection when it was idle too long, or is idle at shutdown. Runs concurrently with
        `_read_data`."""
        with self._watch:
            while True:
                with self._idle_timer:
                    await self.context.terminated.wait()
                if self.context.terminated.is_set() or self._idle_timer.deadline <= trio.current_time():
                    break
                # A request came in the turn in which the timer ended.
                self._idle_timer = trio.CancelScope(deadline=self._idle_timer.deadline)
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
        if isinstance(event, AnsweredEarly):
            with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                await self._half_close()
            return
        if isinstance(event, RequestRefused):
            await self._drop_the_rest()
            return
        if not isinstance(event, RawData):
            # The end of a response cancels the task that sent it, which is this one: closing must complete.
            with trio.CancelScope(shield=True, deadline=trio.current_time() + CLOSE_TIMEOUT):
                await super().protocol_send(event)
            return
        async with self.send_lock:
            if self._broken or await self._is_sent(event.data):
                return
            # Also when the peer disconnected: its earlier bytes may be megabytes of requests without a reader.
            await self._abandon()
        await self.protocol.handle(Closed())

    async def send_at_once(self, data: bytes) -> None:
        """Send a response by one system call, without a turn of the event loop, when the client's buffer has room.

        For callers that wait for the client before the next response: otherwise other tasks would not run.
        """
        sent = 0
        stream = cast("ClientStream", self.stream)
        if isinstance(stream, trio.SocketStream) and not self.send_lock.locked():
            with contextlib.suppress(OSError):  # no room, or disconnected: `protocol_send` meets it again
                sent = stream.socket._sock.send(data)  # type: ignore[attr-defined]
        if sent < len(data):
            await self.protocol_send(RawData(data[sent:]))

    async def _is_sent(self, data: bytes) -> bool:
        try:
            await self._send_pieces(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError):
            return False
        except trio.Cancelled:
            # Half a response may be sent: the connection cannot be reused.
            await self._abandon()
            raise
        return True

    async def _send_pieces(self, data: bytes) -> None:
        """Send in pieces. The deadline is for a piece: a large download on a slow line is slow, not stalled."""
        view = memoryview(data)
        for start in range(0, len(view), WRITE_PIECE):
            with trio.fail_after(WRITE_TIMEOUT):
                await self.stream.send_all(view[start : start + WRITE_PIECE])

    async def _drop_the_rest(self) -> None:
        """Drop the rest of the body, so that the response is not lost, see (8). Called by the task that reads."""
        with (
            contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError),
            trio.move_on_after(LINGER_SECONDS),
        ):
            await self._half_close()
            left = LINGER_BYTES
            while left > 0:
                data = await self.stream.receive_some(min(MAX_RECV, left))
                if not data:
                    return
                left -= len(data)
            await trio.sleep_forever()  # the rest stays unread: endless reading would keep the sender going

    async def _half_close(self) -> None:
        """Signal the client that no more data follows."""
        async with self.send_lock:
            await self._send_eof()

    async def _send_eof(self) -> None:
        """Half close the connection, under the lock of its writers. TLS has no half close."""
        send_eof = getattr(self.stream, "send_eof", None)
        if send_eof is not None:
            await send_eof()

    async def _close(self) -> None:
        """Close the connection (11). A write in progress ends with it."""
        with contextlib.suppress(trio.WouldBlock):
            self.send_lock.acquire_nowait()
            try:
                with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                    await self._send_eof()
            finally:
                self.send_lock.release()
        await self.stream.aclose()

    async def _abandon(self) -> None:
        self._broken = True
        with trio.CancelScope(shield=True):
            await trio.aclose_forcefully(self.stream)


class ConnectionTasks(TaskGroup):
    """Task group in which an application that takes no more messages delays neither its own end nor the reading task
    (10). `before_piece` is awaited before each piece of a body is passed on."""

    def __init__(self, before_piece: Callable[[], Awaitable[None]] = trio.lowlevel.checkpoint) -> None:
        super().__init__()
        self._before_piece = before_piece

    async def spawn_app(
        self, app: AppWrapper, config: Config, scope: Scope, send: Callable[[ASGISendEvent | None], Awaitable[None]]
    ) -> Callable[[ASGIReceiveEvent], Awaitable[None]]:
        queue, messages = trio.open_memory_channel[ASGIReceiveEvent](config.max_app_queue_size)

        async def run() -> None:
            with messages:
                await _handle(app, config, scope, messages.receive, send, trio.to_thread.run_sync, trio.from_thread.run)

        async def put(message: ASGIReceiveEvent) -> None:
            with contextlib.suppress(trio.BrokenResourceError):  # the application has ended
                if message["type"] != "http.disconnect":
                    if message["type"] == "http.request" and message["body"]:
                        await self._before_piece()
                    await queue.send(message)
                    return
                # The caller may be the application itself, so this never waits. Without room all pieces are dropped: a
                # body never arrives with a hole in it.
                if queue.statistics().current_buffer_used >= config.max_app_queue_size:
                    with contextlib.suppress(trio.WouldBlock):
                        while True:
                            messages.receive_nowait()
                queue.send_nowait(message)

        self.spawn(run)
        return put


class OneWriteH11(H11Protocol):
    """Sends the head, a short body and the end of a response of known length in one write instead of three (6)."""

    def __init__(
        self,
        app: AppWrapper,
        config: Config,
        context: WorkerContext,
        task_group: AnyTaskGroup,
        connection_state: ConnectionState,
        ssl: bool,
        client: tuple[str, int] | None,
        server: tuple[str, int] | None,
        send: Callable[[Event], Awaitable[None]],
    ) -> None:
        super().__init__(app, config, context, task_group, connection_state, ssl, client, server, send)
        self._framing = OneFraming(h11.SERVER, max_incomplete_event_size=self.config.h11_max_incomplete_size)
        self.connection = self._framing
        self._held = b""
        self._holding = False
        self._lingering: trio.Event | None = None
        """Set when the client has closed, or the wait for it has ended."""
        self._closed = trio.Event()
        self._parsing = trio.CancelScope()
        self._dropped = 0
        self._inside_head = False

    async def handle(self, event: Event) -> None:
        if isinstance(event, Closed):
            self._framing.end()
            self._closed.set()
            await self.can_read.set()
        if self._lingering is None:
            await super().handle(event)
            await self._watch_head()
        elif isinstance(event, RawData) and event.data:
            await self._drop(len(event.data))
        else:
            self._lingering.set()

    async def _handle_events(self) -> None:
        with trio.CancelScope() as self._parsing:
            await super()._handle_events()

    async def _watch_head(self) -> None:
        """Report once per request that its head has begun and not ended."""
        connection = self.connection
        inside = isinstance(connection, h11.Connection) and (
            connection.their_state is h11.IDLE and len(connection._receive_buffer) > 0
        )
        if inside and not self._inside_head:
            await self.send(HeadBegun())
        self._inside_head = inside

    async def _drop(self, size: int) -> None:
        """Hold the reader up as soon as its next bytes could exceed the dropped number."""
        self._dropped += size
        if self._dropped > LINGER_BYTES - MAX_RECV:
            await self._closed.wait()

    async def _send_error_response(self, status_code: int) -> None:
        await super()._send_error_response(status_code)
        self._framing.end()
        await self._close_stream()
        await self.send(RequestRefused())

    async def _maybe_recycle(self) -> None:
        if self.connection.our_state in {h11.DONE, h11.MUST_CLOSE} and self.connection.their_state is h11.SEND_BODY:
            await self._linger()
        await super()._maybe_recycle()

    async def _linger(self) -> None:
        """Drop the remaining body of an early response (RFC 9112 section 9.6): a socket closed with unread bytes resets
        the connection, and the response would be lost in flight. None of it is parsed: the sender may have
        disconnected, and parsing would cost us more than the sender."""
        self._lingering = trio.Event()
        self._framing.end()
        self._parsing.cancel()  # the reader may be waiting for the application to take a piece
        await self.send(AnsweredEarly())
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
            # A refused handshake cannot be followed by another request here; report it and close.
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
        if not is_fast_path(request) or _expects_body(request):
            await super()._create_stream(request)
            return
        # The stream reads its task group during construction.
        task_group, self.task_group = self.task_group, AT_ONCE  # type: ignore[assignment]
        try:
            await super()._create_stream(request)
        finally:
            self.task_group = task_group


def is_fast_path(request: h11.Request) -> bool:
    """Return whether the fast path answers a request (`FAST_PATHS`)."""
    names = (path := request.target.partition(b"?")[0]), path[: path.find(b"/", 1) + 1]
    return request.method == b"GET" and not FAST_PATHS.isdisjoint(names)


_MORE = frozenset({b"upgrade", b"content-length", b"transfer-encoding"})


def _expects_body(request: h11.Request) -> bool:
    """Return whether any body may follow the head: immediate responses wait for none. A length of 0 is none."""
    for _, name, value in request.headers._full_items:
        if name in _MORE and (value != b"0" or name != b"content-length"):
            return True
    return False
