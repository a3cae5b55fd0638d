"""Socket and read buffer of a DERP byte stream, shared by both ends of a relay connection.

The codec is `core/wire/derp_reader.py`; this is the buffer in front of it. Packets are moved by slicing the buffer in
place, because a value per frame would cost as much as forwarding it.

The socket and its TLS are read and written by system calls of our own: trio's streams cost a relay more than its
packets do. A write of one TLS record is a turn of the event loop, two locks and four context managers there. Here a
reader of one client writes what it has read to the socket of another one at once. Only a socket that takes no more
bytes is waited for.
"""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Sequence

import trio

from coder.mesh.core.errors import WireError
from coder.mesh.core.wire import derp, derp_reader

HEADER_SIZE = derp.HEADER.size
KEY_END = HEADER_SIZE + 32
"""Offset of the packet in a SendPacket or RecvPacket frame."""
MAX_PACKET_BODY = derp.MAX_PACKET + 32
READ_SIZE = 262_144
"""Large, because under load a read returns everything that arrived meanwhile and costs the same."""
RECORD_SIZE = 16_384
"""Plaintext of a TLS record at most."""
MANY_RECORDS = 500
"""Ours: records decrypted before other tasks get their turn. A read of records of one byte is eleven thousand, which
take 47 ms."""
UNSENT = 131_072
LEAST_TAKEN = 4096
"""Ours: bytes that a receiver takes at least in the time of a write. A flush may be 400 KB, and lines of 64 kbit/s
exist."""
MANY_FRAMES = 500
"""Ours: frames apart from a run of packets of one peer; other tasks get their turn after so many. A read of frames
without a body is fifty thousand."""


_scratch = memoryview(bytearray(READ_SIZE))
"""Where reads arrive; copied before the next one, as nothing here waits between the two."""
_NOTHING = memoryview(b"")
_UNUSED = ssl.MemoryBIO()
"""In the place of TLS's buffers where there is no TLS. Shared by all links, as `_NOTHING` is."""


class RelayLink:
    """Connected socket, after all handshakes. Its stream is closed by the owner, and not read or written any more."""

    __slots__ = ("_ended", "_fresh", "_incoming", "_outgoing", "_socket", "_ssl", "_unsent", "records")

    def __init__(self, sock: trio.socket.SocketType, tls: trio.SSLStream[trio.SocketStream] | None = None) -> None:
        self._socket = sock
        self._ssl = tls._ssl_object if tls is not None else None
        self._incoming = tls._incoming if tls is not None else _UNUSED
        self._outgoing = tls._outgoing if tls is not None else _UNUSED
        self._fresh = tls is not None
        """Whether more may have been received than was returned, by the stream or by the last read."""
        self.records = 0
        """Records decrypted so far; `FrameBuffer.take_records` resets it."""
        self._ended = False
        self._unsent = _NOTHING

    @staticmethod
    def of(stream: trio.abc.Stream) -> RelayLink | None:
        """Return the link of a stream; None where its bytes pass through anything but a socket and TLS."""
        if os.name != "posix":
            return None
        if isinstance(stream, trio.SSLStream):
            plain = stream.transport_stream
            is_ready = stream._delayed_outgoing is None and not stream._outgoing.pending
            return RelayLink(plain.socket, stream) if isinstance(plain, trio.SocketStream) and is_ready else None
        return RelayLink(stream.socket) if isinstance(stream, trio.SocketStream) else None

    @property
    def is_full(self) -> bool:
        """Whether bytes wait until the socket takes them; `drain` sends them."""
        return bool(self._unsent)

    async def read_into(self, buffer: bytearray, limit: int) -> bool:
        """Append what has arrived, about `limit` bytes at most; return False at the end of the stream.

        Raises OSError, trio.ClosedResourceError.
        """
        if self._ssl is not None and self._fresh:
            self._fresh = False
            if self._decrypt(self._ssl, buffer):
                await trio.lowlevel.checkpoint()
                return True
        while not self._ended:
            await trio.lowlevel.wait_readable(self._socket)
            try:
                size = os.readv(self._socket.fileno(), [_scratch[:limit]])
            except BlockingIOError:
                continue  # woken for nothing
            if not size:
                return False
            if self._ssl is None:
                buffer += _scratch[:size]
                return True
            self._incoming.write(_scratch[:size])
            if self._decrypt(self._ssl, buffer):
                return True
        return False

    def _decrypt(self, tls: ssl.SSLObject, buffer: bytearray) -> bool:
        """Append whole records that have arrived, MANY_RECORDS at most; return whether there were any."""
        before = len(buffer)
        count = 0
        try:
            for count in range(1, MANY_RECORDS + 1):  # noqa: B007
                data = tls.read(RECORD_SIZE)
                if not data:
                    self._ended = True
                    break
                buffer += data
                if not self._incoming.pending:
                    break
            else:
                self._fresh = True
        except ssl.SSLWantReadError:
            pass  # the rest of a record has not arrived
        except ssl.SSLError:
            self._ended = True  # after what was sound
        self.records += count
        return len(buffer) > before

    def write_now(self, data: bytes) -> bool:
        """Write; return whether the socket took everything. If not, `drain` before the next write.

        Raises OSError (an ssl.SSLError is one) when the connection is broken.
        """
        if self._ssl is not None:
            self._ssl.write(data)
            data = self._outgoing.read()
        try:
            sent = os.write(self._socket.fileno(), data)
        except BlockingIOError:
            sent = 0
        if sent == len(data):
            return True
        self._unsent = memoryview(data)[sent:]
        return False

    async def send_all(self, data: bytes) -> None:
        """Write everything, letting other tasks run. Raises OSError, trio.ClosedResourceError."""
        await self.drain()
        if self.write_now(data):
            await trio.lowlevel.checkpoint()
        else:
            await self.drain()

    async def send_steadily(self, data: bytes, seconds: float) -> bool:
        """Write like `send_all`, or drain if `data` is empty; return False when the socket took less than LEAST_TAKEN
        in so many seconds. Raises OSError, trio.ClosedResourceError."""
        if data and self.write_now(data):
            await trio.lowlevel.checkpoint()
            return True
        while left := len(self._unsent):
            with trio.move_on_after(seconds):
                await self.drain()
            self._write_rest()  # a socket is reported as writable only after it has sent half of what it held
            if self._unsent and len(self._unsent) > left - LEAST_TAKEN:
                return False
        return True

    async def drain(self) -> None:
        """Wait until the socket has taken all bytes. Raises OSError, trio.ClosedResourceError."""
        while self._unsent:
            await trio.lowlevel.wait_writable(self._socket)
            self._write_rest()

    def _write_rest(self) -> None:
        if self._unsent:
            try:
                self._unsent = self._unsent[os.write(self._socket.fileno(), self._unsent) :]
            except BlockingIOError:
                pass  # not yet


