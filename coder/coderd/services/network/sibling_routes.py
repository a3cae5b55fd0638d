"""Requests that another process of this server has to answer, and how their connection is passed to it.

A carried stream is held by the process that opened it: its id begins with that process's number. A relay that meshes
with a certain process names it in a header. The state of WireGuard clients is known to the process with the gateway.
Over plain TCP, connections of relay clients go to the process with the relay, and those of applications and terminals
to the one that terminates overlay TCP: traffic there does not delay the API. The socket itself travels (SCM_RIGHTS)
with the bytes that were read, and the sender is rid of it. Where TLS ends in this process only its ciphertext could
travel: then this process serves what it can, and copies the bytes of the rest through a socket pair.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING
from uuid import UUID

import h11
import trio

from coder.appproxy.http.listener import FindOther, HttpServer, Origin, PassOn
from coder.appproxy.http.listening_sockets import ClientStream
from coder.appproxy.http.overload import OverloadSign
from coder.base.log import STRANGERS_LINES, get_logger
from coder.coderd.services.foundation.sibling_messages import (
    TIMEOUT,
    Handler,
    SiblingAwayError,
    SiblingMessage,
    send_message,
    splice,
)
from coder.coderd.services.foundation.this_process import Sibling, ThisProcess, instance_of
from coder.net.carried_stream import STREAMS
from coder.tailnet.relay_mesh import REPLICA_HEADER

if TYPE_CHECKING:
    from coder.mesh.relay import DerpServer

_RELAY_PATH = b"/derp"
_TERMINAL = re.compile(rb"/api/v2/workspaceagents/[^/]+/pty/?")
_WIREGUARD = re.compile(rb"/api/v2/(wireguard|users/[^/]+/wireguard-clients)(/.*)?")
_STREAMS = STREAMS.encode()
_ELSEWHERE = re.compile(
    rb"/derp(?:\?|$)|" + re.escape(_STREAMS) + rb"|/api/v2/(?:workspaceagents/|wireguard|users/[^/]+/wireguard-clients)"
)
"""Beginnings of addresses that another process may have to answer, beside those of applications."""
_OPENS_STREAMS = frozenset({"http", "relay", "apps"})
"""Duties of the processes that open carried streams."""
_AT_ONCE = 256
"""Connections that are handed over to a sibling at the same time. Each takes a millisecond of both processes, and one
turn of the sibling's event loop, which is long in a storm."""
_LATE = 1.0
"""Seconds after which a hand-over shows an overload."""
_NUMBER = 4
"""Hexadecimal digits at the start of a carried stream's id: the number of its process."""

_log = get_logger("processes", per_minute=STRANGERS_LINES)


def stream_mark(process: ThisProcess) -> str:
    """Return the beginning of ids of carried streams that this process opens; empty for the only process."""
    return "" if process.is_alone else f"{instance_of(process.replica):0{_NUMBER}x}"


def other_finder(process: ThisProcess) -> FindOther | None:
    """Return how the listener finds requests of other processes; None for the only process."""
    if process.is_alone:
        return None

    turns: dict[str, trio.CapacityLimiter] = {}

    def find(head: h11.Request, secure: bool, is_app: bool) -> PassOn | None:
        sibling = _sibling_for(process, head, secure, is_app)
        if sibling is None:
            return None
        if sibling.socket_path not in turns:
            for path in turns.keys() - {other.socket_path for other in process.siblings.values()}:
                del turns[path]
            turns[sibling.socket_path] = trio.CapacityLimiter(_AT_ONCE)
        return _passing_to(sibling, turns[sibling.socket_path], process.overload)

    return find


def _sibling_for(process: ThisProcess, head: h11.Request, secure: bool, is_app: bool) -> Sibling | None:
    if not is_app and _ELSEWHERE.match(head.target) is None:
        return None  # nearly every request, for the price of one expression
    path = head.target.partition(b"?")[0]
    if path.startswith(_STREAMS):
        return _stream_holder(process, path[len(_STREAMS) :][:_NUMBER])
    if path == _RELAY_PATH:
        named = _named_replica(head)
        if named is not None and named in process.siblings:
            return process.siblings[named]
        return None if secure else process.holder_of("relay")
    if not process.has("wireguard") and _WIREGUARD.fullmatch(path):
        return process.holder_of("wireguard")  # only its gateway knows the state of clients
    if not secure and not process.has("apps") and (is_app or _TERMINAL.fullmatch(path)):
        return process.holder_of("apps")
    return None


