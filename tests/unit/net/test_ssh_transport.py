"""An asyncio transport over a trio stream: what comes at once is handed over in pieces, as far as it is wanted."""

from __future__ import annotations

import asyncio
from typing import cast

import trio
import trio.testing

from coder.net.ssh_transport import PIECE, READ_SIZE, StreamTransport
from tests.kit.turns import counted_turns, peer_says


class Taker(asyncio.Protocol):
    """Takes so much, then wants no more."""

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


async def pumping(taker: Taker) -> StreamTransport:
    transport = StreamTransport(peer_says(bytes(READ_SIZE)))
    await transport.create_connection(lambda: taker, "", 0)
    return transport


async def test_others_run_between_pieces() -> None:
    """asyncssh takes every packet of what it is given before it gives up its turn."""
    taker = Taker()
    transport = await pumping(taker)
    async with counted_turns() as turns:
        await transport.pump()
    assert sum(taker.taken) == READ_SIZE
    assert max(taker.taken) == PIECE
    assert turns.count >= READ_SIZE // PIECE


async def test_who_wants_no_more_gets_no_more() -> None:
    taker = Taker(most=PIECE)
    transport = await pumping(taker)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(transport.pump)
        await trio.testing.wait_all_tasks_blocked()
        assert sum(taker.taken) == PIECE
        taker.most = READ_SIZE
        transport.resume_reading()
        await trio.testing.wait_all_tasks_blocked()
        assert sum(taker.taken) == READ_SIZE
        transport.abort()
