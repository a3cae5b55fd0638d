"""A little web application as somebody may run in a workspace: HTTP/1.1 and WebSocket, told by the path what to do.

/echo…      JSON of the request as it arrived
/size       how many bytes the body had
/cookies    several Set-Cookie headers
/close      a body without a length, ended by closing
/endless    pieces for as long as the other end takes them; `app.sent` counts
/ticks      one piece, then another when `app.tick` is set
/early      an answer before the body was read
/broken     something that is no HTTP
/ws         a WebSocket that sends messages back
"""

from __future__ import annotations

import contextlib
import json
import queue
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

import h11
import trio
from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, BytesMessage, CloseConnection, Request, TextMessage
from wsproto.utilities import LocalProtocolError

PIECE = b"x" * 65536


@dataclass
class WebApp:
    port: int = 0
    connections: int = 0
    sent: int = 0
    tick: trio.Event = field(default_factory=trio.Event)
    left: trio.Event = field(default_factory=trio.Event)
    "Set when a client of /ticks or /endless went away."

    async def serve(self, stream: trio.SocketStream) -> None:
        self.connections += 1
        gone = (trio.BrokenResourceError, trio.ClosedResourceError, h11.ProtocolError, LocalProtocolError)
        with contextlib.suppress(*gone):
            async with stream:
                while await self._one(stream, connection := h11.Connection(h11.SERVER)):
                    if connection.our_state is not h11.DONE or connection.their_state is not h11.DONE:
                        return

    async def _one(self, stream: trio.SocketStream, connection: h11.Connection) -> bool:
        async def event() -> Any:
            while (found := connection.next_event()) is h11.NEED_DATA:
                connection.receive_data(await stream.receive_some(65536))
            return found

        head = await event()
        if not isinstance(head, h11.Request):
            return False
        path = head.target.decode().partition("?")[0]
        if path.endswith("/ws"):
            await self._websocket(stream, head)
            return False
        if path.endswith("/broken"):
            await stream.send_all(b"SSH-2.0-OpenSSH\r\n")
            return False
        if path.endswith("/lines"):
            await stream.send_all(b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 40_000 + b"content-length: 0\r\n\r\n")
            return False
        if path.endswith("/early"):
            await answer(stream, connection, 413, b"too much")
            return False
        size = 0
        while not isinstance(part := await event(), h11.EndOfMessage):
            size += len(part.data)
        await self._respond(stream, connection, head, path, size)
        return True

    async def _respond(
        self, stream: trio.SocketStream, connection: h11.Connection, head: h11.Request, path: str, size: int
    ) -> None:
        match path.rpartition("/")[2]:
            case "size":
                await answer(stream, connection, 200, str(size).encode())
            case "cookies":
                cookies = ("coder_session_token=stolen; Path=/", "a=1; Path=/; Domain=example.com", "b=2; Path=/x")
                fields = [("set-cookie", cookie) for cookie in cookies]
                fields += [("access-control-allow-origin", "*"), ("vary", "Origin"), ("clear-site-data", '"*"')]
                await answer(stream, connection, 200, b"ok", fields)
            case "close":
                await stream.send_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nuntil the end")
                await stream.aclose()
            case "endless" | "ticks" as kind:
                await send(stream, connection, h11.Response(status_code=200, headers=[]))
                try:
                    await (self._endless if kind == "endless" else self._ticks)(stream, connection)
                finally:
                    self.left.set()
            case _:
                text = {
                    "method": head.method.decode(),
                    "target": head.target.decode(),
                    "headers": [[name.decode(), value.decode()] for name, value in head.headers],
                    "size": size,
                }
                await answer(stream, connection, 200, json.dumps(text).encode())

    async def _endless(self, stream: trio.SocketStream, connection: h11.Connection) -> None:
        while True:
            await send(stream, connection, h11.Data(data=PIECE))
            self.sent += len(PIECE)

    async def _ticks(self, stream: trio.SocketStream, connection: h11.Connection) -> None:
        await send(stream, connection, h11.Data(data=b"one"))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._until_left, stream, nursery.cancel_scope)
            await self.tick.wait()
            nursery.cancel_scope.cancel()
        await send(stream, connection, h11.Data(data=b"two"))
        await send(stream, connection, h11.EndOfMessage())

    async def _until_left(self, stream: trio.SocketStream, scope: trio.CancelScope) -> None:
        with contextlib.suppress(trio.BrokenResourceError):
            await stream.receive_some(1)
        self.left.set()
        scope.cancel()

    async def _websocket(self, stream: trio.SocketStream, head: h11.Request) -> None:
        peer = WSConnection(ConnectionType.SERVER)
        peer.initiate_upgrade_connection(list(head.headers), head.target)
        for event in peer.events():
            if isinstance(event, Request):
                await stream.send_all(peer.send(AcceptConnection()))
        while True:
            peer.receive_data(await stream.receive_some(65536) or None)
            for event in peer.events():
                if isinstance(event, TextMessage | BytesMessage):
                    again: Any = type(event)
                    await stream.send_all(peer.send(again(event.data, message_finished=event.message_finished)))
                elif isinstance(event, CloseConnection):
                    await stream.send_all(peer.send(event.response()))
                    return


async def send(stream: trio.SocketStream, connection: h11.Connection, event: Any) -> None:
    await stream.send_all(connection.send(event) or b"")


async def answer(stream: Any, connection: Any, status: int, body: bytes, headers: Any = ()) -> None:
    fields = [*headers, ("content-length", str(len(body))), ("content-type", "text/plain")]
    for event in (h11.Response(status_code=status, headers=fields), h11.Data(data=body), h11.EndOfMessage()):
        await send(stream, connection, event)


@contextlib.asynccontextmanager
async def running_app() -> AsyncIterator[WebApp]:
    """The application on a free loopback port."""
    app = WebApp()
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    app.port = listeners[0].socket.getsockname()[1]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, app.serve, listeners)
        yield app
        nursery.cancel_scope.cancel()


@contextlib.contextmanager
def app_in_a_thread() -> Iterator[WebApp]:
    """For tests that run no trio themselves."""
    began: queue.Queue[tuple[WebApp, trio.Event, trio.lowlevel.TrioToken]] = queue.Queue()

    async def serve() -> None:
        async with running_app() as app:
            over = trio.Event()
            began.put((app, over, trio.lowlevel.current_trio_token()))
            await over.wait()

    thread = threading.Thread(target=trio.run, args=(serve,), daemon=True)
    thread.start()
    app, over, token = began.get(timeout=60)
    try:
        yield app
    finally:
        token.run_sync_soon(over.set)
        thread.join()
