"""The HTTP server: accepts TCP and TLS, lets Hypercorn parse, takes over the connections that are links.

Every request head passes `UpgradeAwareH11`: when its path is in the table of links, Hypercorn's part ends there and the
raw stream is passed to the link's handler, with the bytes after the head. This holds for any request of a kept-alive
connection, not only the first: Go's HTTP client reuses idle connections for its WebSocket handshakes. Requests for
workspace applications take the same way and return: their proxy returns the bytes that follow.
"""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import cast

import h11
import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.events import Closed, Event, RawData, Updated
from hypercorn.protocol import ProtocolWrapper
from hypercorn.trio.tcp_server import MAX_RECV
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ASGIFramework, ConnectionState, TaskGroup

from coder.appproxy.http.accepting import Acceptor
from coder.appproxy.http.asgi import Application
from coder.appproxy.http.client_address import TrustedProxies
from coder.appproxy.http.connection_shares import (
    CHUNK_COST,
    CONNECTION_COST,
    READ_COST,
    REQUEST_COST,
    SIMPLE_COST,
    ClientConnection,
    ConnectionShares,
    serve_in_task,
)
from coder.appproxy.http.hypercorn_fixes import (
    ConnectionTasks,
    OneWriteH11,
    PatientServer,
    is_fast_path,
    server_config,
)
from coder.appproxy.http.listening_sockets import ClientListener, ClientStream, notice_dead_peers, socket_of
from coder.appproxy.http.overload import OverloadSign
from coder.appproxy.http.simple_requests import NotSimple, is_last, reply_of, response_bytes, scope_of, simple_head
from coder.base.exception_groups import is_disconnect
from coder.base.log import STRANGERS_LINES, get_logger
from coder.domain.access.session_cookies import renamed

_log = get_logger("http.listener", per_minute=STRANGERS_LINES)

HANDSHAKE_TIMEOUT = 15.0
SHUTDOWN_GRACE = 10.0
"""Seconds that running requests get after shutdown began."""

OpenLink = Callable[[h11.Request, str, bool, trio.abc.HalfCloseableStream, bytes], Awaitable[bytes | None]]
"""(head, remote address, over TLS, stream, bytes after the head): serves a link to its end.

Bytes as its result mean that the connection continues with them as ordinary HTTP.
"""
IsLink = Callable[[h11.Request], bool]
PassOn = Callable[[ClientStream, bytes, tuple[str, int], bool], Awaitable[bool]]
"""(stream, bytes of the request on, remote address, over TLS): gives the connection to another process of the server,
and returns False when that process cannot be reached."""
FindOther = Callable[[h11.Request, bool, bool], PassOn | None]
"""(head, over TLS, is an application's): how to pass on a request that another process of the server has to answer;
None for own ones."""


class UpgradeRequested(Exception):  # noqa: N818 - not an error: a way out
    """Leaves Hypercorn's protocol with a parsed head; caught by `AcceptedConnection`."""

    def __init__(self, request: h11.Request, trailing: bytes, pass_on: PassOn | None = None) -> None:
        super().__init__("link requested")
        self.request = request
        self.trailing = trailing
        self.pass_on = pass_on


@dataclass(slots=True)
class LinkRequest:
    """Request for a link, and how the connection came here: all that is left of HTTP on it while the link is open."""

    head: h11.Request
    trailing: bytes
    remote_ip: str
    secure: bool


