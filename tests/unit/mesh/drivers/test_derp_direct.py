"""A reader of the relay writes to the receivers' sockets itself: order, slow and broken receivers, many of them."""

from __future__ import annotations

import socket
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
import trio
import trio.testing

from coder.mesh.core.wire import derp, derp_reader
from coder.mesh.core.wire.disco import MAGIC
from coder.mesh.drivers.derp_server import DIRECT_RECEIVERS, WRITE_TIMEOUT, DerpServer
from coder.mesh.drivers.derp_server_client import FLUSH_BYTES, PAUSE
from coder.mesh.drivers.derp_server_queue import QUEUE_BYTES, QUEUE_PACKETS
from coder.mesh.drivers.framing import READ_SIZE
from tests.unit.mesh.drivers.test_derp import log_in, private_key

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="trio's own streams are used there")
SIZE = 1000


class Node:
    """A client over a socket."""

    def __init__(self, stream: trio.SocketStream, reader: derp_reader.FrameReader) -> None:
        self.stream = stream
        self._reader = reader
        self.received: list[tuple[int, bytes]] = []

    async def send(self, *frames: bytes) -> None:
        await self.stream.send_all(b"".join(frames))

    async def until(self, count: int) -> list[tuple[int, bytes]]:
        """Read until so many frames have arrived."""
        while len(self.received) < count:
            data = await self.stream.receive_some(1 << 16)
            assert data, "the relay closed the connection"
            self.received += self._reader.feed_untrusted(data)
        return self.received


@asynccontextmanager
async def connected(server: DerpServer, *clients: int) -> AsyncIterator[list[Node]]:
    """Connect clients with these keys."""
    async with AsyncExitStack() as stack, trio.open_nursery() as nursery:
        nodes = []
        for number in clients:
            near, far = trio.socket.socketpair()
            for each in (near, far):
                each.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
            stream = await stack.enter_async_context(trio.SocketStream(near))
            nursery.start_soon(server.serve_connection, trio.SocketStream(far))
            nodes.append(Node(stream, await log_in(stream, private_key(number), server)))
        yield nodes
        server.disconnect_all()


