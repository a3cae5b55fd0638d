"""Tiny pieces leave other tasks their turns, for every reader, and are not stored piece by piece.

Turns are counted in a task that only waits for them, while a reader has all of the data already.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, cast

import h11
import pytest
import trio
import trio.testing
from hypercorn.protocol.ws_stream import WebsocketBuffer
from wsproto.connection import Connection, ConnectionType

from coder.agent.network.http_api import MAX_BODY, _read_request
from coder.api.base.refusals import BadGateway
from coder.appproxy.apps.forwarding import BadUpstreamAnswerError as AppAnswerError
from coder.appproxy.apps.forwarding import _answer, _begin
from coder.appproxy.apps.upstream import AppConnection
from coder.appproxy.http.websocket_bounds import BoundedWSStream
from coder.base.exception_groups import single_failure
from coder.coderd.services.agents.agent_containers import _upgrade
from coder.net import http1
from coder.net.blocking_http import MAX_INTERIM, BadAnswerError, HttpConnection
from coder.net.bounded_http import PIECES, BoundedHttp
from coder.net.errors import HttpError, NetError
from coder.net.policy import DialPolicy
from coder.net.stream_exchange import exchange
from coder.net.websocket import MAX_FRAMES, WebSocketStream
from tests.arch.test_house import ROOT, SOURCES
from tests.kit.event_loop_probes import counted_turns, peer_says
from tests.kit.stand_ins.scripted_http_servers import odd_server

COUNT = 60 * PIECES
BODY = b"1\r\nx\r\n" * COUNT + b"0\r\n\r\n"
ANSWER = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + BODY
REQUEST = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + BODY


async def read_by_exchange() -> None:
    answer = await exchange(peer_says(ANSWER), "GET", "/")
    assert len(answer.body) == COUNT


async def read_refused_upgrade() -> None:
    with pytest.raises(BadGateway):
        await _upgrade(peer_says(ANSWER))


async def read_by_client() -> None:
    connection = http1._Connection(peer_says(ANSWER))
    await connection.send(h11.Request(method="GET", target="/", headers=[("Host", "x")]))
    await connection.send(h11.EndOfMessage())
    head = await connection.next_event()
    assert isinstance(head, h11.Response)
    answer = http1.StreamedResponse(connection, head)
    assert len([piece async for piece in answer.chunks()]) == COUNT


async def read_by_agent() -> None:
    request = await _read_request(BoundedHttp(h11.SERVER), peer_says(REQUEST), MAX_BODY)
    assert request is not None and len(request.body) == COUNT


async def read_by_app_proxy(message: bytes = ANSWER) -> None:
    to_app = AppConnection(peer_says(message))
    await to_app.send(h11.Request(method="GET", target="/", headers=[("Host", "x")]))
    await to_app.send(h11.EndOfMessage())
    browser = BoundedHttp(h11.SERVER)
    browser.receive_data(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    browser.next_event()
    visit = SimpleNamespace(connection=browser, stream=peer_says(b""), answered=False, has_body=False, ours=())
    app = SimpleNamespace(base_path="/", cors=None, extra=[])
    await _answer(cast("Any", visit), cast("Any", app), to_app)


async def read_beginning_by_app_proxy() -> None:
    to_app = AppConnection(peer_says(ANSWER))
    await to_app.send(h11.Request(method="GET", target="/", headers=[("Host", "x")]), h11.EndOfMessage())
    events = await _begin(to_app)
    assert len(events) > 10 * PIECES


READERS: list[Callable[[], Awaitable[None]]] = [
    read_by_exchange,
    read_refused_upgrade,
    read_by_client,
    read_by_agent,
    read_by_app_proxy,
    read_beginning_by_app_proxy,
]


# ---- frames of a WebSocket

EMPTY = b"\x02\x00" + b"\x00\x00" * (COUNT - 1)
"Empty frames of one message, without its end."
FRAMES = {"empty": EMPTY, "pongs": b"\x8a\x00" * COUNT, "messages": b"\x82\x01x" * COUNT}


async def _websocket(data: bytes, *, pieces: bool) -> None:
    socket = WebSocketStream(peer_says(data), client=True, max_message=1024)
    try:
        while (await socket.receive_some() if pieces else await socket.receive_message()) not in {None, b""}:
            pass
    except trio.BrokenResourceError:
        pass  # it ended without a close frame


async def read_empty_frames() -> None:
    await _websocket(EMPTY, pieces=False)


async def read_empty_stream_frames() -> None:
    await _websocket(EMPTY, pieces=True)


async def read_pongs() -> None:
    await _websocket(FRAMES["pongs"], pieces=False)


async def read_small_messages() -> None:
    await _websocket(FRAMES["messages"], pieces=False)


async def _api_stream(data: bytes) -> BoundedWSStream:
    stream = BoundedWSStream.__new__(BoundedWSStream)
    stream.connection, stream.scope = Connection(ConnectionType.CLIENT), cast("Any", {"coder_message_limit": 1024})
    stream.buffer, stream._events, stream._frames, stream._unanswered = WebsocketBuffer(1024), 0, 0, False
    stream.stream_id, stream.app_put = 1, None
    stream.connection.receive_data(data)

    async def send(_event: object) -> None:
        stream.closed = True

    stream.closed, stream.send = False, send
    await stream._handle_events()
    return stream


async def read_empty_frames_by_api() -> None:
    await _api_stream(EMPTY)


async def read_pongs_by_api() -> None:
    await _api_stream(FRAMES["pongs"])


READERS += [
    read_empty_frames,
    read_empty_stream_frames,
    read_pongs,
    read_small_messages,
    read_empty_frames_by_api,
    read_pongs_by_api,
]


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.__name__)
async def test_reader_yields_to_other_tasks(reader: Callable[[], Awaitable[None]]) -> None:
    async with counted_turns() as turns:
        await reader()
    assert turns.count > COUNT / PIECES / 2


async def test_message_frames_are_limited() -> None:
    """Frames count by number, not by size; each was stored separately."""
    data = EMPTY + b"\x00\x00" * MAX_FRAMES
    socket = WebSocketStream(peer_says(data), client=True, max_message=1024)
    assert await socket.receive_message() is None
    assert (socket.close_code, socket._partial) == (1009, b"")
    assert await socket.receive_message() is None
    assert (await _api_stream(data)).closed
    assert not (await _api_stream(EMPTY)).closed


@pytest.mark.parametrize(("first", "piece"), [(b"\x01", "\u00e9".encode()), (b"\x02", b"\xe9")])
async def test_message_pieces_share_buffer(first: bytes, piece: bytes) -> None:
    frame = bytes((len(piece),)) + piece
    socket = WebSocketStream(
        peer_says(first + frame + (b"\x00" + frame) * 900), client=True, max_message=901 * len(piece)
    )
    with pytest.raises(trio.BrokenResourceError):  # it ended too early
        await socket._receive(pieces=False)
        raise trio.BrokenResourceError
    assert socket._partial == piece * 901
    whole = first + frame + (b"\x00" + frame) * 899 + b"\x80" + frame
    for limit, expected in ((901 * len(piece), piece * 901), (901 * len(piece) - 1, None)):
        socket = WebSocketStream(peer_says(whole), client=True, max_message=limit)
        message = await socket.receive_message()
        assert (message.encode() if isinstance(message, str) else message) == expected


# ---- interim answers

HINT = b"HTTP/1.1 103 Early Hints\r\n\r\n"
FINE = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


async def _by_client(data: bytes) -> None:
    async def ask(policy: DialPolicy) -> None:
        async with http1.HttpClient(policy) as client:
            await client.request("GET", "/")

    await _request_to(data, ask)


async def _by_upgrade(data: bytes) -> None:
    await _request_to(data, lambda policy: http1.upgrade(policy, "/", []))


async def _request_to(data: bytes, ask: Callable[[DialPolicy], Awaitable[object]]) -> None:
    async def answer(stream: trio.SocketStream) -> None:
        async with stream:
            await stream.receive_some()
            with contextlib.suppress(trio.BrokenResourceError):
                await stream.send_all(data)

    with single_failure():
        async with trio.open_nursery() as nursery:
            (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
            nursery.start_soon(trio.serve_listeners, answer, [listener])
            try:
                await ask(DialPolicy(f"http://127.0.0.1:{listener.socket.getsockname()[1]}"))
            finally:
                nursery.cancel_scope.cancel()


async def _by_proxy(data: bytes) -> None:
    await read_by_app_proxy(data)


async def _by_exchange(data: bytes) -> None:
    await exchange(peer_says(data), "GET", "/")


async def _by_container_watch(data: bytes) -> None:
    try:
        await _upgrade(peer_says(data))
    except BadGateway as error:
        assert "does not report containers" in str(error)


async def _by_command(data: bytes) -> None:
    def ask() -> None:
        with odd_server() as server:
            server.answer = lambda _method, _path: data
            host, _, port = server.url.removeprefix("http://").partition(":")
            with contextlib.closing(HttpConnection((host, int(port)), timeout=60)) as connection:
                connection.exchange("GET", "/", {}, None)

    await trio.to_thread.run_sync(ask)


@pytest.mark.parametrize(
    "reader",
    [_by_client, _by_upgrade, _by_proxy, _by_exchange, _by_container_watch, _by_command],
    ids=lambda one: one.__name__,
)
async def test_interim_answers_are_limited(reader: Callable[[bytes], Awaitable[None]]) -> None:
    try:
        await reader(HINT * MAX_INTERIM + FINE)
    except HttpError:
        assert reader is _by_upgrade  # 200 is no upgrade
    with pytest.raises((NetError, h11.RemoteProtocolError, BadAnswerError, AppAnswerError)):
        await reader(HINT * (MAX_INTERIM + 1) + FINE)


def test_every_http_reader_yields() -> None:
    """A reader that does not use `read_event` has to yield to other tasks itself."""
    taking = []
    for path in SOURCES:
        text = path.read_text().replace("super().next_event()", "")  # forwards the events its caller takes
        if ".next_event()" in text and path.name != "bounded_http.py":
            tree = ast.parse(text)
            awaited = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Await)}
            calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and id(node) not in awaited]
            if any(isinstance(call.func, ast.Attribute) and call.func.attr == "next_event" for call in calls):
                taking.append(path)
    assert len(taking) > 2
    assert not [str(path.relative_to(ROOT)) for path in taking if ".rest()" not in path.read_text()]
