"""An asyncio transport over a trio stream, so that asyncssh runs on our user-space TCP without a kernel socket."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar, cast

import trio

P = TypeVar("P", bound=asyncio.Protocol)

HIGH_WATER = 1 << 20
"Bytes queued for sending before asyncssh is asked to pause; our own choice: one second at 8 Mbit/s."
MAX_UNSENT = 16 << 20
"""Bytes queued for sending (ours) beyond which nothing more is read: replies of a peer that does not read them. Data of
channels stops at HIGH_WATER, so a peer that reads never meets it."""
READ_SIZE = 256 << 10
PIECE = 32 << 10
"Bytes asyncssh gets per call: it processes every packet of them, a thousand empty ones, before it yields."


class StreamTransport(asyncio.Transport):
    """Attach a protocol with `attach`, then run `pump` in trio until the connection is over."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        super().__init__()
        self._stream = stream
        self._protocol: asyncio.Protocol | None = None
        self._chunks: list[bytes] = []
        self._size = 0
        self._write_wake = trio.Event()
        self._read_wake = trio.Event()
        self._read_wake.set()
        self._closing = False
        self._writing_paused = False
        self._room = trio.Event()
        self._room.set()
        "Set while less than MAX_UNSENT is queued."
        self._more_taken = False
        "More data of the same read is about to be given to the protocol."
        self._scope = trio.CancelScope()
        self._attached = trio.Event()

    def attach(self, protocol: asyncio.Protocol) -> None:
        self._protocol = protocol
        self._attached.set()

    # ---- called by asyncssh

    def get_extra_info(self, name: str, default: object = None) -> object:
        return {"peername": ("0.0.0.0", 0), "sockname": ("0.0.0.0", 0)}.get(name, default)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._closing or not data:
            return
        self._chunks.append(bytes(data))
        self._size += len(data)
        self._write_wake.set()
        if self._size > MAX_UNSENT and self._room.is_set():
            self._room = trio.Event()
        if self._size > HIGH_WATER and not self._writing_paused:
            self._writing_paused = True
            self._peer().pause_writing()

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        """End after everything written has been sent."""
        self._closing = True
        self._write_wake.set()

    def abort(self) -> None:
        self._closing = True
        self._chunks = []
        self._size = 0
        self._scope.cancel()

    def pause_reading(self) -> None:
        if self._read_wake.is_set():
            self._read_wake = trio.Event()

    def resume_reading(self) -> None:
        self._read_wake.set()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Ignore asyncssh's limits: ours bounds the agent's memory."""

    def get_write_buffer_size(self) -> int:
        return self._size

    def can_write_eof(self) -> bool:
        return False

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = cast(asyncio.Protocol, protocol)

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._peer()

    # ---- trio side

    async def create_connection(self, factory: Callable[[], P], _host: str, _port: int) -> tuple[asyncio.Transport, P]:
        """asyncssh's hook for connections it does not open itself: pass this object as its `tunnel`."""
        protocol = factory()
        self.attach(protocol)
        protocol.connection_made(self)
        return self, protocol

    async def pump(self) -> None:
        """Move bytes in both directions until one side ends, then notify the protocol."""
        await self._attached.wait()
        try:
            with self._scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._pump_in)
                    nursery.start_soon(self._pump_out)
        finally:
            self._closing = True
            self._peer().connection_lost(None)
            with trio.CancelScope(shield=True):
                await trio.aclose_forcefully(self._stream)

    async def _pump_in(self) -> None:
        try:
            while True:
                await self._read_wake.wait()
                await self._room.wait()
                data = bytes(await self._stream.receive_some(READ_SIZE))
                if not data:
                    break
                while data:
                    size = max(PIECE, self._missing())
                    self._more_taken = len(data) > size
                    self._peer().data_received(data[:size])
                    if data := data[size:]:
                        await self._read_wake.wait()
                        await self._room.wait()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self._scope.cancel()
            return
        if not self._peer().eof_received():
            self.close()

    def _missing(self) -> int:
        """Return the missing bytes of the packet that asyncssh is parsing.

        They are one message, however many they are. In pieces asyncssh would join all of them again each time.
        """
        peer = vars(self._peer())
        if not peer.get("_packet"):
            return 0
        whole: int = 4 + peer["_pktlen"] + peer["_recv_macsize"] - peer["_recv_blocksize"]
        return whole - len(peer["_inpbuf"])

    async def _pump_out(self) -> None:
        try:
            while True:
                while self._chunks:
                    await self._gather()
                    chunks, self._chunks = self._chunks, []
                    data = chunks[0] if len(chunks) == 1 else b"".join(chunks)
                    await self._stream.send_all(data)
                    self._size -= len(data)
                    self._resume()
                if self._closing:
                    break
                self._write_wake = trio.Event()
                await self._write_wake.wait()
            await self._stream.aclose()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # the reader sees the same end
        self._scope.cancel()

    async def _gather(self) -> None:
        """Send answers to one read together: a datagram for each would cost a fourth of a receiver's time.

        The wait ends with the pieces, some turns later, and depends on no other task: it does not apply while reading
        is paused.
        """
        while self._more_taken and self._read_wake.is_set() and self._size < PIECE and not self._closing:
            await trio.lowlevel.checkpoint()

    def _resume(self) -> None:
        if self._size <= HIGH_WATER:
            self._room.set()
        if self._writing_paused and self._size <= HIGH_WATER // 2:
            self._writing_paused = False
            self._peer().resume_writing()

    def _peer(self) -> asyncio.Protocol:
        if self._protocol is None:
            raise RuntimeError("transport used before its protocol was attached")
        return self._protocol
