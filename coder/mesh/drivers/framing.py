"""A DERP byte stream before it is digested, shared by both ends of a relay connection.

The codec is `core/wire/derp.py`; this is the buffer in front of it. Packets are moved by slicing the buffer in place,
because a value per frame would cost as much as forwarding it.
"""

from __future__ import annotations

from collections.abc import Sequence

import trio

from coder.mesh.core.errors import WireError
from coder.mesh.core.wire import derp

HEADER_SIZE = derp.HEADER.size
KEY_END = HEADER_SIZE + 32
"""Where the packet begins in a SendPacket or RecvPacket frame."""
MAX_PACKET_BODY = derp.MAX_PACKET + 32
READ_SIZE = 65_536


class Inbox:
    """Bytes of a connection that are not digested yet."""

    __slots__ = ("buffer", "stream")

    def __init__(self, stream: trio.abc.Stream, leftover: bytes) -> None:
        self.stream = stream
        self.buffer = bytearray(leftover)

    async def more(self) -> bool:
        """Read on; False at the end of the stream."""
        data = await self.stream.receive_some(READ_SIZE)
        self.buffer += data
        return bool(data)

    async def frame(self) -> derp.Frame:
        """The next frame as a value: for handshakes. WireError when the stream ends."""
        while True:
            if len(self.buffer) >= HEADER_SIZE:
                kind, length = derp.HEADER.unpack_from(self.buffer)
                if length > derp.MAX_FRAME:
                    raise WireError("frame_too_long")
                end = HEADER_SIZE + length
                if len(self.buffer) >= end:
                    body = bytes(self.buffer[HEADER_SIZE:end])
                    del self.buffer[:end]
                    return derp.parse_untrusted(kind, body)
            if not await self.more():
                raise WireError("ended_early", "the connection ended in the handshake")


def relay_frames(kind: int, key: bytes, packets: Sequence[bytes | memoryview]) -> bytes:
    """Frames that carry packets to or from one peer, as one piece."""
    parts: list[bytes | memoryview] = []
    size, prefix = -1, b""
    for packet in packets:
        if len(packet) != size:
            size = len(packet)
            prefix = derp.HEADER.pack(kind, 32 + size) + key
        parts.append(prefix)
        parts.append(packet)
    return b"".join(parts)
