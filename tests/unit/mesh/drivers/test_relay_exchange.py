"""A message through a relay and back, as in the network check and the deployment's health."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from coder.mesh.core.crypto.keys import PrivateKey
from coder.mesh.core.errors import WireError
from coder.mesh.core.wire import derp
from coder.mesh.drivers.derp_server import DerpServer
from coder.mesh.drivers.pipe import PipeStream, pipe_pair
from coder.mesh.drivers.relay_exchange import exchange
from coder.mesh.drivers.transport import DerpTransport


class Lossy(trio.abc.Stream):
    """A connection to a relay that drops the first packets."""

    def __init__(self, stream: PipeStream, lost: int) -> None:
        self.stream = stream
        self.lost = lost

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        if bytes(data[:1]) == bytes([derp.SEND_PACKET]) and self.lost:
            self.lost -= 1
            await trio.lowlevel.checkpoint()
        else:
            await self.stream.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self.stream.wait_send_all_might_not_block()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        return await self.stream.receive_some(max_bytes)

    async def aclose(self) -> None:
        await self.stream.aclose()


@pytest.mark.parametrize(("lost", "took"), [((0, 0), 0.0), ((1, 0), 0.5), ((0, 2), 1.0), ((1, 1), 1.0)])
async def test_lost_message_is_repeated(
    autojump_clock: trio.testing.MockClock, lost: tuple[int, int], took: float
) -> None:
    server = DerpServer(PrivateKey(bytes([9]) * 32))
    async with trio.open_nursery() as nursery:
        transports = []
        for count in lost:
            ours, theirs = pipe_pair()
            nursery.start_soon(server.serve_connection, theirs)
            transports.append(DerpTransport(Lossy(ours, count)))
        with trio.fail_after(5):
            assert await exchange(*transports) == pytest.approx(took, abs=0.01)


async def test_relay_that_hangs_up_is_reported(autojump_clock: trio.testing.MockClock) -> None:
    """A single error of the documented type, not a group."""
    server = DerpServer(PrivateKey(bytes([9]) * 32))
    async with trio.open_nursery() as nursery:
        transports = []
        for _ in range(2):
            ours, theirs = pipe_pair()
            nursery.start_soon(server.serve_connection, theirs)
            transports.append(DerpTransport(Lossy(ours, 1000)))

        async def hang_up() -> None:
            await trio.sleep(2)
            server.disconnect_all()

        nursery.start_soon(hang_up)
        with pytest.raises((WireError, trio.BrokenResourceError)):
            await exchange(*transports)
