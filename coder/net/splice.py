"""Two streams joined into one: bytes both ways, half closes passed on."""

from __future__ import annotations

import trio

COPY = 256 << 10


async def splice(left: trio.abc.HalfCloseableStream, right: trio.abc.HalfCloseableStream) -> None:
    """Copy in both directions, passing half closes on, until both are done or one breaks."""

    async def copy(source: trio.abc.ReceiveStream, sink: trio.abc.HalfCloseableStream) -> None:
        while data := await source.receive_some(COPY):
            await sink.send_all(data)
        await sink.send_eof()

    async with left, right:
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(copy, left, right)
                nursery.start_soon(copy, right, left)
        except* (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
