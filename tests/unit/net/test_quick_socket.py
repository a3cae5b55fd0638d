"""A socket without trio's turns: bytes, the end, a full peer, a lost one, closing while a task reads."""

from __future__ import annotations

import socket
import struct

import pytest
import trio
import trio.testing

from coder.net.quick_socket import QuickSocket


def connected() -> tuple[trio.SocketStream, QuickSocket, socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ours = socket.create_connection(listener.getsockname())
        theirs, _ = listener.accept()
    stream = trio.SocketStream(trio.socket.from_stdlib_socket(ours))
    quick = QuickSocket.of(stream)
    assert quick is not None
    return stream, quick, theirs


async def test_reads_what_arrives_until_the_end() -> None:
    stream, quick, theirs = connected()
    async with stream, trio.open_nursery() as nursery:
        received: list[bytes] = []

        async def read() -> None:
            while data := await quick.read(4):
                received.append(data)

        nursery.start_soon(read)
        await trio.testing.wait_all_tasks_blocked()
        theirs.sendall(b"abcdef")
        theirs.close()
    assert b"".join(received) == b"abcdef"
    assert len(received[0]) == 4


async def test_full_socket_takes_a_part() -> None:
    stream, quick, theirs = connected()
    async with stream:
        taken = 0
        while sent := quick.write_now(bytes(1 << 20)):
            taken += sent
        assert quick.write_now(b"x") == 0
        with theirs:
            while taken:
                taken -= len(theirs.recv(1 << 20))
            assert quick.write_now(b"x") == 1


async def test_lost_peer_breaks_reads() -> None:
    stream, quick, theirs = connected()
    theirs.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    theirs.close()
    async with stream:
        with pytest.raises(trio.BrokenResourceError):
            await quick.read(1)
        with pytest.raises(OSError, match="Broken pipe"):
            quick.write_now(b"x")


async def test_closing_ends_reads() -> None:
    stream, quick, theirs = connected()
    with theirs:
        async with trio.open_nursery() as nursery:

            async def read() -> None:
                with pytest.raises(trio.ClosedResourceError):
                    await quick.read(1)

            nursery.start_soon(read)
            await trio.testing.wait_all_tasks_blocked()
            await stream.aclose()
        with pytest.raises(trio.ClosedResourceError):
            await quick.read(1)
