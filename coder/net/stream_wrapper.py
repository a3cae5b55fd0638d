"""Base class of streams that wrap another and change a method or two."""

from __future__ import annotations

import trio


class StreamWrapper(trio.abc.HalfCloseableStream):
    """Forwards every method."""

    def __init__(self, stream: trio.abc.HalfCloseableStream) -> None:
        self._stream = stream

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        return await self._stream.receive_some(max_bytes)

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self._stream.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def send_eof(self) -> None:
        await self._stream.send_eof()

    async def aclose(self) -> None:
        await self._stream.aclose()