def _stream_holder(process: ThisProcess, mark: bytes) -> Sibling | None:
    try:
        number = int(mark, 16)
    except ValueError:
        return None
    sibling = None if number == instance_of(process.replica) else process.instance(number)
    # Ids are a stranger's choice: they must not lead to a process that serves no clients.
    return sibling if sibling is not None and _OPENS_STREAMS & set(sibling.duties) else None


def _named_replica(head: h11.Request) -> UUID | None:
    for name, value in head.headers:
        if name == REPLICA_HEADER.lower().encode():
            with contextlib.suppress(ValueError):
                return UUID(value.decode("latin-1"))
    return None


def _passing_to(sibling: Sibling, turns: trio.CapacityLimiter, overload: OverloadSign) -> PassOn:
    async def pass_on(stream: ClientStream, replayed: bytes, remote: tuple[str, int], secure: bool) -> bool:
        message = SiblingMessage("connection", ip=remote[0], port=remote[1], secure=secure)
        began = trio.current_time()
        try:
            async with _turn(turns):  # thousands at once would all be late
                if await _has_left(stream):
                    await trio.aclose_forcefully(stream)
                    return True
                inner = await _hand_over(sibling, message, replayed, stream)
        except SiblingAwayError as error:
            overload.set()
            _log.warn("a request could not be passed to its process", process=sibling.name, error=error)
            return False
        if trio.current_time() - began > _LATE:
            overload.set()
        if inner is not None:
            await splice(stream, inner)
        return True

    return pass_on


@contextlib.asynccontextmanager
async def _turn(turns: trio.CapacityLimiter) -> AsyncIterator[None]:
    """Wait for a turn. Raises SiblingAwayError when it does not come in time."""
    with trio.move_on_after(TIMEOUT) as scope:
        await turns.acquire()
    if scope.cancelled_caught:
        raise SiblingAwayError("too many connections wait for it")
    try:
        yield
    finally:
        turns.release()


async def _has_left(stream: ClientStream) -> bool:
    """Return whether a client over plain TCP has closed its connection while it waited."""
    if not isinstance(stream, trio.SocketStream) or not stream.socket.is_readable():
        return False
    try:
        return not await stream.socket.recv(1, socket.MSG_PEEK)
    except OSError:
        return True


async def _hand_over(
    sibling: Sibling, message: SiblingMessage, replayed: bytes, stream: ClientStream
) -> trio.SocketStream | None:
    """Give a connection to a sibling. Return the stream to copy its bytes to and from; None when the socket itself has
    gone there. Raises SiblingAwayError."""
    if isinstance(stream, trio.SocketStream):
        link = await send_message(sibling.socket_path, message, replayed, stream.socket.fileno())
        await trio.aclose_forcefully(link)
        await trio.aclose_forcefully(stream)  # our descriptor of it; the sibling has its own
        return None
    ours, theirs = socket.socketpair()
    with theirs:
        inner = trio.SocketStream(trio.socket.from_stdlib_socket(ours))
        try:
            link = await send_message(sibling.socket_path, message, replayed, theirs.fileno())
            await trio.aclose_forcefully(link)
        except BaseException:
            with trio.CancelScope(shield=True):
                await trio.aclose_forcefully(inner)
            raise
    return inner


def connection_handler(server: HttpServer) -> Handler:
    """Return what serves connections that siblings pass to this process."""

    async def take(head: SiblingMessage, data: bytes, descriptor: int, _stream: trio.SocketStream) -> None:
        await trio.lowlevel.checkpoint()
        if descriptor < 0:
            return
        try:
            passed = socket.socket(fileno=descriptor)
        except OSError:
            os.close(descriptor)  # no socket
            raise
        connection = trio.SocketStream(trio.socket.from_stdlib_socket(passed))
        if not server.adopt(connection, data, Origin((head.ip, head.port), head.secure)):
            await trio.aclose_forcefully(connection)

    return take


def relay_handler(server: DerpServer) -> Handler:
    """Return what serves the links of siblings' relays to the one of this process."""

    async def serve(_head: SiblingMessage, data: bytes, descriptor: int, stream: trio.SocketStream) -> None:
        if descriptor >= 0:
            os.close(descriptor)
        await server.serve_connection(stream, data)

    return serve
