"""Any other overlay port is a port of this machine: dialled on loopback first, answered only when that worked."""

from __future__ import annotations

import trio

DIAL_TIMEOUT = 5.0
COPY = 256 << 10


async def dial_loopback(port: int) -> trio.SocketStream | None:
    """A connection to 127.0.0.1:port, else [::1]:port; None when nothing listens."""
    for host in ("127.0.0.1", "::1"):
        with trio.move_on_after(DIAL_TIMEOUT):
            try:
                return await trio.open_tcp_stream(host, port)
            except OSError:
                continue
    return None


async def splice(left: trio.abc.HalfCloseableStream, right: trio.abc.HalfCloseableStream) -> None:
    """Copies both ways, passing half closes on, until both are done or one breaks."""

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
