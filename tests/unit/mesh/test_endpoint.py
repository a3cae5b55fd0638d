"""Two endpoints over a simulated network: relay first, direct when disco confirms, back when the path dies."""

import itertools
import random
from collections.abc import Callable, Sequence
from typing import Any

from coder.mesh.core.crypto.keys import PrivateKey, PublicKey
from coder.mesh.core.endpoint import RELAY_PACKET, Endpoint, PeerConfig
from coder.mesh.core.paths.candidates import Address
from coder.mesh.core.paths.probing import PingAnswered
from coder.mesh.core.paths.selector import State
from coder.mesh.core.wire import ip
from coder.mesh.core.wire.batch import Batch, TxBuf

REGION = 7


class FakeStack:
    """Remembers what came in; sends what the test queued."""

    def __init__(self) -> None:
        self.received: list[bytes] = []
        self.paused: set[bytes] = set()
        self.mtus: dict[bytes, int | None] = {}
        self.changes: list[bytes] = []
        self.resets: list[bytes] = []
        self.queue: list[tuple[bytes, list[bytes]]] = []
        self.bulk: list[tuple[bytes, list[bytes]]] = []

    def input_batch(self, packets: list[bytes], now: float) -> None:
        self.received += packets

    def emit(self, txbuf: TxBuf, now: float) -> Batch | None:
        if not self.bulk:
            return None
        destination, packets = self.bulk.pop(0)
        size = len(packets[0])
        layout = txbuf.layout(size)
        for i, packet in enumerate(packets):
            layout.plain[i][: len(packet)] = packet
        return Batch(destination, len(packets), size, len(packets[-1]))

    def take_output(self, now: float) -> list[tuple[bytes, list[bytes]]]:
        queue, self.queue = self.queue, []
        return queue

    def next_wake(self) -> float | None:
        return None

    def path_changed(self, destination: bytes, now: float) -> None:
        self.changes.append(destination)

    def set_mtu_to(self, destination: bytes, mtu: int | None) -> None:
        self.mtus[destination] = mtu

    def pause(self, destination: bytes) -> None:
        self.paused.add(destination)

    def resume(self, destination: bytes) -> None:
        self.paused.discard(destination)

    def reset_peer(self, destination: bytes, now: float) -> None:
        self.resets.append(destination)

    def on_timer(self, now: float) -> None:
        pass


class Machine:
    """One endpoint and its sink."""

    def __init__(self, world: "World", number: int, *, direct: bool = True) -> None:
        self.world = world
        self.udp_address: Address = (f"203.0.113.{number}", 1000 + number)
        self.overlay = bytes([0xFD, 0x7A, *bytes(13), number])
        self.stack = FakeStack()
        private = PrivateKey(bytes([number]) * 32)
        self.endpoint = Endpoint(
            private,
            PrivateKey(bytes([100 + number]) * 32),
            self.stack,  # type: ignore[arg-type]
            self,
            random.Random(number).randbytes,
            wall_offset=1.7e9,
            direct=direct,
        )
        self.key = private.public
        self.answers: list[tuple[PingAnswered, int]] = []
        self.wanted = 0
        self.alive: list[PublicKey] = []
        self.paths: list[tuple[State, Address | None]] = []
        self.sent_udp = 0
        self.sent_relay = 0
        self.relay_is_long = False

    def config(self, **changes: Any) -> PeerConfig:
        values: dict[str, Any] = {
            "public_key": self.key,
            "disco_key": self.endpoint.disco_key,
            "allowed_ips": (self.overlay,),
            "home_derp": REGION,
            "endpoints": (self.udp_address,),
        }
        return PeerConfig(**(values | changes))

    def packet(self, to: "Machine", text: bytes) -> bytes:
        return ip.header(59, self.overlay, to.overlay, len(text)) + text

    def say(self, to: "Machine", *texts: bytes) -> None:
        self.stack.queue.append((to.overlay, [self.packet(to, text) for text in texts]))
        self.endpoint.flush(self.world.now)

    def heard(self) -> list[bytes]:
        return [packet[40 : 40 + int.from_bytes(packet[4:6], "big")] for packet in self.stack.received]

    # Sink
    def udp(self, datagrams: Sequence[bytes], to: Address) -> bool:
        self.sent_udp += len(datagrams)
        for datagram in datagrams:
            self.world.send_udp(self.udp_address, to, bytes(datagram))
        return True

    def udp_batch(self, batch: memoryview, segment: int, to: Address) -> bool:
        return self.udp([bytes(batch[at : at + segment]) for at in range(0, len(batch), segment)], to)

    def relay(self, region: int, to: bytes, packets: Sequence[bytes | memoryview]) -> bool:
        self.sent_relay += len(packets)
        self.world.send_relay(region, self.key, to, [bytes(packet) for packet in packets])
        return not self.relay_is_long

    def stun(self, datagram: bytes) -> None:
        raise AssertionError("nobody sends STUN here")

    def ping_answered(self, answer: PingAnswered, peer: PublicKey, region: int) -> None:
        self.answers.append((answer, region))

    def wants_endpoints(self) -> None:
        self.wanted += 1

    def peer_alive(self, peer: PublicKey) -> None:
        self.alive.append(peer)

    def path_changed(self, peer: PublicKey, state: State, address: Address | None) -> None:
        self.paths.append((state, address))


