"""Middleboxes on loopback, in process: authenticating proxies, idle cutters, upgrade strippers, home routers.

    async with trio.open_nursery() as nursery:
        port = await nursery.start(serve_box, AuthProxy(("127.0.0.1", server_port), "ana", "secret"))

Each box handles one TCP connection, forwards everything to its `target` (host, port), and counts what it saw. They are
as rude as the real ones, not as complete. `Router` maps ports by PCP, by NAT-PMP or not at all.
"""

from __future__ import annotations

import base64
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import h11
import trio

from coder.mesh.core.errors import WireError
from coder.mesh.core.wire import portmap
from coder.mesh.core.wire.portmap import PcpMap, PcpMapped, PmpAddress, PmpAddressRequest, PmpMapped, Refused

Target = tuple[str, int]
Handler = Callable[[trio.SocketStream], Awaitable[None]]
_GONE = (trio.BrokenResourceError, trio.ClosedResourceError, OSError, h11.RemoteProtocolError, h11.LocalProtocolError)


async def serve_box(
    box: Handler, tls: ssl.SSLContext | None = None, *, task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED
) -> None:
    """Serves a box for ever, behind TLS if wanted; starts with its port."""

    async def handle(stream: Any) -> None:
        if tls is not None:
            stream = trio.SSLStream(stream, tls, server_side=True, https_compatible=True)
        try:
            await box(stream)
        except* _GONE:
            pass
        finally:
            await trio.aclose_forcefully(stream)

    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    task_status.started(listener.socket.getsockname()[1])
    await trio.serve_listeners(handle, [listener])


async def join(one: trio.abc.Stream, two: trio.abc.Stream, *, idle: float = float("inf")) -> None:
    """Copies both ways until one side ends or nothing was said for `idle` seconds; then both are cut."""
    heard = [trio.current_time()]

    async def copy(source: trio.abc.Stream, sink: trio.abc.Stream, scope: trio.CancelScope) -> None:
        while data := await source.receive_some(65536):
            heard[0] = trio.current_time()
            await sink.send_all(data)
        scope.cancel()

    async with two, trio.open_nursery() as nursery:
        nursery.start_soon(copy, one, two, nursery.cancel_scope)
        nursery.start_soon(copy, two, one, nursery.cancel_scope)
        quiet_since = -1.0
        while quiet_since < heard[0]:
            quiet_since = heard[0]
            await trio.sleep_until(quiet_since + idle)
        nursery.cancel_scope.cancel()


@dataclass
class AuthProxy:
    """A forward proxy: CONNECT with the right password only. Every name leads to `target`."""

    target: Target
    user: str
    password: str
    tunnels: list[str] = field(default_factory=list)
    "Where people wanted to go."
    refused: int = 0

    async def __call__(self, stream: trio.SocketStream) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            data = await stream.receive_some(4096)
            if not data:
                return
            head += data
        line, *fields = head.partition(b"\r\n\r\n")[0].decode().split("\r\n")
        method, where, _ = line.split(" ")
        wanted = "Basic " + base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
        given = [f.partition(":")[2].strip() for f in fields if f.lower().startswith("proxy-authorization:")]
        if given != [wanted]:
            self.refused += 1
            await stream.send_all(
                b"HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=box\r\n"
                b"Content-Length: 0\r\nConnection: close\r\n\r\n"
            )
            return
        beyond = await trio.open_tcp_stream(*self.target)
        if method == "CONNECT":
            self.tunnels.append(where)
            await stream.send_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:  # the absolute form of a request, which the server takes as well (RFC 9112 section 3.2.2)
            address = urlsplit(where)
            self.tunnels.append(f"{address.hostname}:{address.port or 80}")
            await beyond.send_all(head)
        await join(stream, beyond)


@dataclass
class IdleCutter:
    """Cuts connections over which nothing was said for `seconds`; so that the other side hears of it, or not."""

    target: Target
    seconds: float
    cuts: int = 0

    async def __call__(self, stream: trio.SocketStream) -> None:
        began = trio.current_time()
        await join(stream, await trio.open_tcp_stream(*self.target), idle=self.seconds)
        if trio.current_time() - began >= self.seconds:
            self.cuts += 1


