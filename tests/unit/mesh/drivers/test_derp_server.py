"""Counters of a relay, and what it knows of the clients of another relay."""

from __future__ import annotations

import trio
import trio.testing

from coder.mesh.core.crypto.keys import PrivateKey
from coder.mesh.core.wire import derp
from coder.mesh.core.wire.disco import MAGIC
from coder.mesh.drivers.derp_mesh import keep_meshed
from coder.mesh.drivers.derp_server import DerpServer
from coder.mesh.drivers.derp_server_client import RelayPresence
from coder.mesh.drivers.pipe import PipeStream, pipe_pair
from coder.mesh.drivers.transport import DerpTransport
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


async def test_clients_that_left_other_relay_are_forgotten(autojump_clock: trio.testing.MockClock) -> None:
    """Otherwise each command line's key would stay for ever, and packets for it would wait at a link that is gone."""
    here, there = (DerpServer(private_key(9), mesh_key="ab" * 32) for _ in range(2))
    links: list[PipeStream] = []
    async with trio.open_nursery() as nursery:

        async def dial() -> DerpTransport:
            await trio.lowlevel.checkpoint()
            ours, theirs = pipe_pair()
            links.append(theirs)
            nursery.start_soon(there.serve_connection, theirs)
            return DerpTransport(ours)

        nursery.start_soon(keep_meshed, here, dial, "ab" * 32)
        leaving, _ = await client(there, nursery, 2)
        await client(there, nursery, 3)
        sender, _ = await client(here, nursery, 1)
        await trio.sleep(0.1)
        assert here.presence().elsewhere == 2
        await leaving.aclose()
        await trio.sleep(0.1)
        assert here.presence().elsewhere == 1
        await sender.send_all(derp.SendPacket(private_key(2).public, MAGIC + bytes(40)).encode())
        links[0].close()
        await trio.sleep(0.1)
        assert here.presence().elsewhere == 0, "until the next link"
        await trio.sleep(1)
        assert (len(links), here.presence().elsewhere) == (2, 1)
        assert (here.counters.forwarded_out, here.counters.notified_not_here) == (0, 1)
        nursery.cancel_scope.cancel()
