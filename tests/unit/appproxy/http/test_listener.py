"""The listener: links on any request of a connection, stalled peers, bodies, keep-alive, shutdown."""

from __future__ import annotations

import contextlib
import re
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio
from quart import Response, request, websocket
from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, BytesMessage, Request

from coder.api.base.refusals import NotFound
from coder.appproxy.http import hypercorn_fixes, listener
from coder.appproxy.http.errors import envelope_of
from coder.appproxy.http.listener import HttpServer
from coder.appproxy.upgrades.raw_links import EndpointTable, Upgrade, path_of, serve_endpoint, upgrade_request
from coder.coderd.http.server import quart_fixes
from coder.coderd.http.server.quart_fixes import Application, new_application
from coder.domain.access.rate_budgets import unlimited
from coder.domain.access.route_scopes import PUBLIC


def _application(events: list[str]) -> Application:
    app = new_application("test")

    @app.get("/hello")
    async def hello() -> Response:
        if request.content_length or "Transfer-Encoding" in request.headers:
            await request.get_data()  # otherwise it would be answered early, and the connection closed
        return Response("hello", content_type="text/plain")

    @app.get("/big")
    async def big() -> Response:
        try:
            return Response(bytes(64 << 20))
        finally:
            events.append("big")

    @app.post("/early")
    async def early() -> Response:
        return Response("too much", 413)

    @app.post("/slow")
    async def slow_handler() -> str:
        seen = 0
        first = True
        async for piece in request.body:
            if first:
                first = False
                for _ in range(200):
                    await trio.lowlevel.checkpoint()
                events.append(f"buffered {len(request.body._data)}")
            seen += len(piece)
        return str(seen)

    @app.websocket("/echo")
    async def echo() -> None:
        await websocket.accept()
        while True:
            await websocket.send(await websocket.receive())

    return app


async def _upgrade(ctx: Any, upgrade: Upgrade) -> None:
    if upgrade.params["name"] == "refused":
        raise NotFound
    stream = await upgrade.accept_raw([("upgrade", "test")])
    while data := await stream.receive_some(1000):
        await stream.send_all(data.upper())


class Door:
    """Listener and the events behind it."""

    def __init__(self, port: int, events: list[str], stopping: trio.Event) -> None:
        self.port, self.events, self.stopping = port, events, stopping

    async def connect(self) -> trio.SocketStream:
        return await trio.open_tcp_stream("127.0.0.1", self.port)


@contextlib.asynccontextmanager
async def door() -> AsyncIterator[Door]:
    events: list[str] = []
    table = EndpointTable()
    table.add("/link/{name}", _upgrade, scope=PUBLIC, budgets=(unlimited("a test asks"),))

    async def open_endpoint(head: Any, remote: str, secure: bool, stream: Any, trailing: bytes) -> None:
        wanted = upgrade_request(head, remote, secure)
        position = table.find(wanted.path)
        assert position is not None
        upgrade = Upgrade(wanted, position[1], stream, trailing)
        del head, wanted
        await serve_endpoint(None, position[0], upgrade, stream, envelope_of)
        events.append("link ended")

    front = HttpServer(_application(events), lambda head: table.find(path_of(head)) is not None, open_endpoint)
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    stopping = trio.Event()
    async with trio.open_nursery() as nursery:
        await nursery.start(front.serve, listeners, stopping)
        yield Door(listeners[0].socket.getsockname()[1], events, stopping)
        stopping.set()
        with trio.fail_after(60):
            await front.drained()
        nursery.cancel_scope.cancel()


