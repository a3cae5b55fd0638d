"""A proxy in front of a real PostgreSQL that answers wrongly, late or not at all.

    async with hostile_postgres(url) as proxy:
        proxy.next = Fault(b"INSERT INTO notes", Moment.ANSWER, reset)
        async with open_database(proxy.url) as database: …

It reads the messages of both directions, so a fault hits one statement at one moment: when a connection is accepted,
instead of the statement, instead of its answer (the server has done the work), or after its first row.
"""

from __future__ import annotations

import contextlib
import enum
import re
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

import trio

COMMIT = rb"^COMMIT;"
"""The pattern of a transaction's end."""
NOTICE = b"SNOTICE\0VNOTICE\0C00000\0Msomething\0\0"


class Moment(enum.Enum):
    """When a fault happens."""

    ACCEPT = "a connection is accepted"
    LOGIN = "instead of the answer to the first message"
    STATEMENT = "instead of the statement"
    ANSWER = "instead of its answer"
    ROW = "after its first row"


class EndedError(Exception):
    """The fault ended the connection."""


Act = Callable[["ProxiedConnection"], Awaitable[None]]


@dataclass(frozen=True)
class Fault:
    """What happens, when, and to which statement (a pattern)."""

    statement: bytes
    moment: Moment
    act: Act
    lasting: bool = False
    "Happens to each such statement, not only to the first."


def message(kind: bytes, body: bytes = b"") -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


def error(sqlstate: str, severity: str = "ERROR") -> bytes:
    fields = f"S{severity}\0V{severity}\0C{sqlstate}\0Minjected {sqlstate}\0\0"
    return message(b"E", fields.encode())


class ProxiedConnection:
    """One connection through the proxy."""

    def __init__(self, proxy: HostilePostgres, client: trio.SocketStream, server: trio.SocketStream) -> None:
        self.proxy, self.client, self.server = proxy, client, server
        self.armed: Fault | None = None
        "The fault that waits for an answer."
        self.is_quiet = False
        "Nothing of the server is passed on any more."
        self.skips = False
        "Messages up to the next Sync are dropped, as after an error."
        self.refusal = b""
        "What the client gets instead of the answer to the rollback that replaces its COMMIT."
        self.status = b"I"
        self.prepared: dict[bytes, bytes] = {}
        self._sends = trio.Lock()

    async def send(self, data: bytes) -> None:
        """Send bytes to the client."""
        async with self._sends:
            await self.client.send_all(data)

    async def run(self) -> None:
        gone = (trio.BrokenResourceError, trio.ClosedResourceError, EndedError)
        try:
            async with self.client, self.server, trio.open_nursery() as nursery:
                nursery.start_soon(self._answers)
                with contextlib.suppress(*gone):
                    await self._requests()
                nursery.cancel_scope.cancel()
        except* gone:
            pass

    async def _requests(self) -> None:
        if fault := self.proxy.take(Moment.ACCEPT, b""):
            await fault.act(self)
        source = _Messages(self.client)
        first = await source.untyped()
        if fault := self.proxy.take(Moment.LOGIN, b""):
            self.armed = fault
        await self.server.send_all(first)
        while True:
            await self._request(*await source.typed())

    async def _request(self, kind: bytes, body: bytes) -> None:
        if self.skips:
            if kind == b"S":
                self.skips = False
                await self.send(message(b"Z", b"E" if self.status != b"I" else b"I"))
            return
        text = self._text(kind, body)
        if text is not None:
            self.proxy.statements.append(text)
            if fault := self.proxy.take(Moment.STATEMENT, text):
                self.skips = kind != b"Q"
                await fault.act(self)
                return
            # A prepared statement's answer is the one to its execution.
            if kind != b"P" and (fault := self.proxy.take((Moment.ANSWER, Moment.ROW), text)):
                self.armed = fault
        await self.server.send_all(message(kind, body))

    def _text(self, kind: bytes, body: bytes) -> bytes | None:
        if kind == b"Q":
            return body.rstrip(b"\0")
        if kind == b"P":
            name, text, _rest = body.split(b"\0", 2)
            self.prepared[name] = text
            return text
        if kind == b"B":
            _portal, name, _rest = body.split(b"\0", 2)
            return self.prepared.get(name)
        return None

    async def _answers(self) -> None:
        source = _Messages(self.server)
        while True:
            kind, body = await source.typed()
            if kind == b"Z":
                self.status = body
            if self.refusal:
                if kind == b"Z":
                    refusal, self.refusal = self.refusal, b""
                    await self.send(refusal + message(b"Z", b"I"))
                continue
            fault = self.armed
            if fault is not None and fault.moment is not Moment.ROW:
                self.armed = None
                await fault.act(self)
                self.is_quiet = True
            if not self.is_quiet:
                await self.send(message(kind, body))
            if fault is not None and fault.moment is Moment.ROW and kind == b"D":
                self.armed = None
                await fault.act(self)
                self.is_quiet = True


