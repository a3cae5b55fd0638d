"""Can two clients of a relay talk to each other, and how long does it take? The relay's own protocol, by hand."""

from __future__ import annotations

import os

import trio

from coder.mesh.core.crypto.box import NONCE_SIZE, SharedBox
from coder.mesh.core.crypto.keys import PrivateKey
from coder.mesh.core.errors import WireError
from coder.mesh.core.wire import derp
from coder.mesh.drivers.framing import Inbox
from coder.mesh.drivers.transport import DerpTransport

_MESSAGE = b"coder netcheck"


class _Client:
    def __init__(self, transport: DerpTransport) -> None:
        self.private = PrivateKey.generate(os.urandom)
        self.stream = transport.stream
        self.inbox = Inbox(transport.stream, transport.leftover)

    async def log_in(self) -> None:
        hello = await self.inbox.frame()
        if not isinstance(hello, derp.ServerKey):
            raise WireError("unexpected_frame", "the first frame of a relay is its key")
        shared = SharedBox(self.private, hello.key)
        info = derp.seal_client_info(shared, self.private.public, os.urandom(NONCE_SIZE), derp.ClientInfo())
        await self.stream.send_all(info.encode())
        while not isinstance(await self.inbox.frame(), derp.SealedServerInfo):
            pass


async def exchange(one: DerpTransport, two: DerpTransport) -> float:
    """Seconds of a message from one to two and back. Closes both. Raises WireError, BrokenResourceError, OSError."""
    first, second = _Client(one), _Client(two)
    async with one.stream, two.stream:
        await first.log_in()
        await second.log_in()
        began = trio.current_time()
        for sender, receiver in ((first, second), (second, first)):
            await sender.stream.send_all(derp.encode_send_packet(receiver.private.public, _MESSAGE))
            while True:
                frame = await receiver.inbox.frame()
                if isinstance(frame, derp.RecvPacket) and frame.packet == _MESSAGE:
                    break
        return trio.current_time() - began
