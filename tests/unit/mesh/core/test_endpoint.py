"""Two endpoints over a simulated network: relay first, direct when disco confirms, back when the path dies."""

import random

import pytest

from coder.mesh.core.crypto.keys import PrivateKey, PublicKey
from coder.mesh.core.paths.candidates import Address
from coder.mesh.core.paths.selector import PathState
from coder.mesh.core.peers.path_actions import RELAY_PACKET
from tests.kit.network.simulated_endpoints import REGION, SimulatedNetwork, acquainted, state


def test_first_packet_by_relay_then_direct() -> None:
    world = SimulatedNetwork()
    one, two = acquainted(world)
    one.say(two, b"first")
    world.run(0.13)
    assert two.heard() == [b"first"]
    assert one.stack.mtus == {two.overlay: None}
    assert one.alive == [two.key]
    assert state(one, two) is PathState.DIRECT
    before = one.sent_relay
    one.say(two, b"second", b"third")
    world.run(0.2)
    assert two.heard() == [b"first", b"second", b"third"]
    assert one.sent_relay == before, "nothing takes the relay any more"


def test_bulk_batches_sealed_in_place() -> None:
    world = SimulatedNetwork()
    one, two = acquainted(world)
    texts = [bytes([i]) * 1240 for i in range(20)]
    one.stack.bulk.append((two.overlay, [one.packet(two, text) for text in texts]))
    one.endpoint.flush(0.0)
    world.run(1.0)
    assert two.heard() == texts, "staged until the handshake was done"
    assert state(one, two) is PathState.DIRECT
    one.stack.bulk.append((two.overlay, [one.packet(two, text) for text in texts]))
    one.endpoint.flush(world.now)
    world.run(1.1)
    assert two.heard() == texts * 2


def test_dying_path_falls_back() -> None:
    world = SimulatedNetwork()
    one, two = acquainted(world)
    sent = 0

    def send_until(until: float) -> None:
        nonlocal sent
        while world.now < until:
            sent += 1
            one.say(two, b"%d" % sent)
            world.run(world.now + 0.1)

    send_until(10.0)
    assert state(one, two) is PathState.DIRECT
    world.passes = lambda *_: False
    send_until(15.0)
    first_lost = 101
    heard = {int(text) for text in two.heard()}
    world.run(15.1)
    send_until(20.0)
    heard = {int(text) for text in two.heard()}
    lost = set(range(1, sent)) - heard
    assert lost
    assert min(lost) >= first_lost
    assert max(lost) < first_lost + 50, "five seconds at ten packets a second"
    world.passes = lambda *_: True
    send_until(30.0)
    assert state(one, two) is PathState.DIRECT
    where = two.udp_address
    direct, doubtful = (PathState.DIRECT, where), (PathState.DOUBTFUL, where)
    assert one.paths in ([direct, doubtful, direct], [direct, doubtful, (PathState.RELAYED, None), direct])