class FrameBuffer:
    """Unprocessed bytes of a connection."""

    __slots__ = ("_frames", "_tls", "buffer", "link", "stream")

    def __init__(self, stream: trio.abc.Stream, leftover: bytes) -> None:
        self.stream = stream
        self.buffer = bytearray(leftover)
        self._frames = 0
        self._tls = stream if isinstance(stream, trio.SSLStream) else None
        self.link: RelayLink | None = None
        """Once set, it is read in place of the stream."""

    async def more(self, limit: int = READ_SIZE) -> bool:
        """Read more; return False at the end of the stream."""
        if self.link is not None:
            return await self.link.read_into(self.buffer, limit)
        if self._tls is not None:
            return await self._more_records(self._tls, limit)
        data = await self.stream.receive_some(limit)
        self.buffer += data
        return bool(data)

    def take_records(self) -> int:
        """Return how many TLS records were read since the last call; 0 without a link."""
        if self.link is None:
            return 0
        records, self.link.records = self.link.records, 0
        return records

    async def _more_records(self, tls: trio.SSLStream[trio.abc.Stream], limit: int) -> bool:
        """Wait for one TLS record, then decrypt those that arrived with it, without a turn of the event loop each."""
        data = await tls.receive_some(min(limit, RECORD_SIZE))
        if not data:
            return False
        while data:
            self.buffer += data
            limit -= len(data)
            if limit <= 0:
                break
            try:
                data = tls._ssl_object.read(min(limit, RECORD_SIZE))
            except ssl.SSLError:  # no whole record is left; after any other error `receive_some` returns nothing
                break
        return True

    async def frame(self) -> derp.Frame:
        """Return the next frame as a value: for handshakes. Raises WireError when the stream ends."""
        self._frames += 1
        if self._frames % MANY_FRAMES == 0:
            await trio.lowlevel.checkpoint()
        while True:
            if len(self.buffer) >= HEADER_SIZE:
                kind, length = derp.HEADER.unpack_from(self.buffer)
                if length > derp.MAX_FRAME:
                    raise WireError("frame_too_long")
                end = HEADER_SIZE + length
                if len(self.buffer) >= end:
                    body = bytes(self.buffer[HEADER_SIZE:end])
                    del self.buffer[:end]
                    return derp_reader.parse_untrusted(kind, body)
            if not await self.more():
                raise WireError("ended_early", "the connection ended in the handshake")


def relay_frames(kind: int, key: bytes, packets: Sequence[bytes | memoryview]) -> bytes:
    """Return the frames that carry packets of one peer, as one piece."""
    parts: list[bytes | memoryview] = []
    size, prefix = -1, b""
    for packet in packets:
        if len(packet) != size:
            size = len(packet)
            prefix = derp.HEADER.pack(kind, 32 + size) + key
        parts.append(prefix)
        parts.append(packet)
    return b"".join(parts)


def limit_unsent(stream: trio.abc.Stream) -> None:
    """Limit unsent data in the kernel for a relay connection, wherever its socket is wrapped.

    Megabytes in a socket buffer are seconds on a slow uplink, during which a shell's next key waits behind a copy. In
    our own queue they can still be dropped or held back. Silently does nothing where the option is missing.
    """
    layer: trio.abc.Stream | None = stream
    for _ in range(4):
        sock = getattr(layer, "socket", None)
        if sock is not None:
            try:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            except (OSError, AttributeError):
                pass  # not TCP, or a system without the option
            return
        layer = getattr(layer, "transport_stream", None) or getattr(layer, "_stream", None)