def packet(to: int, number: int, size: int = SIZE) -> bytes:
    return derp.encode_send_packet(private_key(to).public, number.to_bytes(4, "big") * (size // 4))


def numbers(frames: list[tuple[int, bytes]], sender: int) -> list[int]:
    key = bytes(private_key(sender).public)
    return [
        int.from_bytes(body[32:36], "big") for kind, body in frames if kind == derp.RECV_PACKET and body[:32] == key
    ]


async def test_packets_keep_their_order(mock_clock: trio.testing.MockClock) -> None:
    """Through direct writes, a full socket and the queue behind it."""
    server = DerpServer(private_key(9))
    async with connected(server, 1, 2) as (one, two), trio.open_nursery() as nursery:
        receiver = server._clients[private_key(2).public][0]
        assert receiver.link is not None
        for number in range(5):
            await one.send(packet(2, number))
            await two.until(number + 1)
        total, sent = 1225, 5
        for size in (200, 20):
            await one.send(*(packet(2, number) for number in range(sent, sent + size)))
            sent += size
            while server.counters.received < sent:
                await trio.testing.wait_all_tasks_blocked(0.001)
        assert receiver.link.is_full and receiver.data.packets
        is_read = trio.Event()

        @nursery.start_soon
        async def read() -> None:
            await two.until(total)
            is_read.set()

        while sent < total:
            for size in (3, 1, 50, 46):
                await one.send(*(packet(2, number) for number in range(sent, sent + size)))
                sent += size
        await is_read.wait()
        assert numbers(two.received, 1) == list(range(total))
        assert (server.counters.sent, server.counters.dropped_queue) == (total, 0)
        assert {len(body) for _, body in two.received} == {32 + SIZE}


async def test_run_ends_at_other_frames(mock_clock: trio.testing.MockClock) -> None:
    """Packets to one peer are recognised by the bytes of the one before: other lengths, keys and probes are not."""
    server = DerpServer(private_key(9))
    async with connected(server, 1, 2, 3) as (one, two, three):
        probe = derp.encode_send_packet(private_key(2).public, MAGIC + bytes(SIZE - len(MAGIC)))
        await one.send(
            *(packet(2, number) for number in (0, 1, 2)),
            *(packet(2, number, 40) for number in (3, 4)),
            probe,
            derp.DerpPing(b"12345678").encode(),
            *(packet(2, number) for number in (5, 6)),
            *(packet(3, number) for number in (0, 1)),
            *(packet(2, number) for number in (7, 8)),
        )
        await two.until(10)
        data = [(kind, body) for kind, body in two.received if not body[32:].startswith(MAGIC)]
        assert numbers(data, 1) == list(range(9))
        assert [len(body) - 32 for _, body in data] == [SIZE] * 3 + [40] * 2 + [SIZE] * 4
        assert numbers(await three.until(2), 1) == [0, 1]
        assert await one.until(1) == [(derp.PONG, b"12345678")]
        assert (server.counters.received, server.counters.received_disco) == (12, 1)


@pytest.mark.parametrize("receivers", [DIRECT_RECEIVERS, 3 * DIRECT_RECEIVERS])
async def test_every_receiver_gets_its_packets(receivers: int, mock_clock: trio.testing.MockClock) -> None:
    server = DerpServer(private_key(250))
    async with connected(server, 100, *range(1, receivers + 1)) as (one, *nodes):
        everybody = range(1, receivers + 1)
        await one.send(*(packet(to, number) for number in range(3) for to in everybody))
        for node in nodes:
            assert numbers(await node.until(3), 100) == [0, 1, 2]


async def test_receiver_that_does_not_read(mock_clock: trio.testing.MockClock) -> None:
    """It holds a bounded number of bytes, delays no other receiver, and is disconnected."""
    server = DerpServer(private_key(9))
    async with connected(server, 1, 2, 3) as (one, _, three), trio.open_nursery() as nursery:
        stalled = server._clients[private_key(2).public][0]
        link = stalled.link
        assert link is not None

        @nursery.start_soon
        async def end_pauses() -> None:
            while True:
                await trio.testing.wait_all_tasks_blocked(0.001)
                if stalled.drained:
                    mock_clock.jump(PAUSE)

        for number in range(40):
            await one.send(*(packet(2, number, 30_000) for _ in range(20)), packet(3, number))
            await three.until(number + 1)
            assert stalled.data.packets <= QUEUE_PACKETS and stalled.data.bytes <= QUEUE_BYTES
            assert len(link._unsent) <= FLUSH_BYTES + READ_SIZE
        assert server.counters.dropped_queue > 0 and link.is_full
        assert numbers(three.received, 1) == list(range(40))
        mock_clock.jump(WRITE_TIMEOUT)
        await trio.testing.wait_all_tasks_blocked(0.001)
        assert server.counters.slow_closed == 1 and not server.is_connected(private_key(2).public)
        nursery.cancel_scope.cancel()


async def test_busy_sender_leaves_room_for_another(mock_clock: trio.testing.MockClock) -> None:
    """While a receiver does not read, one sender fills its queue; the other's few packets are kept."""
    server = DerpServer(private_key(9))
    async with connected(server, 1, 2, 3) as (busy, calm, receiver), trio.open_nursery() as nursery:
        data = server._clients[private_key(3).public][0].data
        nursery.start_soon(busy.send, *(packet(3, number) for number in range(3000)))
        while data.packets < QUEUE_PACKETS // 3:
            await trio.testing.wait_all_tasks_blocked(0.001)
        await calm.send(*(packet(3, number) for number in range(20)))
        while server.counters.received < 20 or private_key(2).public not in data.shares:
            await trio.testing.wait_all_tasks_blocked(0.001)
        while len(numbers(receiver.received, 2)) < 20:
            await receiver.until(len(receiver.received) + 1)
        assert numbers(receiver.received, 2) == list(range(20))
        from_busy = numbers(receiver.received, 1)
        assert from_busy == sorted(from_busy) and len(from_busy) < 3000
        nursery.cancel_scope.cancel()


async def test_broken_receiver_does_not_end_sender(mock_clock: trio.testing.MockClock) -> None:
    server = DerpServer(private_key(9))
    async with connected(server, 1, 2, 3) as (one, _, three):
        receiver = server._clients[private_key(2).public][0]
        assert receiver.link is not None
        receiver.link._socket.shutdown(socket.SHUT_WR)  # a write fails before the reader has noticed anything
        await one.send(packet(2, 1), packet(3, 1))
        assert numbers(await three.until(1), 1) == [1]
        await one.send(derp.DerpPing(bytes(8)).encode())
        assert await one.until(1) == [(derp.PONG, bytes(8))]
        assert not server.is_connected(private_key(2).public)


async def test_slow_receiver_stays_connected(mock_clock: trio.testing.MockClock) -> None:
    """20 KB a second: what was taken from its queue at once needs longer than a write may stand still."""
    server = DerpServer(private_key(9))
    async with connected(server, 1, 2) as (one, two), trio.open_nursery() as nursery:
        nursery.start_soon(one.send, *(packet(2, number, 30_000) for number in range(20)))
        await trio.testing.wait_all_tasks_blocked()
        frames = list[tuple[int, bytes]]()
        while len(numbers(frames, 1)) < 20:
            data = await two.stream.receive_some(20_000)
            assert data, "the relay closed the connection"
            frames += two._reader.feed_untrusted(data)
            mock_clock.jump(1.0)
            await trio.testing.wait_all_tasks_blocked()
        assert numbers(frames, 1) == list(range(20)) and not server.counters.slow_closed