def test_late_relay_peer_retried_early(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = SimulatedNetwork()
    one, two = acquainted(world)

    def drop_at_relay(region: int, source: bytes, to: bytes, packets: list[bytes]) -> None:
        one.endpoint.relay_peer_gone(region, to, world.now)

    with monkeypatch.context() as absent:
        absent.setattr(world, "send_relay", drop_at_relay)
        one.say(two, b"first")
        world.run(0.01)
    world.run(1.0)
    assert two.heard() == [b"first"]
    one.endpoint.relay_peer_gone(REGION, bytes(32), world.now)  # an unknown peer


def test_blocked_udp_stays_on_relay() -> None:
    world = SimulatedNetwork()
    world.passes = lambda *_: False
    one, two = acquainted(world)
    for _ in range(30):
        one.say(two, b"x")
        world.run(world.now + 1.0)
    assert len(two.heard()) == 30
    assert state(one, two) is PathState.RELAYED


def test_wireguard_from_unlearnt_address_dropped() -> None:
    world = SimulatedNetwork()
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


def test_coalesced_read_may_mix_messages() -> None:
    world = SimulatedNetwork()
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


def test_caller_ping_by_relay() -> None:
    world = SimulatedNetwork()
    world.passes = lambda *_: False
    one, two = acquainted(world)
    one.endpoint.ping(one.endpoint.peers[two.key], 9, 0.0)
    world.run(1.0)
    ((answer, region),) = one.answers
    assert (answer.token, answer.to, region) == (9, None, REGION)
    assert answer.latency == 0.08


def test_call_opens_far_firewall() -> None:
    """Two's firewall lets in only answers; two does not know where one is until it calls."""
    world = SimulatedNetwork()
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
    assert state(one, two) is PathState.DIRECT


def test_call_waits_for_fresh_endpoints() -> None:
    world = SimulatedNetwork()
    one, two = acquainted(world)
    one.endpoint.set_own_endpoints([one.udp_address], 0.0, 0.0)
    one.say(two, b"hello")
    assert one.wanted == 1
    before = one.sent_relay
    one.endpoint.set_own_endpoints([one.udp_address], 0.0, 27.0)
    assert one.sent_relay == before + 1


def test_rebinding_restarts_on_relay() -> None:
    world = SimulatedNetwork()
    one, two = acquainted(world)
    one.say(two, b"hello")
    world.run(0.5)
    assert state(one, two) is PathState.DIRECT
    one.endpoint.rebind(world.now)
    assert state(one, two) is PathState.RELAYED
    one.endpoint.set_own_endpoints([one.udp_address], world.now, 27.0)
    one.say(two, b"again")
    world.run(1.0)
    assert two.heard()[-1] == b"again"
    assert state(one, two) is PathState.DIRECT


def test_direct_paths_disabled_one_side() -> None:
    world = SimulatedNetwork()
    one, two = world.add(1, direct=False), world.add(2)
    one.endpoint.set_peer(two.config(), 0.0)
    two.endpoint.set_peer(one.config(endpoints=()), 0.0)
    for _ in range(5):
        one.say(two, b"x")
        two.say(one, b"y")
        world.run(world.now + 1.0)
    assert one.sent_udp == 0
    assert len(two.heard()) == len(one.heard()) == 5


def test_removed_peers_leave_no_state() -> None:
    world = SimulatedNetwork()
    one, two = acquainted(world)
    one.say(two, b"hello")
    world.run(1.0)
    one.endpoint.remove_peer(two.key, world.now)
    one.endpoint.remove_peer(two.key, world.now)
    assert one.stack.resets == [two.overlay]
    assert one.endpoint.next_wake() is None
    assert not one.endpoint._by_address.by_address
    assert one.endpoint.peer_of(two.overlay) is None
    two.say(one, b"hello?")
    world.run(5.0)
    assert one.heard() == []


def test_new_disco_key_restarts_probing() -> None:
    world = SimulatedNetwork()
    one, two = acquainted(world)
    one.say(two, b"hello")
    world.run(1.0)
    other = PrivateKey(bytes([55]) * 32).public
    one.endpoint.set_peer(two.config(disco_key=other), world.now)
    assert state(one, two) is PathState.RELAYED
    one.endpoint.set_peer(two.config(disco_key=PublicKey(bytes(32))), world.now)
    one.say(two, b"still there")
    world.run(2.0)
    assert two.heard()[-1] == b"still there", "without disco the relay carries everything"


def test_an_idle_pair_falls_silent() -> None:
    world = SimulatedNetwork()
    one, two = acquainted(world)
    one.say(two, b"hello")
    world.run(1000.0)
    assert one.endpoint.next_wake() is None
    assert two.endpoint.next_wake() is None


def test_garbage_is_ignored() -> None:
    world = SimulatedNetwork()
    one, two = acquainted(world)
    one.say(two, b"hello")
    world.run(1.0)
    generator = random.Random(5)
    for _ in range(300):
        garbage = bytearray(generator.randbytes(generator.randrange(1, 200)))
        if generator.random() < 0.5:
            garbage[:6] = b"TS\xf0\x9f\x92\xac"
            garbage[6:38] = one.endpoint.disco_key
        elif generator.random() < 0.5:
            garbage[:1] = bytes([generator.randrange(1, 5)])
        segment = generator.randrange(1, len(garbage) + 1)
        two.endpoint.receive_udp(garbage, len(garbage), segment, one.udp_address, world.now)
        two.endpoint.receive_relay(REGION, one.key, [bytes(garbage)], world.now)
    two.endpoint.flush(world.now)
    one.say(two, b"fine")
    world.run(2.0)
    assert two.heard() == [b"hello", b"fine"]


def test_long_relay_queue_pauses_peers() -> None:
    world = SimulatedNetwork()
    world.passes = lambda *_: False
    one, two = acquainted(world)
    one.relay_is_long = True
    one.say(two, b"hello")
    world.run(0.5)
    assert one.stack.paused == {two.overlay}
    assert two.heard() == [b"hello"], "queued packets are delivered"
    one.endpoint.relay_drained(REGION + 1)
    assert one.stack.paused
    one.endpoint.relay_drained(REGION)
    assert not one.stack.paused


def test_large_packets_can_use_relay() -> None:
    world = SimulatedNetwork()
    one, two = acquainted(world)
    assert one.stack.mtus == {two.overlay: RELAY_PACKET}
    one.say(two, b"hello")
    world.run(0.5)
    assert state(one, two) is PathState.DIRECT
    sent_udp = one.sent_udp
    one.say(two, bytes(5000))
    one.stack.bulk.append((two.overlay, [one.packet(two, bytes(RELAY_PACKET - 40))] * 2))
    one.endpoint.flush(world.now)
    assert one.sent_udp == sent_udp
    world.run(1.0)
    assert [len(text) for text in two.heard()] == [5, 5000] + [RELAY_PACKET - 40] * 2
    assert state(one, two) is PathState.DIRECT


def test_direct_path_ignores_relay_queue() -> None:
    world = SimulatedNetwork()
    one, two = acquainted(world)
    one.relay_is_long = True
    one.say(two, b"hello")
    assert one.stack.paused == {two.overlay}
    world.run(0.5)
    assert state(one, two) is PathState.DIRECT
    assert not one.stack.paused


def test_key_renewal_loses_no_packet() -> None:
    world = SimulatedNetwork()
    one, two = acquainted(world)
    for number in range(600):
        one.say(two, b"%d" % number)
        world.run(world.now + 1.0)
    assert [int(text) for text in two.heard()] == list(range(600))
    assert len(one.alive) >= 5, "every two minutes"


def test_pair_resumes_after_silent_hour() -> None:
    world = SimulatedNetwork()
    one, two = acquainted(world)
    one.say(two, b"before")
    world.run(3600.0)
    two.say(one, b"after")
    world.run(3600.3)
    assert one.heard() == [b"after"]
    assert state(two, one) is PathState.DIRECT