class World:
    """A network with delays; `passes` says which datagrams survive."""

    def __init__(self) -> None:
        self.now = 0.0
        self.machines: list[Machine] = []
        self.flying: list[tuple[float, int, Callable[[], None]]] = []
        self.serial = itertools.count()
        self.passes: Callable[[Address, Address, bytes], bool] = lambda source, to, datagram: True

    def add(self, number: int, **kwargs: Any) -> Machine:
        machine = Machine(self, number, **kwargs)
        self.machines.append(machine)
        machine.endpoint.set_own_endpoints([machine.udp_address], 0.0, 1e9)
        return machine

    def send_udp(self, source: Address, to: Address, datagram: bytes) -> None:
        machine = next((m for m in self.machines if m.udp_address == to), None)
        if machine is not None and self.passes(source, to, datagram):
            size = len(datagram)
            receive = machine.endpoint.receive_udp
            self._later(0.01, lambda: receive(bytearray(datagram), size, size, source, self.now), machine)

    def send_relay(self, region: int, source: bytes, to: bytes, packets: list[bytes]) -> None:
        machine = next((m for m in self.machines if m.key == to), None)
        if machine is not None:
            receive = machine.endpoint.receive_relay
            self._later(0.04, lambda: receive(region, bytes(source), packets, self.now), machine)

    def _later(self, delay: float, deliver: Callable[[], None], machine: Machine) -> None:
        def arrive() -> None:
            deliver()
            machine.endpoint.flush(self.now)

        self.flying.append((self.now + delay, next(self.serial), arrive))
        self.flying.sort(key=lambda item: item[:2])

    def run(self, until: float) -> None:
        while True:
            wakes = [m.endpoint.next_wake() for m in self.machines]
            times = [at for at in wakes if at is not None] + [item[0] for item in self.flying[:1]]
            at = min(times, default=until)
            if at > until:
                break
            self.now = max(self.now, at)
            if self.flying and self.flying[0][0] <= self.now:
                self.flying.pop(0)[2]()
                continue
            if not times:
                break
            for machine in self.machines:
                wake = machine.endpoint.next_wake()
                if wake is not None and wake <= self.now:
                    machine.endpoint.on_timer(self.now)
        self.now = until


def acquainted(world: World, **changes: Any) -> tuple[Machine, Machine]:
    one, two = world.add(1), world.add(2)
    one.endpoint.set_peer(two.config(**changes), 0.0)
    two.endpoint.set_peer(one.config(**changes), 0.0)
    return one, two


def state(machine: Machine, of: Machine) -> State:
    return machine.endpoint.peers[of.key].paths.selector.state


