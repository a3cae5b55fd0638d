"""WebSockets of the API are bounded: no compression, messages of a route's size, an end for protocol errors."""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from types import SimpleNamespace
from typing import cast
from urllib.parse import urlsplit

import pytest
import trio
from hypercorn.config import Config
from hypercorn.protocol.events import Data, Event, Request, Response
from hypercorn.typing import AppWrapper, ConnectionState, TaskGroup, WorkerContext

from coder.appproxy.http import listener, websocket_bounds
from coder.appproxy.http.request_bounds import MAX_PARAMETERS, PUBLIC_LIMIT
from coder.coderd.http.server.declarations import LIMIT, route_of
from tests.kit.agents.scripted_agent import eventually
from tests.kit.api.api_description import application
from tests.kit.server.server_in_process import World, running_coderd

HANDSHAKE = (
    "GET {path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nCoder-Session-Token: {token}\r\n"
    "Sec-WebSocket-Extensions: {extensions}\r\n\r\n"
)
DEFLATE = "permessage-deflate; client_max_window_bits"
ECHO, TELLS = "/api/v2/debug/ws", "/api/v2/derp-map"
TEXT, BINARY, CONTINUATION, CLOSE = 1, 2, 0, 8
COMPRESSED = 0x40


def frame(opcode: int, data: bytes, *, final: bool = True, bits: int = 0) -> bytes:
    """Return a client's frame with a mask of zeros."""
    head = bytes(((0x80 if final else 0) | bits | opcode,))
    size = len(data)
    length = (
        bytes((0x80 | size,))
        if size < 126
        else b"\xfe" + size.to_bytes(2, "big")
        if size < 1 << 16
        else b"\xff" + size.to_bytes(8, "big")
    )
    return head + length + bytes(4) + data


@contextlib.asynccontextmanager
async def open_websocket(
    world: World, path: str, extensions: str = DEFLATE
) -> AsyncIterator[tuple[trio.SocketStream, bytes]]:
    """Yield the connection after the handshake, and the response's head."""
    parts = urlsplit(world.url)
    async with await trio.open_tcp_stream(parts.hostname or "", parts.port or 0) as stream:
        ask = HANDSHAKE.format(path=path, host=parts.netloc, token=world.token, extensions=extensions)
        await stream.send_all(ask.encode())
        head = b""
        with trio.fail_after(60):
            while b"\r\n\r\n" not in head:
                piece = await stream.receive_some(1)
                assert piece, head
                head += piece
        yield stream, head


async def closed_with(stream: trio.SocketStream) -> int:
    """Return the code of the server's close frame; earlier frames are skipped."""
    data = b""
    with trio.fail_after(60), contextlib.suppress(trio.BrokenResourceError):
        while piece := await stream.receive_some(65536):
            data += piece
    while data:
        size, at = data[1], 2
        if size > 125:
            at = 4 if size == 126 else 10
            size = int.from_bytes(data[2:at], "big")
        if data[0] & 0xF == CLOSE:
            return int.from_bytes(data[at : at + 2], "big")
        data = data[at + size :]
    return 0


EXTENSIONS = [DEFLATE, "permessage-deflate; server_max_window_bits=x", "\xff;;,="]


async def test_compression_is_never_negotiated() -> None:
    packer = zlib.compressobj(wbits=-15)
    bomb = packer.compress(bytes(8 << 20)) + packer.flush(zlib.Z_SYNC_FLUSH)
    async with running_coderd(first_user=True) as world:
        for extensions in EXTENSIONS:
            async with open_websocket(world, ECHO, extensions) as (stream, head):
                assert b" 101 " in head.splitlines()[0], extensions
                assert b"extensions" not in head.lower(), extensions
                await stream.send_all(frame(BINARY, bomb, bits=COMPRESSED))
                assert await closed_with(stream) == 1002, extensions


