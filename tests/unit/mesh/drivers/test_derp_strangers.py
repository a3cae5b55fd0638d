"""Clients with keys that no coordinator knows, and the work of all readers: counted in frames and connections."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import trio
import trio.testing

from coder.mesh.core.crypto.box import SharedBox
from coder.mesh.core.crypto.keys import PrivateKey
from coder.mesh.core.stack.datagrams import UdpDatagram
from coder.mesh.core.wire import derp, derp_info
from coder.mesh.drivers import derp_server_client as strangers
from coder.mesh.drivers.derp_server import DerpServer
from coder.mesh.drivers.derp_server_client import ConnectedClient
from coder.mesh.drivers.derp_server_queue import QUEUE_BYTES, QUEUE_PACKETS, FairQueue
from coder.mesh.drivers.framing import READ_SIZE, FrameBuffer
from coder.mesh.drivers.overlay import MAX_FLOW_BYTES, UdpFlow
from coder.mesh.drivers.pipe import PipeStream, pipe_pair
from tests.kit.event_loop_probes import peer_says
from tests.unit.mesh.drivers.test_derp import private_key

UNKNOWN = derp.frame(0x7F, b"")
STRANGER, OTHER = "192.0.2.66", "192.0.2.9"


class Relay:
    """A relay, and the keys that its coordinator knows."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self.known: set[bytes] = set()
        self.questions = 0
        self.promoted: list[int] = []
        self.server = DerpServer(private_key(250), find_known=self._find_known)
        self._nursery = nursery

    async def _find_known(self, keys: Sequence[bytes]) -> set[bytes]:
        self.questions += 1
        await trio.lowlevel.checkpoint()
        return self.known & set(keys)

    def announce(self, number: int) -> None:
        self.known.add(bytes(private_key(number).public))

    async def connect(self, number: int, source: str | None) -> PipeStream | None:
        """Return the stream of a client; None when it was refused."""
        ours, theirs = pipe_pair(capacity=1 << 20)

        async def serve() -> None:
            await self.server.serve_connection(theirs, source=source, on_known=lambda: self.promoted.append(number))

        self._nursery.start_soon(serve)
        key = private_key(number)
        info = derp_info.seal_client_info(
            SharedBox(key, self.server.public_key), key.public, bytes(24), derp_info.ClientInfo()
        )
        await ours.send_all(info.encode())
        received = b""
        while len(received) <= len(derp.ServerKey(self.server.public_key).encode()):
            piece = await ours.receive_some()
            if not piece:
                return None
            received += piece
        return ours


@pytest.mark.parametrize("clients", [1, 8])
async def test_strangers_share_an_allowance(clients: int, autojump_clock: trio.testing.MockClock) -> None:
    async with trio.open_nursery() as nursery:
        relay = Relay(nursery)
        for number in range(1, clients + 1):
            stream = await relay.connect(number, STRANGER)
            assert stream is not None
            await stream.send_all(UNKNOWN * 20_000)
        other = await relay.connect(100, OTHER)
        assert other is not None
        await other.send_all(derp.DerpPing(bytes(8)).encode())
        await trio.sleep(10)
        allowed = strangers.STRANGERS_FRAMES * (strangers.STRANGERS_BURST + 10)
        assert relay.server.counters.unknown_frames <= allowed + clients * strangers.FRAMES_A_TURN
        assert relay.server.counters.unknown_frames >= allowed / 2
        assert relay.server.counters.pings == 1
        assert relay.questions <= 10 / strangers.ASK_EVERY + 1
        nursery.cancel_scope.cancel()


async def test_small_reads_count_as_frames(mock_clock: trio.testing.MockClock) -> None:
    """A frame that arrives byte by byte costs as much as one of a byte each."""
    reads = int(strangers.STRANGERS_FRAMES * strangers.STRANGERS_BURST) + 1
    async with trio.open_nursery() as nursery:
        relay = Relay(nursery)
        stream = await relay.connect(1, STRANGER)
        assert stream is not None
        for byte in derp.frame(0x7F, bytes(reads)):
            await stream.send_all(bytes([byte]))
            await trio.testing.wait_all_tasks_blocked()
        mock_clock.jump(1)
        await trio.testing.wait_all_tasks_blocked()
        assert relay.server.counters.throttled == 1
        nursery.cancel_scope.cancel()


