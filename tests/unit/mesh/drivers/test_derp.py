"""The relay and its clients: the recorded conversation, queues under slow readers, reconnecting, idle regions."""

import itertools
import json

import pytest
import trio
import trio.testing

from coder.mesh.core.crypto.box import SharedBox
from coder.mesh.core.crypto.keys import PrivateKey, PublicKey
from coder.mesh.core.paths.derpmap import DerpMap, DerpNode, DerpRegion
from coder.mesh.core.wire import derp, derp_info, derp_reader
from coder.mesh.drivers.derp_client import RelayPool
from coder.mesh.drivers.derp_mesh import Dial, keep_meshed
from coder.mesh.drivers.derp_server import DerpServer
from coder.mesh.drivers.derp_server_queue import QUEUE_PACKETS
from coder.mesh.drivers.pipe import PipeStream, pipe_pair
from coder.mesh.drivers.transport import DerpTransport
from tests.kit.network.middleboxes import join
from tests.kit.paths import DATA

RECORDED = DATA / "wire" / "derp.json"
DISCO = b"TS\xf0\x9f\x92\xac"


def private_key(number: int) -> PrivateKey:
    return PrivateKey(bytes([number]) * 32)


def map_of(*numbers: int) -> DerpMap:
    return DerpMap({n: DerpRegion(n, f"r{n}", f"Region {n}", (DerpNode(f"{n}a", n, f"r{n}.test"),)) for n in numbers})


class Inbox:
    """Records a node's relay events."""

    def __init__(self) -> None:
        self.packets: list[tuple[int, bytes, bytes]] = []
        self.drained: list[int] = []
        self.gone: list[tuple[int, bytes]] = []
        self.states: list[tuple[int, bool]] = []
        self.changed = trio.lowlevel.ParkingLot()

    def relay_packets(self, region: int, source: bytes, packets: list[bytes]) -> None:
        self.packets += [(region, source, packet) for packet in packets]

    def relay_flush(self) -> None:
        self.changed.unpark_all()

    def relay_drained(self, region: int) -> None:
        self.drained.append(region)

    def relay_peer_gone(self, region: int, key: bytes) -> None:
        self.gone.append((region, key))
        self.changed.unpark_all()

    def relay_connected(self, region: int, connected: bool) -> None:
        self.states.append((region, connected))
        self.changed.unpark_all()


async def test_recorded_conversation(autojump_clock: trio.testing.MockClock) -> None:
    """Our relay sends the two recorded clients every byte that a genuine relay sent."""
    recorded = json.loads(RECORDED.read_text())
    frames = []
    for connection in recorded["connections"]:
        frames += [{**frame, "who": connection["client"]} for frame in connection["frames"]]
    frames.sort(key=lambda frame: frame["ms"])
    close_at = next(f["ms"] for f in frames if f["name"] == "close_peer")
    nonces = [bytes.fromhex(f["nonce"]) for f in frames if f["name"] == "server_info"]
    server = DerpServer(
        PrivateKey(bytes.fromhex(recorded["keys"]["server_private"])),
        mesh_key=recorded["keys"]["mesh_key"],
        random_bytes=lambda _: nonces.pop(0),
    )
    streams: dict[str, PipeStream] = {}
    received = {"A": b"", "B": b"", "M": b""}
    async with trio.open_nursery() as nursery:

        async def read(name: str) -> None:
            while data := await streams[name].receive_some():
                received[name] += data

        began = trio.current_time()
        for frame in frames:
            if frame["ms"] <= close_at:
                await trio.sleep_until(began + frame["ms"] / 1000)
            if frame["name"] == "server_key":
                ours, theirs = pipe_pair()
                streams[frame["who"]] = ours
                nursery.start_soon(server.serve_connection, theirs)
                nursery.start_soon(read, frame["who"])
            elif frame["dir"] == "c2s":
                await streams[frame["who"]].send_all(bytes.fromhex(frame["hex"]))
        await trio.sleep(0.5)
        await streams["A"].send_eof()
        await trio.sleep(0.1)
        assert server.counters.dropped_unknown == 2
        assert server.counters.forwarded_in == 1
        for name in ("A", "B", "M"):
            expected = [bytes.fromhex(f["hex"]) for f in frames if f["who"] == name and f["dir"] == "s2c"]
            received_frames = [derp.frame(*frame) for frame in derp_reader.FrameReader().feed_untrusted(received[name])]
            # Frames of one millisecond came from different tasks: their order is chance.
            assert sorted(received_frames) == sorted(expected)
        nursery.cancel_scope.cancel()