class UpgradeAwareH11(OneWriteH11):
    """HTTP/1.1 that hands links over."""

    is_upgrade: IsLink
    is_exchange: IsLink
    prefixed_cookies = False
    client_connection: ClientConnection
    find_other: FindOther | None = None
    is_secure = False
    keeps_next = False
    """Whether the next request is not passed on: another process has passed it here, or could not be reached."""

    async def handle(self, event: Event) -> None:
        if isinstance(event, RawData):
            await self.client_connection.pay(READ_COST)
        await super().handle(event)
        if isinstance(event, RawData):
            await self.pay_chunks()

    async def pay_chunks(self) -> None:
        """Pay for the pieces of bodies that were parsed since the last call."""
        if chunks := self._framing.take_chunks():
            await self.client_connection.pay(chunks * CHUNK_COST)

    async def _check_protocol(self, event: h11.Request) -> None:
        await self.client_connection.pay(REQUEST_COST)
        keeps, self.keeps_next = self.keeps_next, False
        if not keeps and self.find_other is not None:
            pass_on = self.find_other(event, self.is_secure, self.is_exchange(event))
            if pass_on is not None:
                raise UpgradeRequested(event, self.connection.trailing_data[0], pass_on)
        if self.is_upgrade(event):
            raise UpgradeRequested(self.renamed(event), self.connection.trailing_data[0])
        # h2c upgrades are not offered: none of our code speaks h2 in the clear.

    async def _create_stream(self, request: h11.Request) -> None:
        await super()._create_stream(self.renamed(request))

    @property
    def is_between_requests(self) -> bool:
        """Return whether the next byte begins a request that this process may answer."""
        connection = self.connection
        return (
            connection is self._framing
            and self._framing.their_state is h11.IDLE
            and self._framing.our_state is h11.IDLE
            and not self._framing.trailing_data[0]
            and self._lingering is None
            and not self.keeps_next
        )

    def renamed(self, request: h11.Request) -> h11.Request:
        """Return the head with cookies renamed for the rest of the server."""
        if not self.prefixed_cookies or all(name != b"cookie" for name, _ in request.headers):
            return request
        headers = [
            (name, renamed(value.decode("latin-1")).encode("latin-1") if name.lower() == b"cookie" else value)
            for name, value in request.headers.raw_items()
        ]
        return h11.Request(
            method=request.method, target=request.target, headers=headers, http_version=request.http_version
        )


class AcceptedConnection(PatientServer):
    """Accepted connection, or its rest after a request that was handed over."""

    def __init__(
        self,
        server: HttpServer,
        stream: ClientStream,
        client_connection: ClientConnection,
        replayed: bytes = b"",
        origin: Origin | None = None,
        *,
        keeps_first: bool = False,
    ) -> None:
        super().__init__(server.asgi, server.config, server.worker, ConnectionState({}), stream)
        self._server = server
        self._client = stream
        self._replayed = replayed
        self._origin = origin
        self._keeps_first = keeps_first
        self.was_kept = False
        """Whether another process should have served the next request, and could not be reached."""
        self._client_connection = client_connection
        self._link: UpgradeRequested | None = None
        self._remote = ("", 0)

    async def serve(self) -> bytes | LinkRequest | None:
        """Serve to the end of the connection (None), until it continues with the returned bytes, or becomes a link."""
        try:
            remote, secure = await self._open()
            self._remote = remote
        except (OSError, trio.BrokenResourceError, trio.TooSlowError, ssl.SSLError):
            await _send_alert(self._client)
            await trio.aclose_forcefully(self.stream)
            return None
        try:
            async with ConnectionTasks(self._pay_chunks) as task_group:
                self._task_group = task_group
                self.protocol = cast("ProtocolWrapper", self._new_protocol(task_group, remote, secure))
                task_group.spawn(self.watch_idle)
                try:
                    if self._replayed:
                        await self.protocol.handle(RawData(self._replayed))
                    await self._read_data()
                except UpgradeRequested as request:
                    self._link = request.with_traceback(None)  # its frames are this connection's
                finally:
                    self.end_idle_watch()
        except OSError:
            pass  # the connection broke: there is no client to answer
        finally:
            if self._link is None:
                await self._close()
            for part in ("protocol", "_task_group"):  # they refer to this connection: only the collector would free it
                vars(self).pop(part, None)
        if self._link is None:
            return None
        head, trailing = self._link.request, self._link.trailing
        if self._link.pass_on is not None:
            replayed = _head_bytes(head) + trailing
            if await self._link.pass_on(self._client, replayed, remote, secure):
                return None
            self.was_kept = True
            return replayed
        return LinkRequest(head, trailing, remote[0], secure)

    async def _pay_chunks(self) -> None:
        await cast("UpgradeAwareH11", self.protocol).pay_chunks()

    async def _read_data(self) -> None:
        """Pass the stream to the parser, except requests of one piece (`simple_requests.py`)."""
        following = b""
        while True:
            try:
                data = following or bytes(await self.stream.receive_some(MAX_RECV))
            except (trio.ClosedResourceError, trio.BrokenResourceError):
                break
            rest = await self._answer_simple(data)
            if rest is None:
                break
            following = b""
            if rest is data:
                await self.protocol.handle(RawData(data))
                if not data:
                    break
            else:
                following = rest
        await self.protocol.handle(Closed())

    async def _answer_simple(self, data: bytes) -> bytes | None:
        """Serve a request of one piece. Returns the bytes after it: `data` itself when it is none, None when the
        connection has ended."""
        protocol, server = cast("UpgradeAwareH11", self.protocol), self._server
        request = simple_head(data) if protocol.is_between_requests else None
        if request is None:
            return data
        is_exchange = server.is_exchange(request)
        if server.find_other is not None and server.find_other(request, protocol.is_secure, is_exchange):
            return data
        if not is_exchange and not is_fast_path(request):
            return data
        await self._client_connection.pay(READ_COST + (REQUEST_COST if is_exchange else SIMPLE_COST))
        request = protocol.renamed(request)
        await self.protocol_send(Updated(idle=False))
        following: bytes | None = b""
        if is_exchange:
            stream = cast("trio.abc.HalfCloseableStream", self._client)
            following = await server.open_endpoint(request, self._remote[0], protocol.is_secure, stream, b"")
        else:
            goes_on = await self._reply(request, protocol)
            if not goes_on:
                return data if goes_on is None else None
        if following is None or self._broken or self.context.terminated.is_set():
            return None
        await self.protocol_send(Updated(idle=True))
        return following

    async def _reply(self, request: h11.Request, protocol: UpgradeAwareH11) -> bool | None:
        """Answer a request of the fast path; return whether the connection goes on, None when the request has to be
        parsed for another application."""
        scope = scope_of(request, self._remote, protocol.connection_state, secure=protocol.is_secure)
        try:
            reply = await reply_of(self._server.application, scope)
        except NotSimple:
            return None
        await self.send_at_once(response_bytes(reply))
        if reply[0] == 401:  # the search for its key cost more
            await self._client_connection.pay(REQUEST_COST - SIMPLE_COST)
        return not is_last(reply)

    async def _open(self) -> tuple[tuple[str, int], bool]:
        if self._origin is not None:
            return self._origin.remote, self._origin.secure
        secure = isinstance(self._client, trio.SSLStream)
        if isinstance(self._client, trio.SSLStream):
            with trio.fail_after(HANDSHAKE_TIMEOUT):
                await self._client.do_handshake()
        address = socket_of(self._client).getpeername()
        return (str(address[0]), int(address[1])), secure

    def _new_protocol(self, task_group: TaskGroup, client: tuple[str, int], secure: bool) -> UpgradeAwareH11:
        protocol = UpgradeAwareH11(
            self.app,
            self.config,
            self.context,
            task_group,
            ConnectionState(self.state),
            secure,
            client,
            None,
            self.protocol_send,
        )
        protocol.is_upgrade, protocol.is_exchange = self._server.is_upgrade, self._server.is_exchange
        protocol.prefixed_cookies = self._server.prefixed_cookies
        protocol.client_connection = self._client_connection
        protocol.find_other, protocol.is_secure = self._server.find_other, secure
        protocol.keeps_next = self._keeps_first
        return protocol