@pytest.mark.parametrize("pieces", [1, 50])
async def test_oversized_message_ends_connection(pieces: int) -> None:
    """Also a message without end: the received bytes count."""
    async with running_coderd(first_user=True) as world, open_websocket(world, ECHO) as (stream, _):
        piece = bytes(PUBLIC_LIMIT // pieces + 1)
        with contextlib.suppress(trio.BrokenResourceError):
            await stream.send_all(frame(BINARY, piece, final=pieces == 1))
            for _ in range(pieces - 1):
                await stream.send_all(frame(CONTINUATION, piece, final=False))
        assert await closed_with(stream) == 1009


async def test_send_only_stream_drops_messages() -> None:
    """The end behind them is still noticed."""
    async with running_coderd(first_user=True) as world:
        metrics = world.ctx.services.metrics

        async def is_open() -> bool:
            return f'coderd_api_concurrent_websockets{{path="{TELLS}"}} 1' in await metrics.exposition()

        async def is_closed() -> bool:
            return not await is_open()

        async with open_websocket(world, TELLS) as (stream, _):
            for _ in range(100):
                await stream.send_all(frame(TEXT, b"x" * 1000))
            assert await is_open()
        await eventually(is_closed)


@pytest.mark.parametrize(
    ("target", "origin", "status"),
    [(TELLS, "https://evil.test", b"403"), (f"{TELLS}?{'&' * MAX_PARAMETERS}", "", b"414")],
)
async def test_refused_handshake_frees_connection(
    target: str, origin: str, status: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each refused one used to keep its connection and the whole request until the server stopped, which waited for
    it."""
    monkeypatch.setattr(listener, "SHUTDOWN_GRACE", 3600.0)
    with trio.fail_after(60):
        async with running_coderd() as world:
            parts = urlsplit(world.url)
            async with await trio.open_tcp_stream(parts.hostname or "", parts.port or 0) as stream:
                ask = HANDSHAKE.format(path=target, host=parts.netloc, token="", extensions="")
                ask = ask.replace("\r\n\r\n", f"\r\nOrigin: {origin or world.url}\r\n\r\n")
                await stream.send_all(ask.encode())
                assert (await stream.receive_some(65536)).split()[1] == status


def test_only_listening_streams_take_messages() -> None:
    app = application()
    taking = {}
    for rule in app.url_map.iter_rules():
        declaration = route_of(app.view_functions[rule.endpoint])
        if rule.websocket and declaration is not None and declaration.limit:
            taking[rule.rule.rpartition("/")[2]] = declaration.limit
    assert taking == {"ws": PUBLIC_LIMIT, "dynamic-parameters": LIMIT, "pty": LIMIT}
    assert websocket_bounds.PING > 0


@pytest.mark.parametrize("first", ["client", "application"])
async def test_early_bytes_get_one_answer(first: str) -> None:
    """The connection and the application answer in different tasks, each while the other one waits to send."""
    answers: list[int] = []

    async def send(event: Event) -> None:
        if not isinstance(event, Response):
            return
        answers.append(event.status_code)
        if len(answers) == 1 and first == "client":
            await stream.app_send({"type": "websocket.close", "code": 1000, "reason": None})
        elif len(answers) == 1:
            await stream.handle(Data(1, b"0\r\n\r\n"))

    context = cast("WorkerContext", SimpleNamespace())
    tasks = cast("TaskGroup", SimpleNamespace(spawn_app=_no_app))
    stream = websocket_bounds.BoundedWSStream(
        cast("AppWrapper", None), Config(), context, tasks, False, None, None, send, 1
    )
    head = [(b"host", b"x"), (b"upgrade", b"websocket"), (b"connection", b"upgrade"), (b"sec-websocket-version", b"13")]
    head.append((b"sec-websocket-key", b"AAAAAAAAAAAAAAAAAAAAAA=="))
    await stream.handle(Request(1, head, "1.1", "GET", b"/", ConnectionState({})))
    if first == "client":
        await stream.handle(Data(1, b"0\r\n\r\n"))
    else:
        await stream.app_send({"type": "websocket.close", "code": 1000, "reason": None})
    assert answers == [400 if first == "client" else 403]


async def _no_app(*_words: object) -> Callable[[object], Awaitable[None]]:
    async def put(_message: object) -> None:
        pass

    return put
