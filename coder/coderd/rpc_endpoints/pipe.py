"""In-process byte stream with two ends, for links whose other end is our own (built-in daemons)."""

from __future__ import annotations

import trio

_CHUNKS = 64
# Ours: writes in flight per direction; a further writer waits. A yamux window is a few of them.


class PipeEnd(trio.abc.HalfCloseableStream):
    """End of a pipe. Closing it ends the other's reading and breaks its writing, like a socket."""

    def __init__(self, send: trio.MemorySendChannel[bytes], receive: trio.MemoryReceiveChannel[bytes]) -> None:
        self._send = send
        self._receive = receive
        self._rest = b""

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        if data:
            await self._send.send(bytes(data))

    async def wait_send_all_might_not_block(self) -> None:
        await trio.lowlevel.checkpoint()

    async def send_eof(self) -> None:
        await self._send.aclose()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        if self._rest:
            await trio.lowlevel.checkpoint()
            data = self._rest
        else:
            try:
                data = await self._receive.receive()
            except trio.EndOfChannel:
                return b""
        take = len(data) if max_bytes is None else max_bytes
        self._rest = data[take:]
        return data[:take]

    async def aclose(self) -> None:
        self._send.close()
        self._receive.close()
        await trio.lowlevel.checkpoint()


def stream_pair() -> tuple[PipeEnd, PipeEnd]:
    """Return both ends of a new pipe."""
    outgoing, incoming = trio.open_memory_channel[bytes](_CHUNKS), trio.open_memory_channel[bytes](_CHUNKS)
    return PipeEnd(outgoing[0], incoming[1]), PipeEnd(incoming[0], outgoing[1])