async def log_in(stream: trio.abc.Stream, key: PrivateKey, server: DerpServer) -> derp_reader.FrameReader:
    box = SharedBox(key, server.public_key)
    await stream.send_all(derp_info.seal_client_info(box, key.public, bytes(24), derp_info.ClientInfo()).encode())
    reader = derp_reader.FrameReader()
    kinds: list[int] = []
    while len(kinds) < 2:
        kinds += [kind for kind, _ in reader.feed_untrusted(bytes(await stream.receive_some()))]
    assert kinds == [derp.SERVER_KEY, derp.SERVER_INFO]
    return reader


async def client(server: DerpServer, nursery: trio.Nursery, number: int) -> tuple[PipeStream, derp_reader.FrameReader]:
    ours, theirs = pipe_pair(capacity=1000)
    nursery.start_soon(server.serve_connection, theirs)
    return ours, await log_in(ours, private_key(number), server)


class LateStream(PipeStream):
    """A stream whose writer learns late that the other end has its bytes already."""

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await super().send_all(data)
        await trio.sleep(1)


async def test_welcomed_client_can_receive(autojump_clock: trio.testing.MockClock) -> None:
    """The welcome is the first message."""
    server = DerpServer(private_key(9))
    async with trio.open_nursery() as nursery:
        sender, _ = await client(server, nursery, 1)
        ours, theirs = pipe_pair()
        theirs.__class__ = LateStream
        nursery.start_soon(server.serve_connection, theirs)

        async def send_repeatedly() -> None:
            while True:
                await sender.send_all(derp.encode_send_packet(private_key(2).public, b"news"))
                await trio.sleep(0.01)

        nursery.start_soon(send_repeatedly)
        await trio.sleep(0.5)
        box = SharedBox(private_key(2), server.public_key)
        await ours.send_all(
            derp_info.seal_client_info(box, private_key(2).public, bytes(24), derp_info.ClientInfo()).encode()
        )
        reader, kinds = derp_reader.FrameReader(), []
        while derp.SERVER_INFO not in kinds:
            kinds += [kind for kind, _ in reader.feed_untrusted(await ours.receive_some())]
        assert server.is_connected(private_key(2).public)
        while derp.RECV_PACKET not in kinds:
            kinds += [kind for kind, _ in reader.feed_untrusted(await ours.receive_some())]
        assert kinds[:3] == [derp.SERVER_KEY, derp.SERVER_INFO, derp.RECV_PACKET]
        nursery.cancel_scope.cancel()


async def test_slow_reader_loses_connection(
    autojump_clock: trio.testing.MockClock,
) -> None:
    server = DerpServer(private_key(9))
    async with trio.open_nursery() as nursery:
        sender, _ = await client(server, nursery, 1)
        slow, reader = await client(server, nursery, 2)
        to = private_key(2).public
        for number in range(3 * QUEUE_PACKETS):
            await sender.send_all(derp.encode_send_packet(to, number.to_bytes(4, "big") + bytes(1000)))
            if number % 64 == 0:
                await trio.testing.wait_all_tasks_blocked()
        await trio.testing.wait_all_tasks_blocked()
        assert QUEUE_PACKETS < server.counters.dropped_queue < 2 * QUEUE_PACKETS + 128
        await trio.sleep(2.1)
        assert server.counters.slow_closed == 1
        assert not server.is_connected(to)
        rest = b""
        while data := await slow.receive_some():
            rest += data
        numbers = [int.from_bytes(body[32:36], "big") for _, body in reader.feed_untrusted(rest)]
        assert numbers == sorted(numbers)
        nursery.cancel_scope.cancel()