class _Messages:
    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream, self._buffer = stream, bytearray()

    async def untyped(self) -> bytes:
        head = await self._exactly(4)
        return head + await self._exactly(struct.unpack("!i", head)[0] - 4)

    async def _exactly(self, count: int) -> bytes:
        while len(self._buffer) < count:
            data = await self._stream.receive_some(65536)
            if not data:
                raise EndedError
            self._buffer += data
        taken = bytes(self._buffer[:count])
        del self._buffer[:count]
        return taken

    async def typed(self) -> tuple[bytes, bytes]:
        head = await self._exactly(5)
        return head[:1], await self._exactly(struct.unpack("!i", head[1:])[0] - 4)


@dataclass
class HostilePostgres:
    """The running proxy."""

    url: str
    next: Fault | None = None
    statements: list[bytes] = field(default_factory=list)
    "Every statement that arrived."
    taken: trio.Event = field(default_factory=trio.Event)
    "Set when a fault has happened."

    def take(self, moment: Moment | tuple[Moment, ...], text: bytes) -> Fault | None:
        fault = self.next
        moments = moment if isinstance(moment, tuple) else (moment,)
        if fault is None or fault.moment not in moments or not re.search(fault.statement, text):
            return None
        if not fault.lasting:
            self.next = None
        self.taken.set()
        return fault

    def inject(self, fault: Fault) -> None:
        self.taken = trio.Event()
        self.next = fault


@contextlib.asynccontextmanager
async def hostile_postgres(url: str) -> AsyncIterator[HostilePostgres]:
    """Serve a proxy on loopback for the database of `url`, which names a folder of sockets."""
    place, _, folder = url.partition("?host=")
    name = place.rpartition("/")[2]

    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        port = listener.socket.getsockname()[1]
        proxy = HostilePostgres(f"postgresql://coder@127.0.0.1:{port}/{name}?sslmode=disable")

        async def serve(client: trio.SocketStream) -> None:
            server = await trio.open_unix_socket(f"{folder}/.s.PGSQL.5432")
            await ProxiedConnection(proxy, client, server).run()

        nursery.start_soon(trio.serve_listeners, serve, [listener])
        yield proxy
        nursery.cancel_scope.cancel()


async def reset(connection: ProxiedConnection) -> None:
    connection.client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    await connection.client.aclose()
    raise EndedError


async def close(connection: ProxiedConnection) -> None:
    await connection.client.aclose()
    raise EndedError


async def half_close(connection: ProxiedConnection) -> None:
    await connection.client.send_eof()
    connection.is_quiet = True
    await trio.sleep_forever()


async def silent(connection: ProxiedConnection) -> None:
    connection.is_quiet = True
    await trio.sleep_forever()


def sends(data: bytes, then: Act = close) -> Act:
    """Return an act: send these bytes, and then do something."""

    async def act(connection: ProxiedConnection) -> None:
        await connection.send(data)
        await then(connection)

    return act


def fails(sqlstate: str) -> Act:
    """Return an act for `Moment.STATEMENT`: the server answers an error and the session goes on."""

    async def act(connection: ProxiedConnection) -> None:
        if connection.skips:
            await connection.send(error(sqlstate))
        else:  # the end of a transaction, which a refusal rolls back
            connection.refusal = error(sqlstate)
            await connection.server.send_all(message(b"Q", b"ROLLBACK\0"))

    return act


def endless(data: bytes, pause: float = 0.0) -> Act:
    """Return an act: send the same until the client leaves."""

    async def act(connection: ProxiedConnection) -> None:
        while True:
            await connection.send(data)
            await trio.sleep(pause)

    return act
