"""Connections with excessive cost: bodies after a response, bodies in tiny chunks, disconnected peers.

The server's work is counted: events parsed, requests served, bytes read.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import h11
import pytest
import trio
import trio.testing
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.events import RawData, Updated
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ConnectionState

from coder.appproxy.http import listener
from coder.appproxy.http.hypercorn_fixes import LINGER_BYTES, AnsweredEarly, PatientServer, server_config
from coder.appproxy.http.listener import HttpServer
from coder.appproxy.http.request_framing import FRAMING_SLACK
from coder.base.log import also
from coder.net.bounded_http import PIECES, BoundedHttp
from tests.unit.appproxy.http.test_tls import certificate

Application = Callable[[Any, Any, Any], Awaitable[None]]
POST = b"POST / HTTP/1.1\r\nHost: x\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
TINY = b"1\r\n \r\n"
QUEUED = 11
"""Pieces of a body after which its application has to take one, or the reader waits."""


@contextlib.asynccontextmanager
async def serving(app: Application, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """Yield the port of a server. At the end all its connections must close without being cancelled."""

    async def no_links(*_: Any) -> None:
        raise AssertionError

    server = HttpServer(app, lambda _: False, no_links)
    (tcp,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port, stopping = tcp.socket.getsockname()[1], trio.Event()
    opened = tcp if tls is None else trio.SSLListener(tcp, tls, https_compatible=True)
    async with trio.open_nursery() as nursery:
        await nursery.start(server.serve, [opened], stopping)
        yield port
        stopping.set()
        with trio.fail_after(60):
            await server.drained()
        nursery.cancel_scope.cancel()


@pytest.fixture(autouse=True)
def endless_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "SHUTDOWN_GRACE", 3600.0)


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Record everything that servers parse."""
    parsed: list[Any] = []
    plain = BoundedHttp.next_event

    def next_event(connection: BoundedHttp) -> Any:
        event = plain(connection)
        if connection.our_role is h11.SERVER and event is not h11.NEED_DATA:
            parsed.append(event)
        return event

    monkeypatch.setattr(BoundedHttp, "next_event", next_event)
    return parsed


async def answer(send: Any, status: int = 200, body: bytes = b"done") -> None:
    headers = [(b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})


async def refusing(_scope: Any, _receive: Any, send: Any) -> None:
    """Respond without reading the body."""
    await answer(send, 413, b"too much")


async def reading(_scope: Any, receive: Any, send: Any) -> None:
    while (message := await receive())["type"] == "http.request" and message["more_body"]:
        pass
    if message["type"] == "http.request":
        await answer(send)


async def read_to_end(stream: trio.abc.ReceiveStream) -> bytes:
    received = bytearray()
    with trio.fail_after(60), contextlib.suppress(trio.BrokenResourceError):
        async for piece in stream:
            received += piece
    return bytes(received)


async def send_if_taken(stream: trio.abc.SendStream, data: bytes) -> None:
    with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):
        await stream.send_all(data)


async def close_hard(stream: trio.SocketStream) -> None:
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    await trio.aclose_forcefully(stream)


# ---- bodies


async def test_answered_body_is_not_parsed(events: list[Any]) -> None:
    async with serving(refusing) as port, await trio.open_tcp_stream("127.0.0.1", port) as stream:
        await send_if_taken(stream, CHUNKED + TINY * 60_000)
        assert (await read_to_end(stream)).startswith(b"HTTP/1.1 413 ")
    assert len(events) <= 2 * PIECES * QUEUED


