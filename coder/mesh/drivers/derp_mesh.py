"""Link of a relay to another relay of the same mesh: its clients, and forwarding to them.

Every relay of a deployment connects to every other with the shared mesh key and subscribes to its clients; packets for
a client there are forwarded, once. Obeys docs/protocol/derp.md, "Relays among themselves". `derp_server.py` processes
frames of our own clients; the dialer reaches the other relay.
"""

from __future__ import annotations

import math
import os
from collections.abc import Awaitable, Callable
from random import random

import trio

from coder.mesh.core.crypto.box import NONCE_SIZE, SharedBox
from coder.mesh.core.crypto.keys import PrivateKey
from coder.mesh.core.errors import CryptoError, MeshError, WireError
from coder.mesh.core.wire import derp, derp_info
from coder.mesh.drivers.derp_server import DerpServer
from coder.mesh.drivers.framing import HEADER_SIZE, KEY_END, FrameBuffer
from coder.mesh.drivers.transport import DerpTransport

Dial = Callable[[], Awaitable[DerpTransport]]
"""Opens a connection to the other relay. Raises RelayError, OSError, trio.BrokenResourceError."""

MIN_RETRY_DELAY, MAX_RETRY_DELAY = 0.25, 10.0
READ_TIMEOUT = 120.0
QUEUE_BYTES = 4 << 20
"""Ours: bytes that may wait for another relay; more is dropped, as for any slow reader."""

_ERRORS = (OSError, trio.BrokenResourceError, trio.TooSlowError, WireError, CryptoError, MeshError)


class _Link:
    """A connection to the other relay."""

    def __init__(self, server: DerpServer, stream: trio.abc.Stream) -> None:
        self._server = server
        self._stream = stream
        self._queue: list[bytes] = []
        self._size = 0
        self._wake = trio.Event()
        self._there: set[bytes] = set()

    def forward(self, destination: bytes, frames: bytes, packets: int) -> bool:
        """Queue RecvPacket frames of one sender as ForwardPackets."""
        if self._size + len(frames) > QUEUE_BYTES:
            return False
        at = 0
        for _ in range(packets):
            _, length = derp.HEADER.unpack_from(frames, at)
            end = at + HEADER_SIZE + length
            body = frames[at + HEADER_SIZE : at + KEY_END] + destination + frames[at + KEY_END : end]
            self._queue.append(derp.frame(derp.FORWARD_PACKET, body))
            self._size += len(body)
            at = end
        self._wake.set()
        return True

    def on_frame(self, frame: derp.Frame, own_key: bytes) -> None:
        """Process a frame of the other relay."""
        if isinstance(frame, derp.PeerPresent) and frame.key != own_key:
            self._there.add(frame.key)
            self._server.add_remote_peer(frame.key, self.forward)
        elif isinstance(frame, derp.PeerGone):
            self._there.discard(frame.key)
            self._server.remove_remote_peer(frame.key, self.forward)
        elif isinstance(frame, derp.DerpPing):
            self._queue.append(derp.DerpPong(frame.data).encode())
            self._wake.set()

    def forget(self) -> None:
        """Forget the connection's clients after it was lost."""
        for key in self._there:
            self._server.remove_remote_peer(key, self.forward)

    async def write(self) -> None:
        while True:
            await self._wake.wait()
            self._wake = trio.Event()
            data, self._queue, self._size = b"".join(self._queue), [], 0
            await self._stream.send_all(data)


async def keep_meshed(server: DerpServer, dial: Dial, mesh_key: str, private: PrivateKey | None = None) -> None:
    """Stay connected to another relay, for ever."""
    own_key = private or PrivateKey.generate(os.urandom)
    delay = MIN_RETRY_DELAY
    while True:
        opened_at = math.inf
        try:
            transport = await dial()
            opened_at = trio.current_time()
            async with transport.stream:
                await _mesh(server, transport, mesh_key, own_key)
        except* _ERRORS:
            pass  # it restarts, or the network failed: retried below
        if trio.current_time() - opened_at > delay:  # a proxy in between may accept for a relay that is down
            delay = MIN_RETRY_DELAY
        await trio.sleep(delay * (0.5 + random() / 2))
        delay = min(2 * delay, MAX_RETRY_DELAY)


async def _mesh(server: DerpServer, transport: DerpTransport, mesh_key: str, own_key: PrivateKey) -> None:
    inbox, stream = FrameBuffer(transport.stream, transport.leftover), transport.stream
    server_key = await inbox.frame()
    if not isinstance(server_key, derp.ServerKey):
        raise WireError("unexpected_frame", "the first frame of a relay is its key")
    box = SharedBox(own_key, server_key.key)
    info = derp_info.seal_client_info(
        box, own_key.public, os.urandom(NONCE_SIZE), derp_info.ClientInfo(mesh_key=mesh_key)
    )
    await stream.send_all(info.encode() + derp.WatchConns().encode())
    link = _Link(server, stream)
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(link.write)
            while True:
                with trio.fail_after(READ_TIMEOUT):
                    link.on_frame(await inbox.frame(), own_key.public)
    finally:
        link.forget()
