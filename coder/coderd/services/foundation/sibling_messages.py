"""Unix sockets by which the processes of one server reach each other.

Every process listens on one, in a folder that only the server's user can enter. A message is two lengths (big-endian,
four bytes each), a JSON text and bytes; a file descriptor may travel with it (SCM_RIGHTS). The receiver answers one
byte when it has taken the message; what follows on the stream depends on `kind`.
"""

from __future__ import annotations

import array
import contextlib
import errno
import os
import socket
import struct
from collections.abc import Awaitable, Callable, Mapping

import msgspec
import trio

from coder.base.log import STRANGERS_LINES, get_logger

_LENGTHS = struct.Struct(">II")
_TAKEN = b"\x01"
MAX_BYTES = 4 << 20
"""Bytes of one message."""
TIMEOUT = 5.0
"""Seconds for connecting and for the receiver's answer: a process that stands still does not hold its siblings up."""
_RETRY = 0.02
"""Seconds between two tries to connect to a process whose queue is full."""
_log = get_logger("processes", per_minute=STRANGERS_LINES)


class SiblingMessage(msgspec.Struct, omit_defaults=True):
    """Head of a message."""

    kind: str
    "connection, relay, metrics"
    ip: str = ""
    port: int = 0
    secure: bool = False
    "Whether TLS ended at the sender."


Handler = Callable[[SiblingMessage, bytes, int, trio.SocketStream], Awaitable[None]]
"""(head, bytes, descriptor or -1, stream); owns the descriptor, and closes the stream by returning."""


class SiblingAwayError(Exception):
    """A sibling could not be reached."""


async def send_message(path: str, head: SiblingMessage, data: bytes = b"", descriptor: int = -1) -> trio.SocketStream:
    """Send a message; return the stream once the receiver has taken it. Raises SiblingAwayError."""
    connection: trio.socket.SocketType | None = None
    try:
        with trio.fail_after(TIMEOUT):
            connection = await _connect(path)
            text = msgspec.json.encode(head)
            lengths = _LENGTHS.pack(len(text), len(data))
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [descriptor]))] if descriptor >= 0 else []
            await connection.sendmsg([lengths], rights)  # whole: it is shorter than any buffer
            stream = trio.SocketStream(connection)
            await stream.send_all(text + data)
            if await stream.receive_some(1) != _TAKEN:
                raise SiblingAwayError(path)
            return stream
    except (OSError, trio.TooSlowError, trio.BrokenResourceError) as error:
        if connection is not None:
            connection.close()
        raise SiblingAwayError(path) from error
    except BaseException:
        if connection is not None:
            connection.close()
        raise


async def _connect(path: str) -> trio.socket.SocketType:
    """Return a connected socket, however many others wait for the receiver. Raises OSError.

    Linux answers EAGAIN while the receiver's queue is full, when thousands of clients come at once (unix(7)).
    """
    while True:
        plain = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        plain.setblocking(False)
        try:
            plain.connect(path)
            return trio.socket.from_stdlib_socket(plain)
        except BlockingIOError:
            plain.close()
        except BaseException:
            plain.close()
            raise
        await trio.sleep(_RETRY)


async def serve_messages(
    listener: socket.socket,
    handlers: Mapping[str, Handler],
    *,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve the socket of this process until cancelled."""
    serving = trio.SocketListener(trio.socket.from_stdlib_socket(listener))

    async def answer(stream: trio.SocketStream) -> None:
        async with stream:
            descriptor = -1
            try:
                with trio.fail_after(TIMEOUT):
                    head, data, descriptor = await _receive(stream)
                handler = handlers[head.kind]
                await stream.send_all(_TAKEN)
            except BaseException as error:
                if descriptor >= 0:
                    os.close(descriptor)
                if not isinstance(error, Exception):
                    raise  # this process stops: the sender keeps its connection
                _log.warn("a message of a sibling process was not taken", error=error)
                return
            try:
                await handler(head, data, descriptor, stream)
            except (OSError, trio.BrokenResourceError, trio.ClosedResourceError):
                pass  # the sibling, or the client whose connection it is, has left
            except Exception as error:
                _log.error("a message of a sibling process failed", kind=head.kind, error=error)

    await trio.serve_listeners(answer, [serving], task_status=task_status)  # type: ignore[arg-type]


async def _receive(stream: trio.SocketStream) -> tuple[SiblingMessage, bytes, int]:
    room = socket.CMSG_SPACE(array.array("i").itemsize)
    first, rights, flags, _ = await stream.socket.recvmsg(_LENGTHS.size, room)
    if flags & socket.MSG_CTRUNC:
        # The kernel drops a descriptor that this process has no room for: the sender keeps its connection.
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
    descriptors = array.array("i")
    for level, kind, data in rights:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            descriptors.frombytes(data[: len(data) - len(data) % descriptors.itemsize])
    descriptor = descriptors[0] if descriptors else -1
    for surplus in descriptors[1:]:  # the room for one is rounded up to that for two
        os.close(surplus)
    try:
        first += await receive_exactly(stream, _LENGTHS.size - len(first))
        head_size, data_size = _LENGTHS.unpack(first)
        if head_size + data_size > MAX_BYTES:
            raise ValueError("the message is too long")
        text = await receive_exactly(stream, head_size + data_size)
        return msgspec.json.decode(text[:head_size], type=SiblingMessage), text[head_size:], descriptor
    except BaseException:
        if descriptor >= 0:
            os.close(descriptor)
        raise


async def receive_exactly(stream: trio.abc.ReceiveStream, size: int) -> bytes:
    """Return `size` bytes. Raises trio.BrokenResourceError when the stream ends before."""
    data = bytearray()
    while len(data) < size:
        piece = await stream.receive_some(size - len(data))
        if not piece:
            raise trio.BrokenResourceError("the stream has ended")
        data += piece
    return bytes(data)


async def receive_all(stream: trio.abc.ReceiveStream) -> bytes:
    """Return all bytes until the stream ends."""
    data = bytearray()
    while piece := await stream.receive_some(1 << 16):
        data += piece
    return bytes(data)


async def splice(one: trio.abc.Stream, other: trio.abc.Stream) -> None:
    """Copy bytes both ways until both directions have ended, or one failed; then close both."""

    async def copy(source: trio.abc.Stream, sink: trio.abc.Stream) -> None:
        try:
            while data := await source.receive_some(1 << 16):
                await sink.send_all(data)
            send_eof = getattr(sink, "send_eof", None)
            if send_eof is None:  # TLS has no half close
                await sink.aclose()
            else:
                await send_eof()
        except (OSError, trio.BrokenResourceError, trio.ClosedResourceError, trio.BusyResourceError):
            nursery.cancel_scope.cancel()

    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(copy, one, other)
            nursery.start_soon(copy, other, one)
    finally:
        for stream in (one, other):
            # Shielded: the first would not let a cancelled task come to the second.
            with contextlib.suppress(OSError, trio.BrokenResourceError), trio.CancelScope(shield=True):
                await trio.aclose_forcefully(stream)