async def test_last_writing_connection_receives(autojump_clock: trio.testing.MockClock) -> None:
    server = DerpServer(private_key(9))
    async with trio.open_nursery() as nursery:
        sender, _ = await client(server, nursery, 1)
        first, _ = await client(server, nursery, 2)
        second, _ = await client(server, nursery, 2)
        to, source = private_key(2).public, private_key(1).public
        await sender.send_all(derp.encode_send_packet(to, b"to the newest"))
        assert await second.receive_some() == derp.encode_recv_packet(source, b"to the newest")
        await first.send_all(derp.encode_send_packet(source, b"hello"))
        assert await sender.receive_some() == derp.encode_recv_packet(to, b"hello")
        await sender.send_all(derp.encode_send_packet(to, b"to the writer"))
        assert await first.receive_some() == derp.encode_recv_packet(source, b"to the writer")
        await first.aclose()
        await trio.testing.wait_all_tasks_blocked()
        await sender.send_all(derp.encode_send_packet(to, b"to the survivor"))
        assert await second.receive_some() == derp.encode_recv_packet(source, b"to the survivor")
        await second.aclose()
        assert await sender.receive_some() == derp.PeerGone(to).encode()
        nursery.cancel_scope.cancel()


async def test_absent_peers_reported_for_disco(
    autojump_clock: trio.testing.MockClock,
) -> None:
    server = DerpServer(private_key(9))
    absent_key = private_key(77).public
    async with trio.open_nursery() as nursery:
        sender, reader = await client(server, nursery, 1)
        await sender.send_all(derp.encode_send_packet(absent_key, b"data"))
        for _ in range(10):
            await sender.send_all(derp.encode_send_packet(absent_key, DISCO + bytes(100)))
        await sender.send_all(derp.DerpPing(b"the end!").encode())
        frames: list[tuple[int, bytes]] = []
        while (derp.PONG, b"the end!") not in frames:
            frames += reader.feed_untrusted(await sender.receive_some())
        assert frames[:-1] == [(derp.PEER_GONE, absent_key + b"\1")] * 3
        nursery.cancel_scope.cancel()


async def test_bad_clients_are_closed(autojump_clock: trio.testing.MockClock) -> None:
    server = DerpServer(private_key(9), mesh_key="ab" * 32)
    box = SharedBox(private_key(1), server.public_key)
    async with trio.open_nursery() as nursery:
        for first in (
            derp.SealedClientInfo(
                private_key(1).public, bytes(24), box.seal(bytes(24), b'{"meshKey":"\\ud800"}')
            ).encode(),
            derp.DerpPing(bytes(8)).encode(),
            derp.frame(derp.CLIENT_INFO, private_key(1).public + bytes(90)),
            derp.HEADER.pack(derp.CLIENT_INFO, 1 << 30),
        ):
            ours, theirs = pipe_pair()
            nursery.start_soon(server.serve_connection, theirs)
            await ours.send_all(first)
            await ours.receive_some()
            assert await ours.receive_some() == b""
        for later in (
            derp.HEADER.pack(derp.SEND_PACKET, derp.MAX_PACKET + 33),
            derp.WatchConns().encode(),
            derp.ForwardPacket(private_key(3).public, private_key(4).public, b"x").encode(),
            derp.frame(derp.SEND_PACKET, bytes(31)),
        ):
            ours, _ = await client(server, nursery, 1)
            await ours.send_all(later)
            assert await ours.receive_some() == b""
        silent, theirs = pipe_pair()
        nursery.start_soon(server.serve_connection, theirs)
        await silent.receive_some()
        began = trio.current_time()
        assert await silent.receive_some() == b""
        assert trio.current_time() - began <= 10.0
        assert server.counters.current == 0


async def test_keepalives(autojump_clock: trio.testing.MockClock) -> None:
    server = DerpServer(private_key(9))
    async with trio.open_nursery() as nursery:
        ours, _ = await client(server, nursery, 1)
        began = trio.current_time()
        for round_ in itertools.count(1):
            assert await ours.receive_some() == derp.KeepAlive().encode()
            assert 60 * round_ <= trio.current_time() - began <= 65.01 * round_
            if round_ == 3:
                break
        nursery.cancel_scope.cancel()


