"""`--stdio`: raw bytes between an overlay stream and standard input and output, for an SSH ProxyCommand."""

from __future__ import annotations

import trio

from coder.client.standard_streams import StandardInput, StandardOutput

CHUNK = 256 << 10


async def copy_raw(stream: trio.abc.HalfCloseableStream) -> None:
    """Copy until one side ends."""
    source, sink = StandardInput(), StandardOutput(1)

    async def up(scope: trio.CancelScope) -> None:
        try:
            while data := await source.receive_some():
                await stream.send_all(data)
            await stream.send_eof()
        except (OSError, trio.BrokenResourceError, trio.ClosedResourceError):
            scope.cancel()

    async def watch(scope: trio.CancelScope) -> None:
        await sink.wait_abandoned()
        scope.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(up, nursery.cancel_scope)
        nursery.start_soon(watch, nursery.cancel_scope)
        try:
            while data := await stream.receive_some(CHUNK):
                await sink.send_all(bytes(data))
        except (OSError, trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # one side has ended, so stop copying
        nursery.cancel_scope.cancel()
