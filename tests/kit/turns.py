"""How often others had their turn while somebody worked: counted, where seconds would be the machine's."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import trio
import trio.testing

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Turns:
    """Of somebody who only waits for them."""

    def __init__(self) -> None:
        self.count = 0


@asynccontextmanager
async def counted_turns() -> AsyncIterator[Turns]:
    """Counts as long as the block runs."""
    turns = Turns()

    async def other() -> None:
        while True:
            await trio.lowlevel.checkpoint()
            turns.count += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(other)
        yield turns
        nursery.cancel_scope.cancel()


def peer_says(data: bytes) -> trio.StapledStream[Any, Any]:
    """All of it at the first question, as a socket whose buffer is full; what is sent is taken and dropped."""
    ours, _ = trio.testing.memory_stream_pair()
    ours.receive_stream.put_data(data)
    ours.receive_stream.put_eof()
    return ours