async def test_body_after_response_is_read_briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes are counted from the moment the response is sent."""
    read: list[int] = []
    answered_at: list[int] = []
    plain_receive, plain_send = trio.SocketStream.receive_some, PatientServer.protocol_send

    async def receive_some(stream: Any, max_bytes: int | None = None) -> Any:
        data = await plain_receive(stream, max_bytes)
        read.append(len(data))
        return data

    async def protocol_send(server: PatientServer, event: Any) -> None:
        await plain_send(server, event)
        if isinstance(event, AnsweredEarly):
            answered_at.append(len(read))

    monkeypatch.setattr(PatientServer, "protocol_send", protocol_send)
    monkeypatch.setattr(trio.SocketStream, "receive_some", receive_some)
    async with serving(refusing) as port:
        client = trio.socket.socket()  # not a stream: its reads would count as the server's
        with client:
            await client.connect(("127.0.0.1", port))
            await client.send(POST + b"Content-Length: 100000000\r\n\r\n")
            with contextlib.suppress(OSError):
                while True:
                    await client.send(bytes(1 << 20))
            assert (await client.recv(1 << 16)).startswith(b"HTTP/1.1 413 ")
    (start,) = answered_at
    assert 0 < sum(read[start:]) <= LINGER_BYTES


@pytest.mark.parametrize("size", [1_000_000, 30_000_000])
@pytest.mark.parametrize("secure", [False, True])
async def test_response_reaches_uploading_client(secure: bool, size: int, tmp_path: Path) -> None:
    context, trusting = None, ssl.create_default_context()
    if secure:
        files = certificate(tmp_path, "one.test")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*files)
        trusting.load_verify_locations(files[0])
    async with serving(refusing, context) as port:
        stream: Any = await trio.open_tcp_stream("127.0.0.1", port)
        if secure:
            stream = trio.SSLStream(stream, trusting, server_hostname="one.test", https_compatible=True)
        async with trio.open_nursery() as nursery:
            await stream.send_all(POST + b"Content-Length: %d\r\n\r\n" % size)
            nursery.start_soon(send_if_taken, stream, bytes(size))
            received = b""
            with trio.fail_after(60):
                while not received.endswith(b"too much"):
                    received += (piece := await stream.receive_some())
                    assert piece, received
            assert received.startswith(b"HTTP/1.1 413 ") and b"connection: close" in received
            nursery.cancel_scope.cancel()
        await trio.aclose_forcefully(stream)


async def test_tiny_chunks_are_refused(events: list[Any]) -> None:
    async with serving(reading) as port, await trio.open_tcp_stream("127.0.0.1", port) as stream:
        await send_if_taken(stream, CHUNKED + TINY * 60_000)
        assert (await read_to_end(stream)).startswith(b"HTTP/1.1 413 ")
    assert len(events) <= FRAMING_SLACK // 4 + 2


async def test_small_chunks_reach_application_together() -> None:
    """A message to the application costs as much as parsing twenty chunks."""
    taken: list[bytes] = []

    async def app(_scope: Any, receive: Any, send: Any) -> None:
        while (message := await receive())["more_body"]:
            taken.append(message["body"])
        await answer(send)

    async with serving(app) as port, await trio.open_tcp_stream("127.0.0.1", port) as stream:
        await stream.send_all(CHUNKED + b"6\r\n123456\r\n" * 10 * PIECES + b"0\r\n\r\n")
        with trio.fail_after(60):
            assert (await stream.receive_some()).startswith(b"HTTP/1.1 200 ")
    assert b"".join(taken) == b"123456" * 10 * PIECES
    assert len(taken) <= 12  # and one for each read


@pytest.mark.parametrize(
    "chunk", [b"1\r\n \r\n" * 1000, b"6\r\n123456\r\n" * 10_000, b"10000\r\n%s\r\n" % bytes(65_536)]
)
async def test_ordinary_chunks_are_served(chunk: bytes) -> None:
    async with serving(reading) as port, await trio.open_tcp_stream("127.0.0.1", port) as stream:
        for _ in range(2):  # on one connection: each body is measured separately
            await stream.send_all(CHUNKED + chunk + b"0\r\n\r\n")
            with trio.fail_after(60):
                assert (await stream.receive_some()).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("count", [PIECES * pieces + 1 for pieces in range(QUEUED - 3, QUEUED + 2)])
async def test_unread_body_frees_its_reader(count: int) -> None:
    """The body arrived completely, and its application took none of the pieces, which fill the queue."""

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await trio.testing.wait_all_tasks_blocked()
        await answer(send)

    async with serving(app) as port, await trio.open_tcp_stream("127.0.0.1", port) as stream:
        await stream.send_all(CHUNKED + TINY * count + b"0\r\n\r\n")
        with trio.fail_after(60):
            received = await stream.receive_some()
            assert received.startswith(b"HTTP/1.1 200 ")
            if b"connection: close" not in received:
                await stream.send_all(GET)
                assert (await stream.receive_some()).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("count", [1, PIECES * QUEUED + 30])
async def test_unread_body_frees_its_connection(count: int) -> None:
    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await trio.testing.wait_all_tasks_blocked()  # the reader waits for room, too
        await answer(send, 413, b"too much")

    async with serving(app) as port, await trio.open_tcp_stream("127.0.0.1", port) as stream:
        await stream.send_all(CHUNKED + TINY * count)
        assert (await read_to_end(stream)).endswith(b"too much")


# ---- disconnected peers


@pytest.mark.parametrize("count", [0, PIECES * QUEUED + 30])
async def test_failed_answer_frees_its_connection(count: int) -> None:
    """No reader takes the pieces of its body."""
    started, ended = trio.Event(), trio.Event()

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        started.set()
        await ended.wait()
        await trio.testing.wait_all_tasks_blocked()  # the reader waits for room, too
        await answer(send, body=bytes(1 << 20))

    async with serving(app) as port:
        stream = await trio.open_tcp_stream("127.0.0.1", port)
        await stream.send_all(CHUNKED + TINY * count)
        await started.wait()
        await close_hard(stream)
        ended.set()


async def test_broken_connection_serves_no_more(events: list[Any]) -> None:
    served: list[int] = []
    started, ended = trio.Event(), trio.Event()

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        served.append(1)
        started.set()
        await ended.wait()
        await answer(send)

    async with serving(app) as port:
        stream = await trio.open_tcp_stream("127.0.0.1", port)
        await stream.send_all(GET * 1500)
        await started.wait()
        await close_hard(stream)
        ended.set()
    assert len(served) == 1
    assert len(events) <= 3


async def test_interrupted_download_frees_pipelined_connection() -> None:
    """The reader waits for the end of the first response before it takes the second request."""
    started = trio.Event()

    async def app(_scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        started.set()
        async with trio.open_nursery() as nursery:

            async def watch() -> None:
                while (await receive())["type"] != "http.disconnect":
                    pass
                nursery.cancel_scope.cancel()

            nursery.start_soon(watch)
            while True:
                await send({"type": "http.response.body", "body": bytes(1 << 16), "more_body": True})

    async with serving(app) as port:
        stream = await trio.open_tcp_stream("127.0.0.1", port)
        await stream.send_all(GET * 2)
        await started.wait()
        await close_hard(stream)


async def test_close_fails_no_concurrent_write(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reader refuses half a body while the application responds and closes the connection: of two tasks that
    send, neither fails."""
    refusing_body, closing = trio.Event(), trio.Event()
    failures: list[Any] = []
    plain_send = PatientServer.protocol_send

    async def protocol_send(server: PatientServer, event: Any) -> None:
        if isinstance(event, RawData) and event.data.startswith(b"HTTP/1.1 400 "):
            refusing_body.set()
            await closing.wait()
        await plain_send(server, event)

    async def send_eof(stream: trio.SocketStream) -> None:
        with stream._send_conflict_detector:
            closing.set()
            for _ in range(10):  # turns of the scheduler, in which the other task comes to its write
                await trio.lowlevel.checkpoint()
            with contextlib.suppress(OSError):
                stream.socket.shutdown(socket.SHUT_WR)

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await refusing_body.wait()
        await answer(send)

    monkeypatch.setattr(PatientServer, "protocol_send", protocol_send)
    monkeypatch.setattr(trio.SocketStream, "send_eof", send_eof)
    with also(lambda *line: failures.append(line)):
        async with serving(app) as port:
            client = trio.socket.socket()  # not a stream: it would end like the server's
            with client:
                await client.connect(("127.0.0.1", port))
                await client.send(POST + b"Content-Length: 10\r\n\r\nhalf")
                client.shutdown(socket.SHUT_WR)
                with trio.fail_after(60), contextlib.suppress(OSError):
                    while await client.recv(1 << 16):
                        pass
    assert closing.is_set()
    assert not failures


async def test_request_at_the_end_of_the_idle_time(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection stays, and so does its limit."""
    config, (ours, _) = server_config(), trio.testing.memory_stream_pair()
    server = PatientServer(ASGIWrapper(reading), config, WorkerContext(None), ConnectionState({}), cast("Any", ours))
    closed_at: list[float] = []

    async def close() -> None:
        await trio.lowlevel.checkpoint()
        closed_at.append(trio.current_time())

    monkeypatch.setattr(server, "_initiate_server_close", close)
    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(server.watch_idle)
        await trio.testing.wait_all_tasks_blocked()
        autojump_clock.jump(config.keep_alive_timeout)
        server._idle_timer.cancel()  # what its deadline does before the next turn
        await server.protocol_send(Updated(idle=False))
        await trio.sleep(10)
        assert closed_at == []
        await server.protocol_send(Updated(idle=True))
    assert closed_at == [began + 2 * config.keep_alive_timeout + 10]