def test_the_first_packet_takes_the_relay_and_the_path_becomes_direct() -> None:
    world = World()
    one, two = acquainted(world)
    one.say(two, b"first")
    world.run(0.13)
    assert two.heard() == [b"first"]
    assert one.stack.mtus == {two.overlay: None}
    assert one.alive == [two.key]
    assert state(one, two) is State.DIRECT
    before = one.sent_relay
    one.say(two, b"second", b"third")
    world.run(0.2)
    assert two.heard() == [b"first", b"second", b"third"]
    assert one.sent_relay == before, "nothing takes the relay any more"


def test_bulk_batches_travel_sealed_in_place_by_both_paths() -> None:
    world = World()
    one, two = acquainted(world)
    texts = [bytes([i]) * 1240 for i in range(20)]
    one.stack.bulk.append((two.overlay, [one.packet(two, text) for text in texts]))
    one.endpoint.flush(0.0)
    world.run(1.0)
    assert two.heard() == texts, "staged until the handshake was done"
    assert state(one, two) is State.DIRECT
    one.stack.bulk.append((two.overlay, [one.packet(two, text) for text in texts]))
    one.endpoint.flush(world.now)
    world.run(1.1)
    assert two.heard() == texts * 2


def test_a_dying_path_gives_way_to_the_relay_within_five_seconds_and_comes_back() -> None:
    world = World()
    one, two = acquainted(world)
    sent = 0

    def chat(until: float) -> None:
        nonlocal sent
        while world.now < until:
            sent += 1
            one.say(two, b"%d" % sent)
            world.run(world.now + 0.1)

    chat(10.0)
    assert state(one, two) is State.DIRECT
    world.passes = lambda *_: False
    chat(15.0)
    first_lost = 101
    heard = {int(text) for text in two.heard()}
    world.run(15.1)
    chat(20.0)
    heard = {int(text) for text in two.heard()}
    lost = set(range(1, sent)) - heard
    assert lost
    assert min(lost) >= first_lost
    assert max(lost) < first_lost + 50, "five seconds at ten packets a second"
    world.passes = lambda *_: True
    chat(30.0)
    assert state(one, two) is State.DIRECT
    where = two.udp_address
    direct, doubtful = (State.DIRECT, where), (State.DOUBTFUL, where)
    assert one.paths in ([direct, doubtful, direct], [direct, doubtful, (State.RELAYED, None), direct])


def test_blocked_udp_stays_on_the_relay() -> None:
    world = World()
    world.passes = lambda *_: False
    one, two = acquainted(world)
    for _ in range(30):
        one.say(two, b"x")
        world.run(world.now + 1.0)
    assert len(two.heard()) == 30
    assert state(one, two) is State.RELAYED


def test_wireguard_from_an_address_not_learnt_by_disco_is_dropped() -> None:
    world = World()
    one, two = acquainted(world)
    one.say(two, b"hello")
    world.run(0.2)
    spy: list[bytes] = []
    world.passes = lambda source, to, datagram: spy.append(datagram) is not None
    one.say(two, b"secret")
    (data,) = [datagram for datagram in spy if datagram[0] == 4]
    two.endpoint.receive_udp(bytearray(data), len(data), len(data), ("198.51.100.1", 5), world.now)
    two.endpoint.flush(world.now)
    assert two.heard() == [b"hello"]
    assert two.endpoint.dropped_strangers == 1
    two.endpoint.receive_udp(bytearray(data), len(data), len(data), one.udp_address, world.now)
    two.endpoint.flush(world.now)
    assert two.heard() == [b"hello", b"secret"]


