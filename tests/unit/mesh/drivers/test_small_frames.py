"""Empty frames of a relay connection: other tasks run meanwhile, at both ends."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
import trio

from coder.mesh.core.crypto.keys import PrivateKey
from coder.mesh.core.wire import derp
from coder.mesh.drivers.derp_client_queue import CONTROL_FRAMES, DerpSendQueue
from coder.mesh.drivers.derp_connection import RelayConnection
from coder.mesh.drivers.derp_server import DerpServer
from coder.mesh.drivers.derp_server_client import ConnectedClient
from coder.mesh.drivers.framing import MANY_FRAMES, READ_SIZE, FrameBuffer
from tests.kit.event_loop_probes import counted_turns, peer_says

KEY, OTHER = PrivateKey(bytes(31) + b"\1"), PrivateKey(bytes(31) + b"\2")
UNKNOWN = derp.UnknownFrame(0x77, b"").encode()
PING = derp.DerpPing(bytes(8)).encode()
FLOODS = {
    "unknown": UNKNOWN * (READ_SIZE // len(UNKNOWN)),
    "pings": PING * (READ_SIZE // len(PING)),
    "by turns": b"".join(
        derp.encode_send_packet(key.public, b"") + derp.encode_recv_packet(key.public, b"")
        for key in (KEY, OTHER) * 2000
    ),
}

ENDS = 3
"Turns that may be missing: trio orders the tasks of a round by chance, at both ends."


def frames_of(data: bytes) -> int:
    count = at = 0
    while at < len(data):
        at += derp.HEADER.size + derp.HEADER.unpack_from(data, at)[1]
        count += 1
    return count


@pytest.mark.parametrize("kind", FLOODS)
async def test_relay_reader_yields_to_others(kind: str) -> None:
    stream = peer_says(FLOODS[kind])
    client = ConnectedClient(KEY.public, stream, mesh=False)
    async with counted_turns() as turns:
        await DerpServer(KEY)._read(client, FrameBuffer(stream, b""))
    assert client.bytes_in == len(FLOODS[kind])
    assert turns.count >= frames_of(FLOODS[kind]) // MANY_FRAMES - ENDS


@pytest.mark.parametrize("kind", FLOODS)
async def test_client_reader_yields_to_others(kind: str) -> None:
    events = SimpleNamespace(relay_packets=lambda *_: None, relay_flush=lambda: None)
    regions = SimpleNamespace(random=bytes)
    connection = RelayConnection(1, cast("Any", regions), cast("Any", events))
    inbox = FrameBuffer(peer_says(FLOODS[kind]), b"")
    async with counted_turns() as turns:
        await connection._read(inbox, cast("Any", None))
    assert not inbox.buffer
    assert turns.count >= frames_of(FLOODS[kind]) // MANY_FRAMES // 2 - ENDS  # of two keys each, a run


async def test_handshake_reader_yields_to_others() -> None:
    inbox = FrameBuffer(peer_says(b""), FLOODS["unknown"])
    async with counted_turns() as turns:
        for _ in range(frames_of(FLOODS["unknown"])):
            await inbox.frame()
    assert turns.count >= frames_of(FLOODS["unknown"]) // MANY_FRAMES - ENDS
    await trio.lowlevel.checkpoint()


def test_pongs_for_unread_relay_dropped() -> None:
    queue = DerpSendQueue()
    for _ in range(4 * CONTROL_FRAMES):
        queue.put_control(PING)
    assert len(queue.take()) == CONTROL_FRAMES * len(PING)