async def test_nodes_communicate_through_pool(autojump_clock: trio.testing.MockClock) -> None:
    server = DerpServer(private_key(9))
    async with trio.open_nursery() as nursery:
        inboxes = [Inbox(), Inbox()]
        pools = [
            RelayPool(nursery, server.in_memory_dialer(nursery), private_key(i + 1), map_of(7), inboxes[i])
            for i in range(2)
        ]
        for pool in pools:
            pool.set_home(7)
        # Packets are accepted before the connection is open.
        pools[0].send(7, private_key(2).public, [b"one", memoryview(b"two")])
        while len(inboxes[1].packets) < 2:
            if not inboxes[0].states or not inboxes[1].states:
                await inboxes[1].changed.park()
                pools[0].send(7, private_key(2).public, [b"one", b"two"])
            else:
                await inboxes[1].changed.park()
        assert inboxes[1].packets[:2] == [(7, private_key(1).public, b"one"), (7, private_key(1).public, b"two")]
        assert pools[0].is_connected(7)
        assert pools[0].status()[0].is_home
        server.disconnect_all()
        while inboxes[0].states != [(7, True), (7, False), (7, True)]:
            await inboxes[0].changed.park()
        nursery.cancel_scope.cancel()


async def test_idle_regions_close_home_stays(autojump_clock: trio.testing.MockClock) -> None:
    server = DerpServer(private_key(9))
    async with trio.open_nursery() as nursery:
        inbox = Inbox()
        pool = RelayPool(nursery, server.in_memory_dialer(nursery), private_key(1), map_of(1, 2), inbox)
        nursery.start_soon(pool.close_idle)
        pool.set_home(1)
        pool.send(2, private_key(2).public, [b"x"])
        await trio.sleep(30)
        assert sorted(s.region for s in pool.status()) == [1, 2]
        await trio.sleep(60)
        assert [s.region for s in pool.status()] == [1]
        pool.send(3, private_key(2).public, [b"no such region"])
        await trio.sleep(1)
        assert [s.region for s in pool.status()] == [1]
        nursery.cancel_scope.cancel()


async def test_unreachable_relay_is_retried(autojump_clock: trio.testing.MockClock) -> None:
    server = DerpServer(private_key(9))
    attempts = []
    async with trio.open_nursery() as nursery:
        dial = server.in_memory_dialer(nursery)

        async def fail_then_dial(region: DerpRegion, node: DerpNode, /) -> DerpTransport:
            attempts.append(trio.current_time())
            if len(attempts) < 8:
                raise (OSError, ValueError)[len(attempts) % 2]("no route")
            return await dial(region, node)

        inbox = Inbox()
        pool = RelayPool(nursery, fail_then_dial, private_key(1), map_of(1), inbox)
        pool.set_home(1)
        await trio.sleep(0.05)
        assert pool.status()[0].problem == "no route"
        while not inbox.states:
            await inbox.changed.park()
        gaps = [b - a for a, b in itertools.pairwise(attempts)]
        assert max(gaps) <= 2.5
        assert sum(gaps) > 3
        nursery.cancel_scope.cancel()


async def test_silent_relay_is_left(autojump_clock: trio.testing.MockClock) -> None:
    async with trio.open_nursery() as nursery:
        server_key = private_key(9)
        sides: list[PipeStream] = []

        async def dial(_region: DerpRegion, _node: DerpNode, /) -> DerpTransport:
            ours, theirs = pipe_pair()
            sides.append(theirs)
            return DerpTransport(ours, leftover=derp.ServerKey(server_key.public).encode())

        inbox = Inbox()
        pool = RelayPool(nursery, dial, private_key(1), map_of(1), inbox)
        pool.set_home(1)
        await trio.sleep(50)
        assert inbox.states == [(1, True)]
        await trio.sleep(3)  # pinged after 45 s of silence, waited 6 s
        assert inbox.states == [(1, True), (1, False), (1, True)]
        await sides[-1].send_all(derp.PeerGone(PublicKey(bytes(range(32))), 1).encode())
        await trio.sleep(0.1)
        assert inbox.gone == [(1, bytes(range(32)))]
        await sides[-1].send_all(derp.HEADER.pack(derp.RECV_PACKET, 1 << 31))
        await trio.sleep(1)
        assert inbox.states[3:] == [(1, False), (1, True)]
        pool.check()
        await trio.sleep(2)
        await sides[-1].send_all(derp.DerpPong(bytes(8)).encode())
        await trio.sleep(2)
        assert inbox.states[5:] == [], "it answered"
        pool.check()
        await trio.sleep(4)
        assert inbox.states[5:] == [(1, False), (1, True)], "it did not"
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(("limit", "expected"), [(60, 0), (20, 2), (4, 2)])
async def test_keepalives_adapt_to_cut_silences(
    autojump_clock: trio.testing.MockClock, limit: float, expected: int
) -> None:
    """A middlebox cuts idle connections after a while, and sends a reset: after two cuts there is no third.

    A minute of silence, which most such boxes allow, is never reached in the first place.
    """
    cuts = []

    async def cut_idle(one: PipeStream, two: PipeStream) -> None:
        await join(one, two, idle=limit)
        cuts.append(trio.current_time())
        await one.aclose()

    async with trio.open_nursery() as nursery:
        server = DerpServer(private_key(9))

        async def dial(_region: DerpRegion, _node: DerpNode, /) -> DerpTransport:
            ours, box = pipe_pair()
            behind, theirs = pipe_pair()
            nursery.start_soon(cut_idle, box, behind)
            nursery.start_soon(server.serve_connection, theirs)
            return DerpTransport(ours)

        pool = RelayPool(nursery, dial, private_key(1), map_of(1), Inbox())
        pool.set_home(1)
        await trio.sleep(3600)
        assert len(cuts) == expected
        assert limit / 4 < pool.status()[0].keepalive < limit
        nursery.cancel_scope.cancel()