def test_a_coalesced_read_may_mix_everything() -> None:
    world = World()
    one, two = acquainted(world)
    one.say(two, b"hello")
    world.run(0.2)
    spy: list[bytes] = []
    world.passes = lambda source, to, datagram: spy.append(datagram) is not None
    size = 1310 - 72 - 6  # so that data and disco pings have about the same size
    one.stack.queue.append((two.overlay, [one.packet(two, bytes(size))] * 2))
    one.endpoint.flush(world.now)
    data = [datagram for datagram in spy if datagram[0] == 4]
    spy.clear()
    one.endpoint.ping(one.endpoint.peers[two.key], 5, world.now)
    (ping,) = spy
    assert len(data[0]) >= len(ping)
    buffer = bytearray(b"".join([*data, ping]))
    world.passes = lambda *_: True
    two.endpoint.receive_udp(buffer, len(buffer), len(data[0]), one.udp_address, world.now)
    two.endpoint.flush(world.now)
    assert two.heard() == [b"hello", bytes(size), bytes(size)]
    world.run(0.5)
    assert [answer.token for answer, _ in one.answers] == [5]


def test_pings_for_callers_come_back_by_relay_when_udp_is_blocked() -> None:
    world = World()
    world.passes = lambda *_: False
    one, two = acquainted(world)
    one.endpoint.ping(one.endpoint.peers[two.key], 9, 0.0)
    world.run(1.0)
    ((answer, region),) = one.answers
    assert (answer.token, answer.to, region) == (9, None, REGION)
    assert answer.latency == 0.08


def test_call_me_maybe_opens_a_firewall_on_the_other_side() -> None:
    """Two's firewall lets in only answers; two does not know where one is until it calls."""
    world = World()
    one, two = world.add(1), world.add(2)
    opened: set[Address] = set()

    def firewall(source: Address, to: Address, datagram: bytes) -> bool:
        if source == two.udp_address:
            opened.add(to)
            return True
        return to != two.udp_address or source in opened

    world.passes = firewall
    one.endpoint.set_peer(two.config(), 0.0)
    two.endpoint.set_peer(one.config(endpoints=()), 0.0)
    one.say(two, b"hello")
    world.run(1.0)
    assert state(one, two) is State.DIRECT


def test_a_call_waits_for_fresh_endpoints() -> None:
    world = World()
    one, two = acquainted(world)
    one.endpoint.set_own_endpoints([one.udp_address], 0.0, 0.0)
    one.say(two, b"hello")
    assert one.wanted == 1
    before = one.sent_relay
    one.endpoint.set_own_endpoints([one.udp_address], 0.0, 27.0)
    assert one.sent_relay == before + 1


def test_rebinding_starts_on_the_relay_again() -> None:
    world = World()
    one, two = acquainted(world)
    one.say(two, b"hello")
    world.run(0.5)
    assert state(one, two) is State.DIRECT
    one.endpoint.rebind(world.now)
    assert state(one, two) is State.RELAYED
    one.endpoint.set_own_endpoints([one.udp_address], world.now, 27.0)
    one.say(two, b"again")
    world.run(1.0)
    assert two.heard()[-1] == b"again"
    assert state(one, two) is State.DIRECT


def test_direct_paths_forbidden_on_one_side() -> None:
    world = World()
    one, two = world.add(1, direct=False), world.add(2)
    one.endpoint.set_peer(two.config(), 0.0)
    two.endpoint.set_peer(one.config(endpoints=()), 0.0)
    for _ in range(5):
        one.say(two, b"x")
        two.say(one, b"y")
        world.run(world.now + 1.0)
    assert one.sent_udp == 0
    assert len(two.heard()) == len(one.heard()) == 5


def test_removed_peers_leave_nothing_behind() -> None:
    world = World()
    one, two = acquainted(world)
    one.say(two, b"hello")
    world.run(1.0)
    one.endpoint.remove_peer(two.key, world.now)
    one.endpoint.remove_peer(two.key, world.now)
    assert one.stack.resets == [two.overlay]
    assert one.endpoint.next_wake() is None
    assert not one.endpoint._by_address.by_address
    assert one.endpoint.peer_of(two.overlay) is None
    two.say(one, b"anybody there?")
    world.run(5.0)
    assert one.heard() == []