async def test_announced_key_has_no_allowance(autojump_clock: trio.testing.MockClock) -> None:
    async with trio.open_nursery() as nursery:
        relay = Relay(nursery)
        relay.announce(1)
        for number in (1, 2):
            stream = await relay.connect(number, STRANGER)
            assert stream is not None
            await stream.send_all(UNKNOWN * 20_000)
        await trio.sleep(0)
        relay.announce(3)
        local = await relay.connect(4, None)
        assert local is not None
        await trio.sleep(5)
        assert relay.server.counters.unknown_frames >= 20_000
        assert relay.promoted == [4, 1]
        nursery.cancel_scope.cancel()


async def test_held_client_goes_on_with_the_answer(autojump_clock: trio.testing.MockClock) -> None:
    async with trio.open_nursery() as nursery:
        relay = Relay(nursery)
        seconds_to_answer = 0.01
        answer = relay.server._unknown._find_known  # type: ignore[union-attr]

        async def answer_later(keys: Sequence[bytes]) -> set[bytes]:
            await trio.sleep(seconds_to_answer)
            return await answer(keys)

        relay.server._unknown._find_known = answer_later  # type: ignore[union-attr]
        for number in (1, 2):
            relay.announce(number)
            stream = await relay.connect(number, STRANGER)
            assert stream is not None
            # Both exceed the allowance; only the first one asks.
            await stream.send_all(UNKNOWN * 5_000)
        began = trio.current_time()
        while relay.server.counters.unknown_frames < 10_000:
            await trio.sleep(seconds_to_answer / 2)
        assert relay.questions == 1
        assert trio.current_time() - began <= 2 * seconds_to_answer
        nursery.cancel_scope.cancel()


async def test_source_has_few_unknown_clients(autojump_clock: trio.testing.MockClock) -> None:
    async with trio.open_nursery() as nursery:
        relay = Relay(nursery)
        for number in range(strangers.MAX_STRANGERS):
            assert await relay.connect(number + 1, STRANGER)
        assert await relay.connect(200, STRANGER) is None
        assert await relay.connect(201, OTHER)
        assert relay.server.counters.refused == 1
        await trio.sleep(strangers.ASK_EVERY)
        relay.announce(7)
        assert await relay.connect(202, STRANGER), "one of the earlier ones is known by now"
        assert relay.promoted == [7]
        relay.announce(203)
        await trio.sleep(strangers.ASK_EVERY)
        assert await relay.connect(203, STRANGER), "known itself"
        nursery.cancel_scope.cancel()


async def test_known_keys_wait_for_the_question(autojump_clock: trio.testing.MockClock) -> None:
    """All agents behind one address return at once after a restart; some strangers are among them."""
    returning = [number + 1 for number in range(3 * strangers.MAX_STRANGERS)]
    foreign, accepted = set(returning[-10:]), []
    async with trio.open_nursery() as nursery:
        relay = Relay(nursery)
        for number in set(returning) - foreign:
            relay.announce(number)

        async def connect(number: int) -> None:
            if await relay.connect(number, STRANGER):
                accepted.append(number)

        async with trio.open_nursery() as connecting:
            for number in returning:
                connecting.start_soon(connect, number)
        assert set(returning) - foreign <= set(accepted)
        assert relay.questions <= 2
        nursery.cancel_scope.cancel()