async def test_long_queue_is_reported(autojump_clock: trio.testing.MockClock) -> None:
    async with trio.open_nursery() as nursery:
        sides: list[PipeStream] = []

        async def dial(_region: DerpRegion, _node: DerpNode, /) -> DerpTransport:
            ours, theirs = pipe_pair(capacity=1000)
            sides.append(theirs)
            return DerpTransport(ours, leftover=derp.ServerKey(private_key(9).public).encode())

        inbox = Inbox()
        pool = RelayPool(nursery, dial, private_key(1), map_of(1), inbox)
        to = private_key(2).public
        assert pool.send(1, to, [bytes(100_000)])
        assert pool.send(1, to, [bytes(100_000)])
        assert not pool.send(1, to, [bytes(100_000)])
        await trio.sleep(1)
        assert inbox.drained == [], "the queue is not read"
        received_bytes = 0
        while not inbox.drained:
            received_bytes += len(await sides[0].receive_some())
        assert inbox.drained == [1]
        assert pool.send(1, to, [b"x"])
        nursery.cancel_scope.cancel()


async def test_sender_slows_to_reader(autojump_clock: trio.testing.MockClock) -> None:
    """A receiver that reads, but slowly, gets everything; only its sender waits for it."""
    server = DerpServer(private_key(9))
    async with trio.open_nursery() as nursery:
        sender, _ = await client(server, nursery, 1)
        slow, reader = await client(server, nursery, 2)
        other, _ = await client(server, nursery, 3)
        total = 2000
        numbers: list[int] = []

        async def send() -> None:
            for number in range(total):
                packet = number.to_bytes(4, "big") + bytes(1000)
                await sender.send_all(derp.encode_send_packet(private_key(2).public, packet))
            await sender.send_all(derp.encode_send_packet(private_key(3).public, b"the end"))

        nursery.start_soon(send)
        while len(numbers) < total:
            await trio.sleep(0.01)
            frames = reader.feed_untrusted(await slow.receive_some(20_000))
            numbers += [int.from_bytes(body[32:36], "big") for _, body in frames]
        assert numbers == list(range(total))
        assert server.counters.dropped_queue == 0
        assert (await other.receive_some()).endswith(b"the end")
        nursery.cancel_scope.cancel()


async def test_greedy_sender_leaves_room(autojump_clock: trio.testing.MockClock) -> None:
    """One sender floods a slow reader; every packet of another sender comes through, and soon."""
    server = DerpServer(private_key(9))
    async with trio.open_nursery() as nursery:
        reader, frames = await client(server, nursery, 1)
        greedy, _ = await client(server, nursery, 2)
        modest, _ = await client(server, nursery, 3)
        to = private_key(1).public

        async def flood() -> None:
            while True:
                await trio.sleep(0.02)  # otherwise virtual time would not advance
                await greedy.send_all(derp.encode_send_packet(to, b"G" * 1200) * 40)

        async def send_modestly() -> None:
            for number in range(50):
                await trio.sleep(0.2)
                await modest.send_all(derp.encode_send_packet(to, number.to_bytes(4, "big") + bytes(100)))

        nursery.start_soon(flood)
        nursery.start_soon(send_modestly)
        arrivals: list[tuple[int, float]] = []
        began = trio.current_time()
        while len(arrivals) < 50:
            await trio.sleep(0.05)
            for kind, body in frames.feed_untrusted(await reader.receive_some(6_000)):
                if kind == derp.RECV_PACKET and body[32:33] != b"G":
                    arrivals.append((int.from_bytes(body[32:36], "big"), trio.current_time() - began))
        assert [number for number, _ in arrivals] == list(range(50))
        delays = [at - 0.2 * (number + 1) for number, at in arrivals]
        assert max(delays) < 4, "a turn, not the whole queue"
        nursery.cancel_scope.cancel()


