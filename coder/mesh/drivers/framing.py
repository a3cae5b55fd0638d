"""Read buffer of a DERP byte stream, shared by both ends of a relay connection.

The codec is `core/wire/derp_reader.py`; this is the buffer in front of it. Packets are moved by slicing the buffer in
place, because a value per frame would cost as much as forwarding it.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Sequence
from typing import TYPE_CHECKING

import trio

from coder.mesh.core.errors import WireError
from coder.mesh.core.wire import derp, derp_reader

if TYPE_CHECKING:
    from coder.mesh.drivers.relay_link import RelayLink

HEADER_SIZE = derp.HEADER.size
KEY_END = HEADER_SIZE + 32
"""Offset of the packet in a SendPacket or RecvPacket frame."""
MAX_PACKET_BODY = derp.MAX_PACKET + 32
READ_SIZE = 262_144
"""Large, because under load a read returns everything that arrived meanwhile and costs the same."""
RECORD_SIZE = 16_384
"""Plaintext of a TLS record at most."""
UNSENT = 131_072
MANY_FRAMES = 500
"""Ours: frames apart from a run of packets of one peer; other tasks get their turn after so many. A read of frames
without a body is fifty thousand."""


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