async def read_response(stream: trio.SocketStream) -> tuple[bytes, bytes]:
    """Return head and body by content-length."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = await stream.receive_some(65536)
        assert piece, data
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    length = 0
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            length = int(line.partition(b":")[2])
    while len(body) < length:
        body += await stream.receive_some(65536)
    return head, body


async def test_link_on_any_request() -> None:
    async with door() as front, await front.connect() as stream:
        for _ in range(3):
            await stream.send_all(b"GET /hello HTTP/1.1\r\nHost: x\r\n\r\n")
            head, body = await read_response(stream)
            assert head.startswith(b"HTTP/1.1 200")
            assert body == b"hello"
        await stream.send_all(b"GET /link/a HTTP/1.1\r\nHost: x\r\nUpgrade: test\r\n\r\nearly")
        head = b""
        while b"\r\n\r\n" not in head:
            head += await stream.receive_some(1000)
        assert head.startswith(b"HTTP/1.1 101")
        rest = head.partition(b"\r\n\r\n")[2]
        while rest != b"EARLY":
            rest += await stream.receive_some(1000)
        await stream.send_all(b"more")
        assert await stream.receive_some(1000) == b"MORE"


async def test_refused_link_gets_envelope() -> None:
    async with door() as front, await front.connect() as stream:
        await stream.send_all(b"GET /link/refused HTTP/1.1\r\nHost: x\r\n\r\n")
        head, body = await read_response(stream)
        assert head.startswith(b"HTTP/1.1 404")
        assert b"Resource not found" in body
        assert await stream.receive_some(1) == b""


async def test_thousand_requests_per_connection() -> None:
    async with door() as front, await front.connect() as stream:
        for _ in range(1100):
            await stream.send_all(b"GET /hello HTTP/1.1\r\nHost: x\r\n\r\n")
            head, _ = await read_response(stream)
            assert b"connection: close" not in head.lower()


async def test_stalled_peer_does_not_block_shutdown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "SHUTDOWN_GRACE", 0.05)
    async with door() as front:
        stalled = await front.connect()
        await stalled.send_all(b"GET /big HTTP/1.1\r\nHost: x\r\n\r\n")
        while not front.events:
            await trio.lowlevel.checkpoint()
        front.stopping.set()
    await stalled.aclose()


async def test_stalled_write_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hypercorn_fixes, "WRITE_TIMEOUT", 0.05)
    async with door() as front, await front.connect() as stalled:
        await stalled.send_all(b"GET /big HTTP/1.1\r\nHost: x\r\n\r\n")
        with trio.fail_after(60):
            with contextlib.suppress(trio.BrokenResourceError):
                stalled.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                # the server closes hard: bytes in flight arrive, then a reset or the end
                while not front.events:
                    await trio.lowlevel.checkpoint()
                await trio.testing.wait_all_tasks_blocked(0.2)
                while await stalled.receive_some(1 << 20):
                    pass


async def test_slow_handler_slows_sender() -> None:
    size = 16 << 20
    async with door() as front, await front.connect() as stream:
        await stream.send_all(f"POST /slow HTTP/1.1\r\nHost: x\r\nContent-Length: {size}\r\n\r\n".encode())
        await stream.send_all(bytes(size))
        _, body = await read_response(stream)
        assert body == str(size).encode()
        buffered = int(front.events[0].split()[1])
        assert buffered <= quart_fixes.BODY_HIGH_WATER + (1 << 17)


async def test_early_response_ends_upload() -> None:
    async with door() as front, await front.connect() as stream:
        await stream.send_all(b"POST /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\n\r\n")
        with contextlib.suppress(trio.BrokenResourceError):
            with trio.fail_after(60):
                while True:
                    await stream.send_all(bytes(1 << 20))


async def test_empty_binary_messages_arrive() -> None:
    async with door() as front, await front.connect() as stream:
        ws = WSConnection(ConnectionType.CLIENT)
        await stream.send_all(ws.send(Request(host="x", target="/echo")))
        got: list[Any] = []
        await stream.send_all(b"")
        while not any(isinstance(event, AcceptConnection) for event in got):
            ws.receive_data(await stream.receive_some(1000))
            got += list(ws.events())
        await stream.send_all(ws.send(BytesMessage(b"")) + ws.send(BytesMessage(b"x")))
        messages: list[bytes] = []
        while len(messages) < 2:
            ws.receive_data(await stream.receive_some(1000))
            messages += [bytes(event.data) for event in ws.events() if isinstance(event, BytesMessage)]
        assert messages == [b"", b"x"]


async def test_invalid_heads_end_only_their_connection() -> None:
    async with door() as front:
        for data in (b"\x16\x03\x01\x00\xa5\x01\x00", b"GET / HTTP/1.1\r\nX: " + b"a" * 200_000 + b"\r\n\r\n"):
            async with await front.connect() as stream:
                with contextlib.suppress(trio.BrokenResourceError):
                    await stream.send_all(data)
                    await stream.send_eof()
                    while await stream.receive_some(1000):
                        pass
        async with await front.connect() as stream:
            await stream.send_all(b"GET /hello HTTP/1.1\r\nHost: x\r\n\r\n")
            assert (await read_response(stream))[1] == b"hello"


async def test_only_idle_connections_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hypercorn_fixes, "KEEP_ALIVE_IDLE", 1.0)
    async with door() as front, await front.connect() as busy:
        await busy.send_all(b"POST /slow HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\na")
        with trio.fail_after(60):
            while not front.events:  # a connection without a request is idle
                await trio.sleep(0)
            async with await front.connect() as idle:
                assert await idle.receive_some(1) == b""
        await busy.send_all(b"b")
        assert (await read_response(busy))[1] == b"2"


async def test_shutdown_closes_idle_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "SHUTDOWN_GRACE", 3600.0)
    async with door() as front:
        stream = await front.connect()
        await stream.send_all(b"GET /hello HTTP/1.1\r\nHost: x\r\n\r\n")
        await read_response(stream)
        front.stopping.set()
        with trio.fail_after(60):
            assert await stream.receive_some(1) == b""
        await stream.aclose()


async def test_a_slow_reader_gets_everything(mock_clock: trio.testing.MockClock) -> None:
    """Each 16 MiB take as long as one piece may take; the clock stands still while client and server wait."""
    async with door() as front:
        stream = await front.connect()
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        await stream.send_all(b"GET /big HTTP/1.1\r\nHost: x\r\n\r\n")
        total = 0
        while total < 64 << 20:
            piece = await stream.receive_some(1 << 16)
            assert piece
            total += len(piece)
            mock_clock.jump(hypercorn_fixes.WRITE_TIMEOUT * len(piece) / (16 << 20))
        await stream.aclose()


async def test_early_response_reaches_sender() -> None:
    """RFC 9112 section 9.6: closing under unread bytes would reset the connection and lose the answer."""
    async with door() as server:
        for _ in range(5):
            stream = await server.connect()
            async with stream:
                await stream.send_all(b"POST /early HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n")
                with contextlib.suppress(trio.BrokenResourceError):  # the rest is not awaited
                    for _ in range(10):
                        await stream.send_all(bytes(100_000))
                        await trio.sleep(0.002)
                answer = b"".join([piece async for piece in stream])
            head, _, body = answer.partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 413 ") and b"connection: close" in head.lower(), head
            assert body == b"too much"


LAST = b"GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
FRAMINGS = {
    # framing headers and body of a request -> statuses of the connection, the last one that of LAST
    "": [200, 200],
    "Content-Length: 0": [200, 200],
    "CONTENT-LENGTH:\t 0 \t": [200, 200],
    "Content-Length:\r\n 0": [200, 200],
    "Content-Length: 00": [200, 200],
    "Content-Length: 0, 0": [200, 200],
    "Content-Length: 0\r\nContent-Length: 0": [200, 200],
    "Content-Length: 2\r\n\r\n12": [200, 200],
    "Content-Length: 02\r\n\r\n12": [200, 200],
    "Content-Length: 0\r\n\r\n12": [200, 405],  # of a method named 12GET
    "Content-Length: 0\r\n\r\n0\r\n\r\n": [200, 400],
    "Content-Length: 0\r\nContent-Length: 2\r\n\r\n12": [400],
    "Content-Length: 0, 2\r\n\r\n12": [400],
    "Content-Length: 0\r\nContent-Length: 00": [400],
    "Content-Length: +0": [400],
    "Content-Length: -0": [400],
    "Content-Length: 0x0": [400],
    "Content-Length: 0 0": [400],
    "Content-Length: 0;": [400],
    "Content-Length: 0.0": [400],
    "Content-Length:": [400],
    "Content-Length : 0": [400],
    "Content-Length: 0\0": [400],
    "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n": [400],
    "Transfer-Encoding: chunked\r\nContent-Length: 0": [400],
    "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n": [200, 200],
    "Transfer-Encoding: chunked\r\n\r\n2\r\n12\r\n0\r\n\r\n": [200, 200],
    "Transfer-Encoding: identity": [501],
    "Transfer-Encoding: chunked, chunked": [501],
    "Content-Length: 0\r\nTransfer-Encoding: xchunked": [501],
    "Content-Length: 0\r\nConnection: close": [200],
    "Content-Length: 0\r\nConnection: Upgrade\r\nUpgrade: h2c": [200, 200],
    "Content-Length: 0\r\nConnection: Upgrade\r\nUpgrade: nothing": [200, 200],
}


@pytest.mark.parametrize("version", ["1.1", "1.0"])
@pytest.mark.parametrize("lane", ["fast", "slow"])
async def test_request_framing_equals_on_both_lanes(lane: str, version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise one request to a proxy in front would be two to us."""
    if lane == "fast":
        monkeypatch.setattr(hypercorn_fixes, "FAST_PATHS", {b"/hello"})
    async with door() as server:
        for framing, statuses in FRAMINGS.items():
            head, _, body = framing.partition("\r\n\r\n")
            request = f"GET /hello HTTP/{version}\r\nHost: x\r\n{head}{chr(13) + chr(10) if head else ''}\r\n{body}"
            expected = statuses if version == "1.1" else statuses[:1]
            assert await _statuses(server, request.encode("latin-1") + LAST) == expected, framing


@pytest.mark.parametrize("paths", [set(), {b"/hello"}])
async def test_expect_continue_without_body(paths: set[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hypercorn_fixes, "FAST_PATHS", paths)
    async with door() as server:
        head = (
            b"GET /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n"
        )
        assert await _statuses(server, head) == [100, 200]


async def _statuses(server: Door, request: bytes) -> list[int]:
    """Send everything together, and byte by byte: both must give the same statuses."""
    async with await server.connect() as whole, await server.connect() as slow:
        await whole.send_all(request)
        for byte in request:
            with contextlib.suppress(trio.BrokenResourceError):  # it was refused, and the test continues
                await slow.send_all(bytes([byte]))
            await trio.lowlevel.checkpoint()
        results = []
        for stream in (whole, slow):
            received = bytearray()
            with trio.fail_after(60), contextlib.suppress(trio.BrokenResourceError):  # closed under our bytes
                async for piece in stream:
                    received += piece
            results.append([int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", received)])
    assert results[0] == results[1], request
    return results[0]