@dataclass(frozen=True, slots=True)
class Origin:
    """Client of a connection that another process of the server accepted."""

    remote: tuple[str, int]
    secure: bool


def _head_bytes(request: h11.Request) -> bytes:
    """Return a request's head as it can be parsed again."""
    lines = [b"%s %s HTTP/%s" % (request.method, request.target, request.http_version)]
    lines += [b"%s: %s" % (name, value) for name, value in request.headers.raw_items()]
    return b"\r\n".join(lines) + b"\r\n\r\n"


async def _send_alert(stream: ClientStream) -> None:
    """Send OpenSSL's alert about a failed handshake: trio keeps it, and the client would only see an end."""
    if isinstance(stream, trio.SSLStream) and (alert := stream._outgoing.read()):
        with contextlib.suppress(OSError, trio.BrokenResourceError, trio.ClosedResourceError), trio.move_on_after(1.0):
            await stream.transport_stream.send_all(alert)
            await stream.transport_stream.send_eof()
            await stream.transport_stream.receive_some(1 << 16)  # otherwise its unread bytes would reset the alert away


class HttpServer:
    """All listeners of one server. `serve` runs until its nursery is cancelled."""

    def __init__(
        self,
        app: Application | ASGIFramework,
        is_upgrade: IsLink,
        open_endpoint: OpenLink,
        *,
        prefixed_cookies: bool = False,
        proxies: TrustedProxies | None = None,
        find_other: FindOther | None = None,
        is_exchange: IsLink = lambda _: False,
        processes: int = 1,
        overload: OverloadSign | None = None,
    ) -> None:
        """`is_exchange` tells which of the links are one request and its response: the connection is HTTP again after
        it."""
        self.config = server_config()
        self.application = cast("Application", app)
        self.asgi = ASGIWrapper(cast("ASGIFramework", app))
        self.worker = WorkerContext(None)
        self.is_upgrade = is_upgrade
        self.open_endpoint = open_endpoint
        self.prefixed_cookies = prefixed_cookies
        self.find_other = find_other
        self.is_exchange = is_exchange
        self.connections = ConnectionShares(
            is_proxy=proxies.trusts if proxies is not None else lambda _: False,
            processes=processes,
            overload=overload,
        )
        self._nursery: trio.Nursery | None = None
        self._drained = trio.Event()

    async def drained(self) -> None:
        """Wait until every connection is closed; at most `SHUTDOWN_GRACE` after `stopping` was set."""
        await self._drained.wait()

    async def serve(
        self,
        listeners: Sequence[ClientListener],
        stopping: trio.Event,
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Accept until `stopping` is set, then let running requests end for `SHUTDOWN_GRACE` seconds."""
        try:
            async with trio.open_nursery() as connections:
                self._nursery = connections
                async with trio.open_nursery() as accepting:
                    if listeners:
                        accepting.start_soon(self._accept, listeners, connections)
                    task_status.started()
                    await stopping.wait()
                    accepting.cancel_scope.cancel()
                self._nursery = None
                # Idle connections end immediately, busy ones after their response.
                await self.worker.terminated.set()
                connections.cancel_scope.deadline = trio.current_time() + SHUTDOWN_GRACE
        finally:
            self._drained.set()

    async def _accept(self, listeners: Sequence[ClientListener], connections: trio.Nursery) -> None:
        def serve(stream: ClientStream, connection: ClientConnection) -> None:
            connections.start_soon(self._handle, stream, connection)

        async with trio.open_nursery() as accepting:
            for listener in listeners:
                accepting.start_soon(Acceptor(listener, self.connections, serve).run)

    def adopt(self, stream: trio.SocketStream, replayed: bytes, origin: Origin) -> bool:
        """Serve a connection that another process of the server accepted, from these bytes of it on; return False when
        the server stops."""
        if self._nursery is None:
            return False
        connection = self.connections.admit(origin.remote[0], stream.socket.close)
        if connection is None:
            stream.socket.close()
        else:
            connection.charge(CONNECTION_COST)
            self._nursery.start_soon(self._handle, stream, connection, replayed, origin)
        return True

    async def _handle(
        self, stream: ClientStream, connection: ClientConnection, replayed: bytes = b"", origin: Origin | None = None
    ) -> None:
        scope = trio.CancelScope()
        connection.close = scope.cancel
        serve_in_task(connection)
        notice_dead_peers(stream)
        try:
            with scope:
                await self._serve(stream, connection, replayed, origin)
        except BaseException:
            await trio.aclose_forcefully(stream)  # cancelled before anything owned the stream
            raise
        finally:
            self.connections.release(connection)
            if scope.cancelled_caught:
                await trio.aclose_forcefully(stream)

    async def _serve(
        self, stream: ClientStream, connection: ClientConnection, replayed: bytes = b"", origin: Origin | None = None
    ) -> None:
        try:
            following: bytes | None = replayed
            keeps = origin is not None  # never passed on twice: two processes could disagree
            while following is not None:
                accepted = AcceptedConnection(self, stream, connection, following, origin, keeps_first=keeps)
                result = await accepted.serve()
                keeps = accepted.was_kept
                if isinstance(result, LinkRequest):
                    link = self._open(result, stream)
                    # A link may be open for months: the parser, its tasks and the request's head end here.
                    del accepted, result
                    following = await link
                else:
                    following = result
        except Exception as error:
            # A connection's failure must never end the server.
            if not is_disconnect(error):
                _log.error("a connection failed", error=error)
            await trio.aclose_forcefully(stream)

    def _open(self, request: LinkRequest, stream: ClientStream) -> Awaitable[bytes | None]:
        # With TLS it cannot be half closed, and no link tries: a WebSocket has its own end.
        both_ways = cast("trio.abc.HalfCloseableStream", stream)
        return self.open_endpoint(request.head, request.remote_ip, request.secure, both_ways, request.trailing)