@dataclass
class UpgradeStripper:
    """A reverse proxy that knows requests and answers, and nothing of upgrades."""

    target: Target
    manner: str = "strip"
    "`strip` the header; `refuse` with a page of its own; `swallow`: agree by itself and pass nothing on."
    buffers: bool = False
    "Passes answers on when they are complete, not before."
    knows: tuple[str, ...] = ()
    "Upgrades it lets through after all (`websocket`)."
    stripped: int = 0
    plain: int = 0

    async def __call__(self, stream: trio.SocketStream) -> None:
        connection = h11.Connection(h11.SERVER)
        while connection.our_state is h11.IDLE:
            request, body = await _read_request(stream, connection)
            if request is None:
                return
            wanted = dict(request.headers).get(b"upgrade", b"").decode().lower()
            if wanted and wanted in self.knows:
                await self._pass_through(stream, connection, request)
                return
            if wanted:
                self.stripped += 1
                if self.manner == "refuse":
                    page = b"<html>502 this box has no idea</html>"
                    head = h11.Response(status_code=502, headers=[("Content-Length", str(len(page)))])
                    for event in (head, h11.Data(data=page), h11.EndOfMessage()):
                        await _send(stream, connection, event)
                    connection.start_next_cycle()
                    continue
                if self.manner == "swallow":
                    await stream.send_all(
                        b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n"
                        % wanted.encode()
                    )
                    await trio.sleep_forever()
            else:
                self.plain += 1
            await self._forward(stream, connection, request, body)
            if (connection.our_state, connection.their_state) == (h11.DONE, h11.DONE):
                connection.start_next_cycle()

    async def _pass_through(self, stream: trio.SocketStream, connection: h11.Connection, request: h11.Request) -> None:
        server = await trio.open_tcp_stream(*self.target)
        lines = [request.method + b" " + request.target + b" HTTP/1.1"]
        lines += [name + b": " + value for name, value in request.headers]
        await server.send_all(b"\r\n".join([*lines, b"", b""]) + connection.trailing_data[0])
        await join(stream, server)

    async def _forward(
        self, stream: trio.SocketStream, connection: h11.Connection, request: h11.Request, body: bytes
    ) -> None:
        kept: list[Any] = [
            (name, value)
            for name, value in request.headers
            if name not in {b"upgrade", b"connection", b"transfer-encoding", b"content-length"}
        ]
        client = h11.Connection(h11.CLIENT)
        async with await trio.open_tcp_stream(*self.target) as server:
            if body or request.method == b"POST":
                kept.append((b"Content-Length", str(len(body)).encode()))
            head = h11.Request(method=request.method, target=request.target, headers=[*kept, ("Connection", "close")])
            for event in (head, h11.Data(data=body), h11.EndOfMessage()):
                await _send(server, client, event)
            held: list[Any] = []
            while True:
                answer = await _next(server, client)
                if isinstance(answer, h11.Response):
                    headers = [(n, v) for n, v in answer.headers if n not in {b"connection", b"upgrade"}]
                    answer = h11.Response(status_code=answer.status_code, headers=headers)
                if isinstance(answer, h11.InformationalResponse):
                    continue
                held.append(answer)
                if not self.buffers or isinstance(answer, h11.EndOfMessage):
                    for event in held:
                        await _send(stream, connection, event)
                    held.clear()
                if isinstance(answer, h11.EndOfMessage | h11.ConnectionClosed):
                    return


async def _read_request(stream: trio.SocketStream, connection: h11.Connection) -> tuple[h11.Request | None, bytes]:
    request, body = None, b""
    while True:
        event = await _next(stream, connection)
        if isinstance(event, h11.Request):
            request = event
            if any(name == b"upgrade" for name, _ in event.headers):
                return request, b""
        elif isinstance(event, h11.Data):
            body += bytes(event.data)
        else:
            return request, body


async def _next(stream: trio.SocketStream, connection: h11.Connection) -> Any:
    while (event := connection.next_event()) in (h11.NEED_DATA, h11.PAUSED):
        if event is h11.PAUSED:
            return None
        connection.receive_data(await stream.receive_some(65536))
    return event


async def _send(stream: trio.SocketStream, connection: h11.Connection, event: Any) -> None:
    data = connection.send(event)
    if data:
        await stream.send_all(data)


class Router:
    """The service's memory; `answer_untrusted` is all it does. `mappings`: inside port -> (outside port, lifetime)."""

    def __init__(self, outside: str, *, speaks: str = "PCP", result: int = 0, taken: set[int] | None = None) -> None:
        self.outside = outside
        self.speaks = speaks
        self.result = result
        self.taken = taken or set()
        self.mappings: dict[int, tuple[int, int]] = {}
        self.asked: list[portmap.Request] = []

    def answer_untrusted(self, datagram: bytes) -> list[bytes]:
        """What goes back to whoever sent it."""
        request = portmap.parse_request_untrusted(datagram)
        self.asked.append(request)
        if not self.speaks:
            return []
        if isinstance(request, PcpMap):
            if self.speaks != "PCP":
                return [Refused(portmap.NAT_PMP, portmap.UNSUPPORTED_VERSION).encode()]
            port, lifetime = self._map(request.port, request.suggested_port, request.lifetime)
            return [PcpMapped(self.result, lifetime, 1, request.nonce, request.port, (self.outside, port)).encode()]
        if isinstance(request, PmpAddressRequest):
            return [PmpAddress(self.result, 1, self.outside).encode()]
        port, lifetime = self._map(request.port, request.suggested_port, request.lifetime)
        return [PmpMapped(self.result, 1, request.port, port, lifetime).encode()]

    def _map(self, inside: int, wanted: int, lifetime: int) -> tuple[int, int]:
        if self.result:
            return 0, lifetime
        if not lifetime:
            self.mappings.pop(inside, None)
            return 0, 0
        outside = wanted or inside
        while outside in self.taken:
            outside += 1
        self.mappings[inside] = (outside, lifetime)
        return outside, lifetime


async def serve_router(
    router: Router, host: str, port: int = 0, *, task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED
) -> None:
    """Answers on UDP for ever; starts with the port."""
    with trio.socket.socket(trio.socket.AF_INET, trio.socket.SOCK_DGRAM) as sock:
        await sock.bind((host, port))
        task_status.started(sock.getsockname()[1])
        while True:
            datagram, source = await sock.recvfrom(2048)
            try:
                answers = router.answer_untrusted(datagram)
            except WireError:
                continue
            for answer in answers:
                await sock.sendto(answer, source)
