"""A byte stream inside the process: connects a node with a relay in the same process.

Bounded, so that a slow reader slows its writer instead of growing memory. (trio's own memory streams belong to its
testing package and are unbounded.)
"""

from __future__ import annotations

from collections import deque

import trio

CAPACITY = 256 * 1024


class _ByteQueue:
    """Bytes in one direction."""

    __slots__ = ("broken", "changed", "chunks", "closed", "size")

    def __init__(self) -> None:
        self.chunks: deque[bytes] = deque()
        self.size = 0
        self.closed = False
        self.broken = False
        self.changed = trio.lowlevel.ParkingLot()


class PipeStream(trio.abc.HalfCloseableStream):
    """End of a pair; see `pipe_pair`."""

    def __init__(self, outgoing: _ByteQueue, incoming: _ByteQueue, capacity: int) -> None:
        self._out = outgoing
        self._in = incoming
        self._capacity = capacity
        self._closed = False

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Queue the bytes; waits while the other end has more than the capacity to read."""
        await trio.lowlevel.checkpoint()
        self._check_sending()
        if data:
            self._out.chunks.append(bytes(data))
            self._out.size += len(data)
            self._out.changed.unpark_all()
        await self.wait_send_all_might_not_block()

    async def wait_send_all_might_not_block(self) -> None:
        """Wait until the other end has read enough."""
        while self._out.size > self._capacity:
            self._check_sending()
            await self._out.changed.park()

    def _check_sending(self) -> None:
        if self._closed or self._out.closed:
            raise trio.ClosedResourceError
        if self._out.broken:
            raise trio.BrokenResourceError

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Return the next bytes; empty at the end."""
        await trio.lowlevel.checkpoint()
        lane = self._in
        while not lane.chunks:
            if self._closed:
                raise trio.ClosedResourceError
            if lane.closed:
                return b""
            await lane.changed.park()
        if max_bytes is None or lane.size <= max_bytes:
            data = b"".join(lane.chunks)
            lane.chunks.clear()
        else:
            data = lane.chunks.popleft()
            if len(data) > max_bytes:
                lane.chunks.appendleft(data[max_bytes:])
                data = data[:max_bytes]
        lane.size -= len(data)
        lane.changed.unpark_all()
        return data

    async def send_eof(self) -> None:
        """End our direction."""
        await trio.lowlevel.checkpoint()
        self._out.closed = True
        self._out.changed.unpark_all()

    async def aclose(self) -> None:
        """Close both directions; bytes the other end has not read yet stay readable."""
        self.close()
        await trio.lowlevel.checkpoint()

    def close(self) -> None:
        """`aclose` without the checkpoint."""
        self._closed = True
        self._out.closed = True
        self._in.broken = True
        self._out.changed.unpark_all()
        self._in.changed.unpark_all()


def pipe_pair(capacity: int = CAPACITY) -> tuple[PipeStream, PipeStream]:
    """Return two connected ends."""
    forward, backward = _ByteQueue(), _ByteQueue()
    return PipeStream(forward, backward, capacity), PipeStream(backward, forward, capacity)