async def test_few_wait_for_the_question(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(strangers, "MAX_WAITING", 20)
    async with trio.open_nursery() as nursery:
        relay = Relay(nursery)
        for number in range(strangers.MAX_STRANGERS):
            assert await relay.connect(number + 1, STRANGER)
        assert await relay.connect(200, STRANGER) is None  # the question
        for number in range(strangers.MAX_WAITING + 1):
            nursery.start_soon(relay.connect, 201 + number, STRANGER)
        await trio.testing.wait_all_tasks_blocked()
        assert relay.server.counters.refused == 2
        nursery.cancel_scope.cancel()


async def test_ended_clients_are_forgotten(autojump_clock: trio.testing.MockClock) -> None:
    async with trio.open_nursery() as nursery:
        relay = Relay(nursery)
        for number in range(2 * strangers.MAX_STRANGERS):
            stream = await relay.connect(number + 1, STRANGER)
            assert stream is not None
            await stream.aclose()
            await trio.sleep(0.1)
        assert relay.server._unknown is not None
        assert not relay.server._unknown._sources
        nursery.cancel_scope.cancel()


async def test_readers_share_a_turn(autojump_clock: trio.testing.MockClock) -> None:
    """Forty known clients: the frames of one turn are those of one."""
    server, per_turn = DerpServer(PrivateKey(bytes(31) + b"\1")), [0]
    readers = 40

    async def watch() -> None:
        before = 0
        while True:
            await trio.lowlevel.checkpoint()
            now = server.counters.unknown_frames
            per_turn.append(now - before)
            before = now

    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch)
        async with trio.open_nursery() as reading:
            for number in range(readers):
                stream = peer_says(UNKNOWN * 2000)
                client = ConnectedClient(private_key(number + 1).public, stream, mesh=False)
                reading.start_soon(server._read, client, FrameBuffer(stream, b""))
        nursery.cancel_scope.cancel()
    assert server.counters.unknown_frames == readers * 2000
    # Two turns' worth: the watcher runs at a random place of each turn. The first has what no reader has waited for.
    assert max(per_turn) <= 4 * strangers.FRAMES_A_TURN


async def test_ended_reader_blocks_no_others(autojump_clock: trio.testing.MockClock) -> None:
    turns, taken = strangers.FrameTurns(), list[int]()
    turns.spend(strangers.FRAMES_A_TURN)

    async def take(number: int, scope: trio.CancelScope) -> None:
        with scope:
            await turns.take()
            taken.append(number)

    async with trio.open_nursery() as nursery:
        scopes = [trio.CancelScope() for _ in range(50)]
        for number, scope in enumerate(scopes):
            nursery.start_soon(take, number, scope)
        for scope in scopes[::2]:
            scope.cancel()
    assert sorted(taken) == list(range(1, 50, 2))


def test_empty_frames_push_out_no_others() -> None:
    queue = FairQueue()
    for _ in range(150):
        queue.push(b"honest", 1, bytes(1200))
    for _ in range(5000):
        queue.push(b"flooder", 1, bytes(37))
    assert queue.shares[b"honest"].packets == 150
    assert queue.packets == QUEUE_PACKETS
    for _ in range(2000):
        queue.push(b"large", 1, bytes(60_000))
    assert queue.shares[b"honest"].packets == 150


def test_large_packets_pause_sender_before_loss() -> None:
    queue = FairQueue()
    dropped = 0
    while not queue.is_crowded_by(b"sender"):
        dropped += queue.push(b"sender", 1, bytes(32_640))
    # What a reader may still hold when its queue becomes crowded.
    dropped += queue.push(b"sender", 8, bytes(READ_SIZE))
    assert not dropped
    assert queue.bytes < QUEUE_BYTES
    assert not queue.is_crowded_by(b"another")


async def test_unread_flow_is_bounded_in_bytes() -> None:
    flow = UdpFlow(None, UdpDatagram(bytes(16), 1, bytes(16), 2, b""))  # type: ignore[arg-type]
    for number in range(1000):
        flow.arrived(bytes([number % 256]) * 60_000)
    assert sum(map(len, flow._queue)) <= MAX_FLOW_BYTES
    received = [await flow.receive() for _ in range(len(flow._queue))]
    assert received[-1][0] == 999 % 256
    flow.arrived(b"small")
    assert await flow.receive() == b"small"
