"""An asyncio transport over a trio stream: data of one read is delivered in pieces, until the protocol pauses."""

from __future__ import annotations

import asyncio
from typing import cast

import trio
import trio.testing

from coder.net.ssh_transport import PIECE, READ_SIZE, StreamTransport
from tests.kit.event_loop_probes import counted_turns, peer_says


class Taker(asyncio.Protocol):
    """Takes so much, then pauses."""

    def __init__(self, most: int = 1 << 60) -> None:
        self.taken: list[int] = []
        self.most = most
        self.transport: StreamTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("StreamTransport", transport)

    def data_received(self, data: bytes) -> None:
        self.taken.append(len(data))
        if sum(self.taken) >= self.most and self.transport is not None:
            self.transport.pause_reading()

    def eof_received(self) -> bool:
        return False


async def start_pump(taker: Taker) -> StreamTransport:
    transport = StreamTransport(peer_says(bytes(READ_SIZE)))
    await transport.create_connection(lambda: taker, "", 0)
    return transport


async def test_pieces_yield_to_other_tasks() -> None:
    """asyncssh processes every packet of its data before it yields."""
    taker = Taker()
    transport = await start_pump(taker)
    async with counted_turns() as turns:
        await transport.pump()
    assert sum(taker.taken) == READ_SIZE
    assert max(taker.taken) == PIECE
    assert turns.count >= READ_SIZE // PIECE


async def test_packet_rest_delivered_together() -> None:
    """The bytes are one message; the next message's bytes come in pieces again."""
    taker = Taker()
    head, tag = b"16 bytes of head", 16
    size = PIECE + 100
    vars(taker).update(_packet=head, _pktlen=size, _inpbuf=b"x" * 60, _recv_macsize=tag, _recv_blocksize=len(head))
    transport = await start_pump(taker)
    await transport.pump()
    assert taker.taken[0] == 4 + size + tag - len(head) - 60
    assert sum(taker.taken) == READ_SIZE


async def test_paused_protocol_gets_no_data() -> None:
    taker = Taker(most=PIECE)
    transport = await start_pump(taker)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(transport.pump)
        await trio.testing.wait_all_tasks_blocked()
        assert sum(taker.taken) == PIECE
        taker.most = READ_SIZE
        transport.resume_reading()
        await trio.testing.wait_all_tasks_blocked()
        assert sum(taker.taken) == READ_SIZE
        transport.abort()


class Answerer(Taker):
    """Answers each piece."""

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        assert self.transport is not None
        self.transport.write(b"taken")


async def test_answers_to_one_read_together() -> None:
    answerer = Answerer()
    ours, peer = trio.testing.memory_stream_pair()
    sent: list[bytes] = []

    async def send(data: bytes | bytearray | memoryview) -> None:
        sent.append(bytes(data))

    ours.send_stream.send_all = send  # type: ignore[method-assign]
    transport = StreamTransport(ours)
    await transport.create_connection(lambda: answerer, "", 0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(transport.pump)
        for size in (READ_SIZE, 1):
            await peer.send_all(bytes(size))
            await trio.testing.wait_all_tasks_blocked()
        assert sent == [b"taken" * (READ_SIZE // PIECE), b"taken"]
        transport.abort()


async def test_paused_answers_do_not_wait() -> None:
    """A peer may pause until it is answered: its data is not taken before."""
    answerer = Answerer(most=PIECE)
    ours, peer = trio.testing.memory_stream_pair()
    transport = StreamTransport(ours)
    await transport.create_connection(lambda: answerer, "", 0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(transport.pump)
        await peer.send_all(bytes(READ_SIZE))
        assert await peer.receive_some() == b"taken"
        transport.abort()