def test_a_peer_with_a_new_disco_key_is_probed_anew() -> None:
    world = World()
    one, two = acquainted(world)
    one.say(two, b"hello")
    world.run(1.0)
    other = PrivateKey(bytes([55]) * 32).public
    one.endpoint.set_peer(two.config(disco_key=other), world.now)
    assert state(one, two) is State.RELAYED
    one.endpoint.set_peer(two.config(disco_key=PublicKey(bytes(32))), world.now)
    one.say(two, b"still there")
    world.run(2.0)
    assert two.heard()[-1] == b"still there", "without disco the relay carries everything"


def test_an_idle_pair_falls_silent() -> None:
    world = World()
    one, two = acquainted(world)
    one.say(two, b"hello")
    world.run(1000.0)
    assert one.endpoint.next_wake() is None
    assert two.endpoint.next_wake() is None


def test_garbage_is_ignored() -> None:
    world = World()
    one, two = acquainted(world)
    one.say(two, b"hello")
    world.run(1.0)
    generator = random.Random(5)
    for _ in range(300):
        junk = bytearray(generator.randbytes(generator.randrange(1, 200)))
        if generator.random() < 0.5:
            junk[:6] = b"TS\xf0\x9f\x92\xac"
            junk[6:38] = one.endpoint.disco_key
        elif generator.random() < 0.5:
            junk[:1] = bytes([generator.randrange(1, 5)])
        segment = generator.randrange(1, len(junk) + 1)
        two.endpoint.receive_udp(junk, len(junk), segment, one.udp_address, world.now)
        two.endpoint.receive_relay(REGION, one.key, [bytes(junk)], world.now)
    two.endpoint.flush(world.now)
    one.say(two, b"fine")
    world.run(2.0)
    assert two.heard() == [b"hello", b"fine"]


def test_a_long_relay_queue_pauses_the_peers_that_use_it() -> None:
    world = World()
    world.passes = lambda *_: False
    one, two = acquainted(world)
    one.relay_is_long = True
    one.say(two, b"hello")
    world.run(0.5)
    assert one.stack.paused == {two.overlay}
    assert two.heard() == [b"hello"], "what is in the queue is delivered"
    one.endpoint.relay_drained(REGION + 1)
    assert one.stack.paused
    one.endpoint.relay_drained(REGION)
    assert not one.stack.paused


def test_large_packets_take_the_relay_whatever_the_path() -> None:
    world = World()
    one, two = acquainted(world)
    assert one.stack.mtus == {two.overlay: RELAY_PACKET}
    one.say(two, b"hello")
    world.run(0.5)
    assert state(one, two) is State.DIRECT
    sent_udp = one.sent_udp
    one.say(two, bytes(5000))
    one.stack.bulk.append((two.overlay, [one.packet(two, bytes(RELAY_PACKET - 40))] * 3))
    one.endpoint.flush(world.now)
    assert one.sent_udp == sent_udp
    world.run(1.0)
    assert [len(text) for text in two.heard()] == [5, 5000] + [RELAY_PACKET - 40] * 3
    assert state(one, two) is State.DIRECT


def test_a_direct_path_does_not_wait_for_the_relay() -> None:
    world = World()
    one, two = acquainted(world)
    one.relay_is_long = True
    one.say(two, b"hello")
    assert one.stack.paused == {two.overlay}
    world.run(0.5)
    assert state(one, two) is State.DIRECT
    assert not one.stack.paused


def test_keys_are_renewed_without_losing_a_packet() -> None:
    world = World()
    one, two = acquainted(world)
    for number in range(600):
        one.say(two, b"%d" % number)
        world.run(world.now + 1.0)
    assert [int(text) for text in two.heard()] == list(range(600))
    assert len(one.alive) >= 5, "every two minutes"


def test_a_pair_that_was_silent_for_an_hour_begins_again_at_once() -> None:
    world = World()
    one, two = acquainted(world)
    one.say(two, b"before")
    world.run(3600.0)
    two.say(one, b"after")
    world.run(3600.3)
    assert one.heard() == [b"after"]
    assert state(two, one) is State.DIRECT
