"""Requests of one piece: the same reading as h11's, and the same bytes as through the parser."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import h11
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from coder.appproxy.http import hypercorn_fixes
from coder.appproxy.http.listener import HttpServer
from coder.appproxy.http.request_framing import OneFraming
from coder.appproxy.http.simple_requests import MAX_HEAD, NotSimple, reply_of, simple_head
from coder.net.blocking_http import HEAD_LINES

GET = b"GET /fast HTTP/1.1\r\nHost: x\r\n\r\n"
NOT_SIMPLE = {
    "another method": b"HEAD / HTTP/1.1\r\nHost: x\r\n\r\n",
    "another version": b"GET / HTTP/1.0\r\nHost: x\r\n\r\n",
    "an absolute target": b"GET http://x/ HTTP/1.1\r\nHost: x\r\n\r\n",
    "half a head": b"GET / HTTP/1.1\r\nHost: x\r\n",
    "no host": b"GET / HTTP/1.1\r\nA: x\r\n\r\n",
    "two hosts": b"GET / HTTP/1.1\r\nHost: x\r\nhost: x\r\n\r\n",
    "a length": b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n",
    "two lengths": b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n",
    "another zero": b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 00\r\n\r\n",
    "a transfer coding": b"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n",
    "an upgrade": b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    "an expectation": b"GET / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n\r\n",
    "an end": b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    "a next request": GET + GET,
    "a byte more": GET + b"\n",
    "a folded line": b"GET / HTTP/1.1\r\nHost: x\r\n y\r\n\r\n",
    "a space before the colon": b"GET / HTTP/1.1\r\nHost : x\r\n\r\n",
    "a bare line feed": b"GET / HTTP/1.1\nHost: x\n\n",
    "a control character": b"GET / HTTP/1.1\r\nHost: x\x01\r\n\r\n",
    "other bytes": b"GET / HTTP/1.1\r\nHost: \xff\r\n\r\n",
    "a long head": b"GET / HTTP/1.1\r\nHost: x\r\nA: %s\r\n\r\n" % (b"x" * MAX_HEAD),
    "many lines": b"GET / HTTP/1.1\r\nHost: x\r\n" + b"a:\r\n" * HEAD_LINES + b"\r\n",
    "nothing": b"",
}


@pytest.mark.parametrize("data", NOT_SIMPLE.values(), ids=NOT_SIMPLE.keys())
def test_other_bytes_are_not_simple(data: bytes) -> None:
    assert simple_head(data) is None


_NAMES = st.sampled_from(
    [b"Host", b"host", b"Accept", b"X-A", b"Cookie", b"connection", b"Content-Length", b"TE", b"a b"]
)
_VALUES = st.one_of(
    st.sampled_from([b"x", b"", b" x ", b"\tx y\t", b"keep-alive", b"Keep-Alive", b"close", b"0", b"a, b"]),
    st.binary(max_size=6),
)
_TARGETS = st.one_of(st.sampled_from([b"/", b"/a?b=c", b"//a", b"/%00", b"*"]), st.binary(max_size=5))


@given(_TARGETS, st.lists(st.tuples(_NAMES, _VALUES), max_size=5), st.sampled_from([b"\r\n", b"\n"]))
def test_simple_head_reads_like_h11(target: bytes, fields: list[tuple[bytes, bytes]], end: bytes) -> None:
    lines = [b"GET %s HTTP/1.1" % target, *(b"%s:%s" % pair for pair in fields), b"", b""]
    data = end.join(lines)
    if (simple := simple_head(data)) is None:
        return
    parser = OneFraming(h11.SERVER)
    parser.receive_data(data)
    read = parser.next_event()
    assert isinstance(read, h11.Request)
    assert (simple.method, simple.target, simple.http_version) == (read.method, read.target, read.http_version)
    assert simple.headers._full_items == read.headers._full_items
    assert type(parser.next_event()) is h11.EndOfMessage
    assert parser.next_event() is h11.NEED_DATA
    assert parser.their_state is h11.DONE


def test_ordinary_head_is_simple() -> None:
    head = simple_head(b"GET /a?b HTTP/1.1\r\nHost: x\r\nConnection: Keep-Alive\r\nAccept:\t*/* \r\n\r\n")
    assert head is not None
    assert list(head.headers) == [(b"host", b"x"), (b"connection", b"Keep-Alive"), (b"accept", b"*/*")]


def test_head_without_body_is_simple() -> None:
    assert simple_head(b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n") is not None


# ---- on a connection


class Door:
    def __init__(self, port: int, stopping: trio.Event) -> None:
        self.port, self.stopping = port, stopping
        self.opened: list[trio.SocketStream] = []

    async def connect(self) -> trio.SocketStream:
        stream = await trio.open_tcp_stream("127.0.0.1", self.port)
        self.opened.append(stream)
        return stream


@contextlib.asynccontextmanager
async def door(app: Any, exchange: Any = None) -> AsyncIterator[Door]:
    async def no_links(*_: Any) -> None:
        raise AssertionError

    is_exchange = (lambda head: head.target == b"/app") if exchange is not None else (lambda _head: False)
    server = HttpServer(app, is_exchange, exchange or no_links, is_exchange=is_exchange)
    (tcp,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    stopping = trio.Event()
    async with trio.open_nursery() as nursery:
        await nursery.start(server.serve, [tcp], stopping)
        opened = Door(tcp.socket.getsockname()[1], stopping)
        yield opened
        for stream in opened.opened:
            await trio.aclose_forcefully(stream)
        nursery.cancel_scope.cancel()


@pytest.fixture
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hypercorn_fixes, "FAST_PATHS", {b"/fast"})


class Answering:
    """Application with one response; counts the requests that come from the parser and the others."""

    def __init__(self, status: int = 200, body: bytes = b"ok", *, is_simple: bool = True) -> None:
        self.status, self.body, self.is_simple = status, body, is_simple
        self.simple = self.parsed = 0

    async def __call__(self, scope: Any, _receive: Any, send: Any) -> None:
        if scope.get("coder_simple"):
            if not self.is_simple:
                raise NotSimple
            self.simple += 1
        else:
            self.parsed += 1
        if self.status == 500:
            raise RuntimeError("the application fails")
        headers = [(b"X-Path", scope["raw_path"]), (b"content-length", b"%d" % len(self.body))]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": False})


async def _response(stream: trio.SocketStream, request: bytes, pieces: int) -> bytes:
    """Send a request in so many pieces; return the response, or all bytes when the connection ends."""
    for number in range(pieces):
        part = len(request) // pieces
        await stream.send_all(request[number * part : None if number == pieces - 1 else (number + 1) * part])
        if pieces > 1:
            await trio.sleep(0.02)  # of its own segment: the server may read it before the next
    received = b""
    with trio.fail_after(60):
        while not received.endswith((b"\r\n\r\n", b"ok")):
            piece = bytes(await stream.receive_some())
            received += piece
            if not piece:
                break
    return received


def _undated(response: bytes) -> list[bytes]:
    return [line for line in response.split(b"\r\n") if not line.startswith(b"date: ")]


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize(("status", "body"), [(200, b"ok"), (404, b"ok"), (304, b""), (204, b""), (500, b"")])
async def test_both_ways_send_equal_bytes(status: int, body: bytes) -> None:
    app = Answering(status, body)
    async with door(app) as opened:
        simple = await _response(await opened.connect(), GET, 1)
        parsed = await _response(await opened.connect(), b"GET /fast HTTP/1.1\r\nHost: x\r\nTE: a\r\n\r\n", 1)
    assert (app.simple, app.parsed) == (1, 1)
    assert _undated(simple) == _undated(parsed)
    assert b"\r\ndate: " in simple


@pytest.mark.usefixtures("fast")
async def test_failed_request_ends_connection() -> None:
    """Its response says `connection: close`: the client reads to the end."""

    async def fail(*_words: Any) -> None:
        raise RuntimeError("broken")

    async with door(fail) as opened:
        stream = await opened.connect()
        await stream.send_all(GET)
        received = b""
        with trio.fail_after(60):
            while piece := bytes(await stream.receive_some()):
                received += piece
    assert received.startswith(b"HTTP/1.1 500 ")
    assert b"connection: close" in received


@pytest.mark.parametrize(
    ("headers", "body", "is_framed"),
    [
        ([(b"content-length", b"2")], b"ok", True),
        ([(b"content-length", b"5")], b"ok", False),
        ([], b"ok", False),
        ([(b"content-length", b"2"), (b"content-length", b"2")], b"ok", False),
        ([(b"content-length", b"2"), (b"x", b"b\r\nset-cookie: evil=1")], b"ok", False),
        ([(b"content-length", b"2"), (b"x\n", b"b")], b"ok", False),
        ([(b"content-length", b"2"), (b"x", b"\0")], b"ok", False),
    ],
)
async def test_unframed_response_is_an_error(headers: list[tuple[bytes, bytes]], body: bytes, is_framed: bool) -> None:
    async def answer(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    status, _, _ = await reply_of(answer, {"path": "/fast"})
    assert status == (200 if is_framed else 500)


@pytest.mark.usefixtures("fast")
async def test_connection_mixes_both_ways() -> None:
    app = Answering()
    async with door(app) as opened:
        stream = await opened.connect()
        for pieces in (1, 3, 1, 3):
            assert (await _response(stream, GET, pieces)).startswith(b"HTTP/1.1 200 \r\n")
        pipelined = GET * 2
        await stream.send_all(pipelined)
        received = b""
        while received.count(b"HTTP/1.1 200") < 2 or not received.endswith(b"ok"):
            received += await stream.receive_some()
    assert app.simple >= 2
    assert app.simple + app.parsed == 6


@pytest.mark.usefixtures("fast")
async def test_request_of_another_application_is_parsed() -> None:
    app = Answering(is_simple=False)
    async with door(app) as opened:
        stream = await opened.connect()
        for _ in range(2):
            assert (await _response(stream, GET, 1)).startswith(b"HTTP/1.1 200 \r\n")
    assert (app.simple, app.parsed) == (0, 2)


@pytest.mark.usefixtures("fast")
async def test_long_response_arrives_whole() -> None:
    body = bytes(8 << 20) + b"ok"
    async with door(Answering(body=body)) as opened:
        stream = await opened.connect()
        response = await _response(stream, GET, 1)
        assert response.partition(b"\r\n\r\n")[2] == body
        assert (await _response(stream, GET, 1)).partition(b"\r\n\r\n")[2] == body


@pytest.mark.usefixtures("fast")
async def test_shutdown_ends_idle_connection() -> None:
    async with door(Answering()) as opened:
        stream = await opened.connect()
        assert await _response(stream, GET, 1)
        opened.stopping.set()
        with trio.fail_after(60):
            assert await stream.receive_some() == b""


async def test_exchanges_share_one_connection() -> None:
    """An application's proxy returns the bytes that follow; they are served next."""
    heads: list[bytes] = []

    async def exchange(head: h11.Request, remote: str, secure: bool, stream: Any, trailing: bytes) -> bytes | None:
        assert (remote, secure, trailing) == ("127.0.0.1", False, b"")
        heads.append(head.target)
        await stream.send_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
        return b"GET /app HTTP/1.1\r\nHost: x\r\n\r\n" if len(heads) == 2 else None if len(heads) == 4 else b""

    async with door(Answering(), exchange) as opened:
        stream = await opened.connect()
        for count in (1, 3, 4):
            await stream.send_all(b"GET /app HTTP/1.1\r\nHost: x\r\n\r\n")
            while len(heads) < count:
                assert await stream.receive_some()
        assert heads == [b"/app"] * 4
        await stream.send_eof()
        with trio.fail_after(60):
            while await stream.receive_some():
                pass