async def test_rate_limit_slows_without_loss(autojump_clock: trio.testing.MockClock) -> None:
    server = DerpServer(private_key(9), rate=10_000, burst=20_000)
    async with trio.open_nursery() as nursery:
        reader, frames = await client(server, nursery, 1)
        sender, _ = await client(server, nursery, 2)
        packets = [derp.encode_send_packet(private_key(1).public, bytes([n]) * 963) for n in range(100)]  # 1000 B each
        began = trio.current_time()

        async def send() -> None:
            for packet in packets:
                await sender.send_all(packet)

        nursery.start_soon(send)
        received_frames = 0
        while received_frames < 100:
            received_frames += sum(
                kind == derp.RECV_PACKET for kind, _ in frames.feed_untrusted(await reader.receive_some())
            )
        took = trio.current_time() - began
        assert 7.5 < took < 9, "80,000 bytes beyond the burst at 10,000 a second"
        assert server.counters.throttled > 10
        assert server.counters.dropped_queue == 0
        nursery.cancel_scope.cancel()


async def test_two_relays_form_mesh(autojump_clock: trio.testing.MockClock) -> None:
    """Clients of different replicas communicate; when one moves, its packets follow; a lost replica is joined again."""
    one, two = (DerpServer(private_key(9), mesh_key="ab" * 32) for _ in range(2))
    streams: list[PipeStream] = []
    async with trio.open_nursery() as nursery:

        def dialer(server: DerpServer) -> Dial:
            async def dial() -> DerpTransport:
                await trio.lowlevel.checkpoint()
                ours, theirs = pipe_pair()
                streams.append(theirs)
                nursery.start_soon(server.serve_connection, theirs)
                return DerpTransport(ours)

            return dial

        nursery.start_soon(keep_meshed, one, dialer(two), "ab" * 32)
        nursery.start_soon(keep_meshed, two, dialer(one), "ab" * 32)
        ana, _ = await client(one, nursery, 1)
        ben, frames = await client(two, nursery, 2)
        await trio.sleep(0.1)

        async def exchange_text(text: bytes) -> bytes:
            await ana.send_all(derp.encode_send_packet(private_key(2).public, text))
            with trio.fail_after(1):
                while True:
                    for kind, body in frames.feed_untrusted(await ben.receive_some()):
                        if kind == derp.RECV_PACKET:
                            assert body[:32] == private_key(1).public
                            return body[32:]

        assert await exchange_text(b"across") == b"across"
        assert (one.counters.forwarded_out, two.counters.forwarded_in) == (1, 1)
        for stream in list(streams):
            stream.close()
        await trio.sleep(1)
        assert await exchange_text(b"again") == b"again"
        await ben.aclose()
        ben, frames = await client(one, nursery, 2)
        await trio.sleep(0.1)
        assert await exchange_text(b"here now") == b"here now"
        assert one.counters.forwarded_out == 2
        nursery.cancel_scope.cancel()


async def test_wrong_mesh_key_grants_nothing(autojump_clock: trio.testing.MockClock) -> None:
    server, other = DerpServer(private_key(9), mesh_key="ab" * 32), DerpServer(private_key(9), mesh_key="ab" * 32)
    dials = []
    async with trio.open_nursery() as nursery:

        async def dial() -> DerpTransport:
            dials.append(trio.current_time())
            ours, theirs = pipe_pair()
            nursery.start_soon(server.serve_connection, theirs)
            return DerpTransport(ours)

        nursery.start_soon(keep_meshed, other, dial, "cd" * 32)
        await client(server, nursery, 1)
        await trio.sleep(20)
        assert len(dials) > 2
        assert not other._elsewhere
        nursery.cancel_scope.cancel()
