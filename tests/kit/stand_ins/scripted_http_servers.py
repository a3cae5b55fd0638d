"""HTTP servers with scripted answers: a workspace's web app, agentapi, and one that always answers oddly.

`OddServer` gives every request the same answer, on a thread of its own: for programs that must survive answers of a
proxy, an older server or a sign-in page. `FakeApp` speaks for a task: GET status, POST message, GET messages. `WebApp`
speaks HTTP/1.1 and WebSocket and chooses by the path:

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

import base64
import contextlib
import hashlib
import json
import queue
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
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


Reply = Callable[[str, str], bytes]
"""(method, path) -> the whole answer, head and body; b"" closes the connection without a word."""


def reply(body: str, *, status: str = "200 OK", kind: str = "application/json", is_coder: bool = True) -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body.encode())}\r\n"
    if is_coder:
        head += "X-Coder-Build-Version: v2.34.0\r\n"  # by which a server identifies itself
    return f"{head}Connection: close\r\n\r\n{body}".encode()


@dataclass(slots=True)
class OddServer:
    """Its address, what it answers next and what it was asked."""

    url: str
    answer: Reply
    asked: list[tuple[str, str]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    "Of the requests that had one."
    upgrades: bool = False
    "A WebSocket is opened to whoever asks for one; the parts of a list are its messages, and then it ends."
    failed: Exception | None = None
    "What went wrong in `answer`: the test's own fault."


@contextmanager
def odd_server(patience: int = 400) -> Iterator[OddServer]:
    """Answers until the block ends. `patience`: after so many requests it closes without a word, which ends loops."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = OddServer(f"http://127.0.0.1:{listener.getsockname()[1]}", lambda _method, _path: b"")
    thread = threading.Thread(target=_serve, args=(listener, server, patience), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def _serve(listener: socket.socket, server: OddServer, patience: int) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            connection.settimeout(5)
            try:
                line, body, key = _read_request(connection)
                if line:
                    server.asked.append(line)
                    server.bodies += [body] if body else []
                    if len(server.asked) <= patience:
                        answer = server.answer(*line)
                        connection.sendall(_web_socket(key, answer) if key and server.upgrades else answer)
            except OSError:
                pass  # the program went away, which is its right
            except Exception as error:
                server.failed = error


_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455 section 1.3


def _web_socket(key: str, answer: bytes) -> bytes:
    """Handshake, messages and close, in which the answer's body is sent."""
    accepted = base64.b64encode(hashlib.sha1(f"{key}{_GUID}".encode(), usedforsecurity=False).digest()).decode()
    head = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    body = json.loads(answer.partition(b"\r\n\r\n")[2] or b"null")
    frames = b"".join(_frame(json.dumps(part).encode()) for part in (body if isinstance(body, list) else [body]))
    return f"{head}Sec-WebSocket-Accept: {accepted}\r\n\r\n".encode() + frames + b"\x88\x02\x03\xe8"


def _frame(text: bytes) -> bytes:
    size = bytes([len(text)]) if len(text) < 126 else b"\x7e" + len(text).to_bytes(2)
    return b"\x81" + size + text


def _read_request(connection: socket.socket) -> tuple[tuple[str, str] | None, bytes, str]:
    """((method, path), body, the key of a WebSocket); None when nothing came."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65536)
        if not piece:
            return None, b"", ""
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
    while len(body) < int(fields.get("content-length", 0)):
        body += connection.recv(65536)
    method, path, _ = lines[0].split(" ", 2)
    return (method, path), body, fields.get("sec-websocket-key", "")


SAID_AT = "2026-01-02T03:04:05Z"


@dataclass
class FakeApp:
    """What it was told, and how it answers."""

    port: int = 0
    status: str = "stable"
    messages: list[dict[str, Any]] = field(default_factory=list)
    broken: bool = False
    "Answers with words instead of JSON."

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, Any]:
        if (method, path) == ("GET", "/status"):
            return 200, {"status": self.status}
        if (method, path) == ("GET", "/messages"):
            return 200, {"messages": self.messages}
        if (method, path) == ("POST", "/message"):
            sent = json.loads(body)
            assert sent["type"] == "user"
            self.say("user", sent["content"])
            return 200, {"ok": True}
        return 404, {"message": f"no {method} {path}"}

    def say(self, role: str, content: str) -> None:
        self.messages.append({"id": len(self.messages), "role": role, "content": content, "time": SAID_AT})


@asynccontextmanager
async def fake_app() -> AsyncIterator[FakeApp]:
    """The app on a loopback port of its own."""
    app = FakeApp()

    async def serve(stream: trio.SocketStream) -> None:
        async with stream:
            connection = h11.Connection(h11.SERVER)
            request, body = None, b""
            while not isinstance(event := connection.next_event(), h11.EndOfMessage):
                if event is h11.NEED_DATA:
                    connection.receive_data(await stream.receive_some())
                elif isinstance(event, h11.Request):
                    request = event
                elif isinstance(event, h11.Data):
                    body += event.data
                else:
                    return
            assert request is not None
            status, said = app.answer(request.method.decode(), request.target.decode(), body)
            content = b"out of order" if app.broken else json.dumps(said).encode()
            headers = [("Content-Length", str(len(content))), ("Connection", "close")]
            parts = (h11.Response(status_code=status, headers=headers), h11.Data(data=content), h11.EndOfMessage())
            await stream.send_all(b"".join(connection.send(part) or b"" for part in parts))

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(
            lambda task_status: trio.serve_tcp(serve, 0, host="127.0.0.1", task_status=task_status)
        )
        app.port = listeners[0].socket.getsockname()[1]
        yield app
        nursery.cancel_scope.cancel()
