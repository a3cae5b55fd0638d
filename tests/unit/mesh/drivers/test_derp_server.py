"""Counters of a relay."""

from __future__ import annotations

import trio
import trio.testing

from coder.mesh.core.crypto.keys import PrivateKey
from coder.mesh.core.wire import derp
from coder.mesh.core.wire.disco import MAGIC
from coder.mesh.drivers.derp_server import DerpServer
from coder.mesh.drivers.derp_server_client import RelayPresence
from tests.unit.mesh.drivers.test_derp import client, private_key


async def test_relay_counts_other_events(autojump_clock: trio.testing.MockClock) -> None:
    server = DerpServer(PrivateKey(bytes([9]) * 32))
    probe, plain = MAGIC + bytes(40), bytes(60)
    async with trio.open_nursery() as nursery:
        one, _ = await client(server, nursery, 1)
        two, _ = await client(server, nursery, 2)
        here, absent = private_key(2).public, private_key(3).public
        server.add_remote_peer(bytes(absent), lambda *_: False)
        server.add_remote_peer(bytes(here), lambda *_: False)
        assert server.presence() == RelayPresence(here=2, elsewhere=1, homes=0, watchers=0)
        for packet, to in ((probe, here), (plain, here), (plain, here), (probe, absent), (plain, absent)):
            await one.send_all(derp.SendPacket(to, packet).encode())
        for home in (True, True, False, True):
            await one.send_all(derp.NotePreferred(home).encode())
        await one.send_all(derp.DerpPing(bytes(8)).encode() + derp.frame(0x7F, b"") + derp.KeepAlive().encode())
        await trio.sleep(1)
        assert server.presence().homes == 1
        await two.aclose()
        await trio.sleep(1)
        counted = server.counters
        assert (counted.received, counted.received_disco) == (5, 2)
        assert (counted.dropped_unknown, counted.dropped_disco) == (2, 1)
        assert (counted.moves_in, counted.moves_out) == (2, 1)
        assert (counted.pings, counted.unknown_frames, counted.notified_not_here) == (1, 1, 1)
        assert server.presence() == RelayPresence(here=1, elsewhere=2, homes=1, watchers=0)
        await one.send_all(derp.SendPacket(private_key(1).public, plain).encode())
        await one.aclose()
        await trio.sleep(1)
        assert server.presence().homes == 0
        nursery.cancel_scope.cancel()
