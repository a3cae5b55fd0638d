"""Clients of a relay without a node: a message exchange with its latency, and a link that only stays connected."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable

import trio

from coder.mesh.core.crypto.box import NONCE_SIZE, SharedBox
from coder.mesh.core.crypto.keys import PrivateKey, PublicKey
from coder.mesh.core.errors import MeshError, WireError
from coder.mesh.core.wire import derp, derp_info
from coder.mesh.drivers.derp_connection import RetryDelays, requested_delay
from coder.mesh.drivers.derp_regions import CONNECT_TIMEOUT
from coder.mesh.drivers.framing import FrameBuffer
from coder.mesh.drivers.transport import DerpTransport

_MESSAGE = b"coder netcheck"
_REPEAT = 0.5
"""Ours: seconds until a message is sent again. A relay promises no delivery, and one of several replicas may not know
yet where the receiver is."""


class _Client:
    def __init__(self, transport: DerpTransport, private: PrivateKey | None = None) -> None:
        self.private = private or PrivateKey.generate(os.urandom)
        self.stream = transport.stream
        self.inbox = FrameBuffer(transport.stream, transport.leftover)

    async def log_in(self) -> None:
        server_key = await self.inbox.frame()
        if not isinstance(server_key, derp.ServerKey):
            raise WireError("unexpected_frame", "the first frame of a relay is its key")
        shared = SharedBox(self.private, server_key.key)
        info = derp_info.seal_client_info(shared, self.private.public, os.urandom(NONCE_SIZE), derp_info.ClientInfo())
        await self.stream.send_all(info.encode())
        while not isinstance(await self.inbox.frame(), derp.SealedServerInfo):
            pass

    async def send_repeatedly(self, to: PublicKey) -> None:
        """Send again and again, until cancelled.

        Only the writer repeats: not every stream survives a cancelled read.
        """
        message = derp.encode_send_packet(to, _MESSAGE)
        while True:
            await self.stream.send_all(message)
            await trio.sleep(_REPEAT)

    async def answer_pings(self) -> None:
        """Answer pings and discard packets until the relay closes the connection."""
        while True:
            frame = await self.inbox.frame()
            if isinstance(frame, derp.DerpPing):
                await self.stream.send_all(derp.DerpPong(frame.data).encode())

    async def receive(self) -> None:
        """Wait for the other's message."""
        while True:
            frame = await self.inbox.frame()
            if isinstance(frame, derp.RecvPacket) and frame.packet == _MESSAGE:
                return


async def exchange(first_transport: DerpTransport, second_transport: DerpTransport) -> float:
    """Return the seconds of a message to the second client and back. Closes both.

    Raises WireError, BrokenResourceError, OSError. Messages are repeated until they arrive: the caller sets the limit.
    """
    first, second = _Client(first_transport), _Client(second_transport)
    async with first_transport.stream, second_transport.stream:
        await first.log_in()
        await second.log_in()
        began = trio.current_time()
        for sender, receiver in ((first, second), (second, first)):
            try:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(sender.send_repeatedly, receiver.private.public)
                    await receiver.receive()
                    nursery.cancel_scope.cancel()
            except ExceptionGroup as group:
                raise group.exceptions[0] from None
        return trio.current_time() - began


async def keep_link(
    dial: Callable[[], Awaitable[DerpTransport]],
    private: PrivateKey,
    on_change: Callable[[bool], None],
    on_failure: Callable[[Exception], None],
) -> None:
    """Stay connected to a relay as the holder of `private`, its home, until cancelled; packets are discarded.

    A lost connection is repeated after the delays of a node's. `on_change` is called with whether the relay has
    accepted the key, `on_failure` with the cause of each end.
    """
    delays, was_connected = RetryDelays(), False

    def note(is_connected: bool) -> None:
        nonlocal was_connected
        was_connected = was_connected or is_connected
        on_change(is_connected)

    while True:
        began, was_connected, requested = trio.current_time(), False, 0.0
        try:
            await _hold_link(await dial(), private, note)
        except (MeshError, OSError, trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError) as error:
            on_failure(error)
            requested = requested_delay(error)
        seconds = trio.current_time() - began
        await trio.sleep(delays.after(seconds, was_connected=was_connected, requested=requested))


async def _hold_link(transport: DerpTransport, private: PrivateKey, on_change: Callable[[bool], None]) -> None:
    client = _Client(transport, private)
    async with transport.stream:
        with trio.fail_after(CONNECT_TIMEOUT):
            await client.log_in()
        await client.stream.send_all(derp.NotePreferred(preferred=True).encode())
        on_change(True)
        try:
            await client.answer_pings()
        finally:
            on_change(False)
