"""A stream of a yamux session on trio; the session is rpc/mux.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import trio

from coder.rpc.streams import SharedStream

CHUNK_OVERHEAD = 64
"Overhead of a chunk in bytes: a window of one-byte frames is not a quarter of a megabyte."
_MANY_CHUNKS = 32
"Chunks (ours) beyond which a reader joins them: to take the first of a window of one-byte frames would move the rest."


class Session(Protocol):
    """What a stream needs of its session (`Mux`)."""

    _unread: int

    def _consumed(self, stream: int, size: int) -> None: ...
    def _credit(self, stream: int) -> int: ...
    def _send(self, stream: int, data: memoryview) -> int: ...
    def _write_now(self) -> None: ...
    def _write_later(self) -> None: ...
    def _wake_writer(self) -> None: ...
    def _close_sending(self, stream: MuxStream) -> None: ...
    def _abandon(self, stream: MuxStream, dropped: int) -> None: ...
    async def _let_others_run(self) -> None: ...
    async def _wait_drained(self) -> None: ...


class MuxStream(SharedStream):
    """yamux stream. Errors are trio's: BrokenResourceError when the peer reset it or the transport ended."""

    def __init__(self, mux: Session, stream: int) -> None:
        self._mux = mux
        self.id = stream
        self._chunks: list[bytes | memoryview] = []
        "A list: an empty deque has 760 bytes."
        self._eof = False
        self._broken = ""
        self._closed = False
        self._changed = trio.Event()
        self._is_acknowledged = False
        self._on_arrival: Callable[[], None] | None = None

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        await trio.lowlevel.checkpoint()
        while not self._chunks:
            if self._eof and not self._closed:
                return b""
            self._check_open()
            await self._wait_change()
        self._check_open(reading=True)
        if len(self._chunks) > _MANY_CHUNKS:
            self._join()
        data = self._chunks.pop(0)
        if max_bytes is not None and len(data) > max_bytes:
            # A view: a frame may be a whole window, and small reads would copy the rest of it again and again.
            whole = memoryview(data)
            self._chunks.insert(0, whole[max_bytes:])
            data = whole[:max_bytes]
        else:
            self._mux._unread -= CHUNK_OVERHEAD
        self._mux._unread -= len(data)
        self._mux._consumed(self.id, len(data))
        return bytes(data)

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self._mux._let_others_run()
        rest = memoryview(data)
        while rest:
            self._check_open()
            await self._mux._wait_drained()
            self._check_open()
            sent = self._mux._send(self.id, rest)
            rest = rest[sent:]
            if rest:
                self._mux._wake_writer()
                if not sent:
                    await self._wait_change()
        self._mux._write_now()

    async def wait_send_all_might_not_block(self) -> None:
        while not self._mux._credit(self.id):
            self._check_open()
            await self._wait_change()
        await self._mux._wait_drained()

    async def send_eof(self) -> None:
        self._mux._close_sending(self)
        self._mux._write_now()
        await trio.lowlevel.checkpoint()

    async def aclose(self) -> None:
        """Half-close and drop everything the peer still sends; the peer's own end is awaited in the background."""
        self.abandon()
        await trio.lowlevel.checkpoint()

    def abandon(self) -> None:
        """Close like `aclose` without a checkpoint."""
        if not self._closed:
            self._close()
            self._mux._wake_writer()

    def end_later(self, data: bytes = b"") -> None:
        if self._closed:
            return
        if data and not self._broken and self._mux._credit(self.id) >= len(data):
            self._mux._send(self.id, memoryview(data))
        self._close()
        self._mux._write_later()

    def send_soon(self) -> None:
        self._mux._wake_writer()

    def watch(self, on_arrival: Callable[[], None] | None) -> None:
        self._on_arrival = on_arrival
        if on_arrival is not None and (self._chunks or self._eof or self._broken):
            on_arrival()

    def _close(self) -> None:
        self._closed = True
        self._mux._abandon(self, self._drop())
        self._wake()

    def _drop(self) -> int:
        """Drop the unread chunks; return their size."""
        dropped = sum(map(len, self._chunks))
        self._mux._unread -= dropped + CHUNK_OVERHEAD * len(self._chunks)
        self._chunks.clear()
        return dropped

    def _join(self) -> None:
        self._mux._unread -= CHUNK_OVERHEAD * (len(self._chunks) - 1)
        self._chunks = [b"".join(self._chunks)]

    # ---- called by the mux

    def _feed(self, data: bytes) -> None:
        if self._closed:
            self._mux._consumed(self.id, len(data))
        else:
            self._chunks.append(data)
            self._mux._unread += len(data) + CHUNK_OVERHEAD
            self._wake()
            self._notice()

    def _end(self) -> None:
        self._eof = True
        self._wake()
        self._notice()

    def _break(self, reason: str) -> None:
        self._broken = self._broken or reason
        self._wake()
        self._notice()

    def _notice(self) -> None:
        if self._on_arrival is not None:
            self._on_arrival()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    async def _wait_change(self) -> None:
        await self._changed.wait()

    def _check_open(self, *, reading: bool = False) -> None:
        if self._closed:
            raise trio.ClosedResourceError("the stream was closed here")
        # Data that arrived before a break is still returned.
        if self._broken and not reading:
            raise trio.BrokenResourceError(self._broken)
