"""Unix sockets between the processes of a server."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio
import trio.testing

from coder.coderd.services.foundation.sibling_messages import (
    Handler,
    SiblingAwayError,
    SiblingMessage,
    receive_all,
    send_message,
    serve_messages,
    splice,
)
from tests.kit.descriptors import spare_descriptors


@contextlib.asynccontextmanager
async def listening_at(folder: Path, **handlers: Handler) -> AsyncIterator[str]:
    path = str(folder / "process.sock")
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(path)
    listening.listen(8)
    listening.setblocking(False)
    async with trio.open_nursery() as nursery:
        await nursery.start(serve_messages, listening, handlers)
        yield path
        nursery.cancel_scope.cancel()


async def test_message_arrives_with_its_descriptor(tmp_path: Path) -> None:
    heads: list[tuple[SiblingMessage, bytes]] = []

    async def take(head: SiblingMessage, data: bytes, descriptor: int, stream: trio.SocketStream) -> None:
        heads.append((head, data))
        os.write(descriptor, b"through the descriptor")
        os.close(descriptor)
        await stream.send_all(b"done")

    reading, writing = os.pipe()
    async with listening_at(tmp_path, connection=take) as path:
        head = SiblingMessage("connection", ip="192.0.2.7", port=80, secure=True)
        data = b"GET / HTTP/1.1\r\n" * 20_000
        async with await send_message(path, head, data, writing) as stream:
            assert await receive_all(stream) == b"done"
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        assert pipe.read() == b"through the descriptor"
    assert heads == [(head, data)]


async def test_unknown_kind_is_not_taken(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    async with listening_at(tmp_path) as path:
        with pytest.raises(SiblingAwayError):
            await send_message(path, SiblingMessage("riddle"), b"", writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        assert pipe.read() == b""  # the receiver has closed its copy


async def test_descriptor_without_room_is_not_taken(tmp_path: Path) -> None:
    """The sender keeps the connection that it could not pass on."""
    reading, writing = os.pipe()
    async with listening_at(tmp_path, connection=_never) as path:
        with spare_descriptors(2), pytest.raises(SiblingAwayError):  # for both ends of the message's connection
            await send_message(path, SiblingMessage("connection"), b"", writing)
    os.close(writing)
    os.close(reading)


async def _never(_head: SiblingMessage, _data: bytes, _descriptor: int, _stream: trio.SocketStream) -> None:
    raise AssertionError("a message was taken without its descriptor")


async def test_absent_process_is_reported(tmp_path: Path) -> None:
    with pytest.raises(SiblingAwayError):
        await send_message(str(tmp_path / "absent.sock"), SiblingMessage("metrics"))


async def test_standing_process_is_given_up(tmp_path: Path, autojump_clock: trio.testing.MockClock) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(str(tmp_path / "process.sock"))
        listening.listen(1)  # the kernel connects, and nothing answers
        with pytest.raises(SiblingAwayError):
            await send_message(str(tmp_path / "process.sock"), SiblingMessage("metrics"))


async def test_full_queue_is_waited_for(tmp_path: Path) -> None:
    """When thousands of clients come at once, each is passed on although the queue of the process is full."""
    taken: list[bytes] = []

    async def take(head: SiblingMessage, data: bytes, descriptor: int, stream: trio.SocketStream) -> None:
        taken.append(data)

    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(path := str(tmp_path / "process.sock"))
    listening.listen(1)
    listening.setblocking(False)

    async def send(number: int) -> None:
        await trio.aclose_forcefully(await send_message(path, SiblingMessage("connection"), str(number).encode()))

    async with trio.open_nursery() as nursery:
        async with trio.open_nursery() as senders:
            for number in range(20):
                senders.start_soon(send, number)
            await trio.testing.wait_all_tasks_blocked()  # most of them are refused
            assert not taken
            await nursery.start(serve_messages, listening, {"connection": take})
        nursery.cancel_scope.cancel()
    assert sorted(map(int, taken)) == list(range(20))


async def test_splice_copies_both_ways() -> None:
    outer, near = trio.testing.lockstep_stream_pair()
    far, inner = trio.testing.lockstep_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(splice, near, far)
        await outer.send_all(b"question")
        assert await inner.receive_some(100) == b"question"
        await inner.send_all(b"answer")
        assert await outer.receive_some(100) == b"answer"
        await outer.send_eof()
        assert await inner.receive_some(100) == b""
        await inner.send_eof()
        assert await outer.receive_some(100) == b""


async def test_second_descriptor_is_closed(tmp_path: Path) -> None:
    async def take(_head: SiblingMessage, _data: bytes, descriptor: int, stream: trio.SocketStream) -> None:
        os.close(descriptor)
        await stream.send_all(b"done")

    text = b'{"kind":"connection"}'
    async with listening_at(tmp_path, connection=take) as path:
        mine, theirs = socket.socketpair()
        with mine, theirs, socket.socket(socket.AF_UNIX) as sender:
            sender.connect(path)
            socket.send_fds(sender, [struct.pack(">II", len(text), 0)], [theirs.fileno(), theirs.fileno()])
            sender.send(text)
            theirs.close()
            sender.setblocking(False)
            stream = trio.SocketStream(trio.socket.from_stdlib_socket(sender.dup()))
            async with stream:
                assert await receive_all(stream) == b"\x01done"
            assert mine.recv(1) == b"", "a copy of it is still open"


async def test_stopping_process_closes_descriptor(tmp_path: Path) -> None:
    """It stops between the arrival of a message and its answer: the sender keeps the connection."""

    class Stopping(dict[str, Handler]):
        def __getitem__(self, kind: str) -> Handler:
            scope.cancel()
            return _never

    mine, theirs = socket.socketpair()
    scope = trio.CancelScope()
    path = str(tmp_path / "process.sock")
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(path)
    listening.listen(8)
    listening.setblocking(False)

    async def serve() -> None:
        with scope:
            await serve_messages(listening, Stopping())

    with mine, theirs:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve)
            with pytest.raises(SiblingAwayError):
                await send_message(path, SiblingMessage("connection"), b"", theirs.fileno())
        theirs.close()
        mine.setblocking(False)
        assert mine.recv(1) == b"", "a copy of it is still open"


async def test_cancelled_splice_closes_both() -> None:
    outer, near = trio.testing.memory_stream_pair()
    far, inner = trio.testing.memory_stream_pair()
    with trio.CancelScope() as scope:
        scope.cancel()
        await splice(near, far)
    with trio.fail_after(60):
        assert await outer.receive_some() == await inner.receive_some() == b""
