"""Two devices on a simulated clock: renewed keys, lost, repeated and forged datagrams, removed peers."""

from __future__ import annotations

from itertools import pairwise

import pytest

from coder.mesh.core.crypto.keys import PrivateKey
from coder.mesh.core.errors import CryptoError
from coder.mesh.core.tunnel.device import Device
from coder.mesh.core.tunnel.events import HandshakeGaveUp, KeysExpired, Roamed
from coder.mesh.core.wire import wireguard
from coder.mesh.core.wire.batch import Batch, TxBuf
from tests.kit.network.wireguard_devices import WALL, Pair, Seeded, ip_packet

INITIATION, RESPONSE, COOKIE, TRANSPORT = 1, 2, 3, 4


@pytest.fixture
def pair() -> Pair:
    return Pair()


def test_first_packet_opens_session(pair: Pair) -> None:
    pair.send(pair.a, b"hello")
    assert [d[0] for _, _, d in pair.log] == [INITIATION, RESPONSE, TRANSPORT]
    assert [p[40:45] for p in pair.b.inbox] == [b"hello"]
    assert pair.a.kinds() == ["Roamed", "HandshakeCompleted"] == pair.b.kinds()[:1] + pair.b.kinds()[-1:]
    assert pair.a.tunnel.stats.last_handshake == 0.0
    pair.send(pair.b, b"hi")
    assert [p[40:42] for p in pair.a.inbox] == [b"hi"]


def test_responder_sends_only_after_confirmation(pair: Pair) -> None:
    pair.lose = lambda name, d: name == "a" and d[0] == TRANSPORT
    pair.send(pair.a)
    assert pair.a.tunnel.is_ready(0.0) and not pair.b.tunnel.is_ready(0.0)


def test_staging_keeps_newest_128_packets(pair: Pair) -> None:
    pair.lose = lambda *_: True
    for i in range(130):
        pair.carry(pair.a, pair.a.tunnel.seal([pair.packet(pair.a, bytes((i,)))], 0.0))
    assert len(pair.sent("a", INITIATION)) == 1
    pair.lose = lambda *_: False
    pair.run(6.0)
    assert [p[40] for p in pair.b.inbox] == list(range(2, 130))
    assert pair.a.tunnel.stats.staged_lost == 2


def test_simultaneous_handshakes_both_complete(pair: Pair) -> None:
    ours = pair.a.tunnel.seal([pair.packet(pair.a, b"from a")], 0.0)
    theirs = pair.b.tunnel.seal([pair.packet(pair.b, b"from b")], 0.0)
    pair.carry(pair.a, ours)
    pair.carry(pair.b, theirs)
    pair.run(4.0)
    assert [p[40:46] for p in pair.b.inbox] == [b"from a"]
    assert [p[40:46] for p in pair.a.inbox] == [b"from b"]
    for side in (pair.a, pair.b):
        pair.send(side, b"again")
        assert side.peer.inbox[-1][40:45] == b"again"


def test_lost_initiation_is_repeated(pair: Pair) -> None:
    pair.lose = lambda name, d: d[0] == INITIATION and pair.now < 9
    pair.send(pair.a)
    pair.run(20.0)
    first, second, third = pair.sent("a", INITIATION)
    for wait in (second - first, third - second):
        assert 5.0 <= wait <= 5.0 + 0.333
    assert len(pair.b.inbox) == 1


def test_undelivered_initiation_is_repeated_soon(pair: Pair) -> None:
    pair.lose = lambda *_: True
    pair.send(pair.a)
    pair.a.tunnel.undelivered(0.0)
    pair.a.tunnel.undelivered(0.1)  # a second report for the same initiation
    pair.lose = lambda *_: False
    pair.run(0.5)
    assert pair.sent("a", INITIATION) == [0.0, 0.25]
    assert len(pair.b.inbox) == 1


def test_endless_undelivered_reports_are_limited(pair: Pair) -> None:
    pair.lose = lambda *_: True
    pair.send(pair.a)
    for tick in range(1, 800):  # it times out after ninety seconds, and the next handshake is a new one
        pair.a.tunnel.undelivered(pair.now)
        pair.send(pair.a)
        pair.run(tick / 10)
    sent = pair.sent("a", INITIATION)
    gaps = [later - earlier for earlier, later in pairwise(sent)]
    for gap, pause in zip(gaps, (0.25, 0.5, 1.0, 2.0, 4.0), strict=False):
        assert pause <= round(gap, 3) <= pause + 0.1, "counted from the report"
    assert min(gaps[5:]) >= 5.0 - 1e-9, gaps
    assert len(gaps) > 12


def test_undelivered_without_initiation_does_nothing(pair: Pair) -> None:
    pair.a.tunnel.undelivered(0.0)
    assert pair.a.device.next_wake() is None
    pair.send(pair.a)
    pair.a.tunnel.undelivered(0.0)
    pair.run(4.0)
    assert pair.sent("a", INITIATION) == [0.0]


def test_unanswered_handshake_times_out(pair: Pair) -> None:
    pair.lose = lambda *_: True
    pair.send(pair.a)
    pair.run(80.0)
    assert HandshakeGaveUp(pair.a.tunnel.remote) not in pair.a.events
    pair.run(200.0)
    assert pair.a.events == [HandshakeGaveUp(pair.a.tunnel.remote)]
    tries = pair.sent("a", INITIATION)
    assert len(tries) == 18 and 85.0 <= tries[-1] <= 85.0 + 18 * 0.333
    assert pair.a.tunnel.stats.staged_lost == 1
    pair.run(1000.0)
    assert pair.a.events[-1] == KeysExpired(pair.a.tunnel.remote)
    assert pair.a.device.next_wake() is None
    pair.lose = lambda *_: False
    pair.send(pair.a)
    assert len(pair.b.inbox) == 1


def test_initiator_renews_on_send(pair: Pair) -> None:
    pair.send(pair.a)
    for second in range(1, 400):
        pair.run(float(second))
        pair.send(pair.b)
        pair.send(pair.a)
    times = pair.sent("a", INITIATION)
    assert times == [0.0, 121.0, 242.0, 363.0] and pair.sent("b", INITIATION) == []
    assert len(pair.b.inbox) == 400 and len(pair.a.inbox) == 399


def test_receiving_initiator_renews_keys(pair: Pair) -> None:
    pair.send(pair.a)
    for second in range(1, 200):
        pair.run(float(second))
        pair.send(pair.b)
    # the keepalives of a receiver count as sending, too: they renew at the first one past 120 s
    assert 120.0 < pair.sent("a", INITIATION)[1] <= 166.0
    assert len(pair.a.inbox) == 199


def test_renewal_on_receive_waits(pair: Pair) -> None:
    pair.send(pair.a)
    for second in (100.0, 119.0, 164.0, 166.0):
        # deliver data only, so that a's keepalives do not renew first
        pair.now = second
        pair.send(pair.b)
    assert pair.sent("a", INITIATION) == [0.0, 166.0]


def test_responder_renews_only_dead_keys(pair: Pair) -> None:
    pair.send(pair.a)
    pair.lose = lambda name, d: name == "a" and d[0] == INITIATION
    pair.now = 179.0
    pair.send(pair.b)
    assert pair.sent("b", INITIATION) == []
    pair.now = 185.0
    pair.send(pair.b)
    assert pair.sent("b", INITIATION) == [185.0]


def test_old_keys_are_unusable(pair: Pair) -> None:
    pair.send(pair.a)
    late = pair.a.tunnel.seal([pair.packet(pair.a)], 179.0)
    assert not pair.a.tunnel.is_ready(180.0)
    received = pair.b.device.receive_untrusted(late[0], pair.a.place, 180.0)
    assert received.deliveries == [] and pair.b.device.stats.unknown_receiver == 1


def test_previous_keys_open_late_packets(pair: Pair) -> None:
    pair.send(pair.a)
    late = pair.a.tunnel.seal([pair.packet(pair.a, b"late")], 120.0)
    pair.now = 121.0
    pair.send(pair.a)
    pair.send(pair.a)
    assert len(pair.sent("a", INITIATION)) == 2
    pair.carry(pair.a, late)
    assert pair.b.inbox[-1][40:44] == b"late"


def test_idle_peer_holds_no_keys(pair: Pair) -> None:
    pair.send(pair.a)
    pair.run(181.0)
    assert pair.a.device._sessions == {} == pair.b.device._sessions
    pair.run(600.0)
    assert pair.a.events[-1] == KeysExpired(pair.a.tunnel.remote)
    assert pair.a.device.next_wake() is None and pair.b.device.next_wake() is None
    # b answered with one keepalive for the data it got, and sent nothing else
    assert [name for at, name, _ in pair.log if at > 0] == ["b"]


def test_data_gets_passive_keepalive(pair: Pair) -> None:
    pair.send(pair.a)
    pair.run(5.0)
    pair.send(pair.a)
    pair.run(9.9)
    assert pair.sent("b", TRANSPORT) == []
    pair.run(40.0)
    assert pair.sent("b", TRANSPORT) == [10.0, 20.0]
    assert all(len(d) == 32 for _, name, d in pair.log if name == "b" and d[0] == TRANSPORT)


def test_unanswered_data_starts_handshake(pair: Pair) -> None:
    pair.send(pair.a)
    pair.lose = lambda *_: True
    pair.run(11.0)
    pair.send(pair.a)
    pair.run(12.0)
    before = len(pair.sent("a", INITIATION))
    pair.run(30.0)
    first = pair.sent("a", INITIATION)[before]
    assert 15.0 <= first <= 15.4


def test_persistent_keepalives_bound_silence() -> None:
    pair = Pair(persistent_keepalive=25.0)
    pair.run(300.0)
    assert "HandshakeCompleted" in pair.a.kinds() and "HandshakeCompleted" in pair.b.kinds()
    times = [at for at, _, _ in pair.log]
    assert max(b - a for a, b in pairwise(times)) <= 25.0
    pair.a.tunnel.set_persistent_keepalive(0.0, pair.now)
    pair.b.tunnel.set_persistent_keepalive(0.0, pair.now)
    pair.run(2000.0)
    assert pair.a.device.next_wake() is None


def test_repeated_datagram_is_delivered_once(pair: Pair) -> None:
    pair.send(pair.a)
    [datagram] = pair.a.tunnel.seal([pair.packet(pair.a)], 1.0)
    pair.carry(pair.a, [datagram, datagram])
    assert len(pair.b.inbox) == 2


def test_out_of_order_datagrams_delivered(pair: Pair) -> None:
    pair.send(pair.a)
    packets = [pair.packet(pair.a, bytes((i,))) for i in range(50)]
    datagrams = pair.a.tunnel.seal(packets, 1.0)
    pair.carry(pair.a, datagrams[::-1] + datagrams)
    assert sorted(p[40] for p in pair.b.inbox[1:]) == list(range(50))


def test_forged_datagrams_change_nothing(pair: Pair) -> None:
    pair.send(pair.a)
    [datagram] = pair.a.tunnel.seal([pair.packet(pair.a)], 1.0)
    for at in (4, 8, 15, 16, len(datagram) - 1):
        forged = bytearray(datagram)
        forged[at] ^= 1
        received = pair.b.device.receive_untrusted(bytes(forged), ("203.0.113.9", 9), 1.0)
        assert (received.deliveries, received.sends, received.events) == ([], [], [])
    pair.carry(pair.a, [datagram])
    assert len(pair.b.inbox) == 2


def test_replayed_initiation_is_rejected(pair: Pair) -> None:
    pair.send(pair.a)
    initiation = pair.log[0][2]
    received = pair.b.device.receive_untrusted(initiation, pair.a.place, 30.0)
    assert received.sends == [] and pair.b.device.stats.refused == 1


def test_quick_second_initiation_rejected(pair: Pair) -> None:
    key, other = PrivateKey.generate(Seeded(b"k")), PrivateKey.generate(Seeded(b"o"))
    responder = Device(key, Seeded(b"r"), wall_offset=WALL)
    responder.add_peer(other.public, 0.0)
    fresh = [Device(other, Seeded(bytes((i,))), wall_offset=WALL + i) for i in range(3)]
    datagrams = [d.add_peer(key.public, 0.0).start_handshake(0.0)[0] for d in fresh]
    answers = [
        len(responder.receive_untrusted(datagram, ("192.0.2.1", 1), now).sends)
        for datagram, now in zip(datagrams, (1.0, 1.019, 1.021), strict=True)
    ]
    assert answers == [1, 0, 1]


def test_strangers_leave_no_state(pair: Pair) -> None:
    stranger = Device(PrivateKey.generate(Seeded(b"stranger")), Seeded(b"s"), wall_offset=WALL)
    tunnel = stranger.add_peer(pair.b.device.local.public, 0.0)
    [initiation] = tunnel.start_handshake(0.0)
    received = pair.b.device.receive_untrusted(initiation, ("203.0.113.9", 9), 0.0)
    assert received.sends == [] and received.replies == [] and pair.b.device.stats.refused == 1
    wrong = initiation[:116] + bytes(32)
    assert pair.b.device.receive_untrusted(wrong, ("203.0.113.9", 9), 0.0).sends == []
    assert pair.b.device.stats.malformed == 1
    assert pair.b.device._sessions == {}


def test_foreign_source_packets_dropped(pair: Pair) -> None:
    pair.send(pair.a)
    other = b"\xfd" + bytes(15)
    v4 = b"\x45" + bytes(7) + pair.a.address + bytes(20)
    for packet in (ip_packet(other, pair.b.address), v4, b"\x60", pair.packet(pair.a, b"ok")):
        pair.carry(pair.a, pair.a.tunnel.seal([packet], 1.0))
    assert [p[40:42] for p in pair.b.inbox] == [b"da", b"ok"]


def test_plaintexts_are_padded_within_mtu(pair: Pair) -> None:
    pair.send(pair.a)
    sizes = {
        size: len(pair.a.tunnel.seal([pair.packet(pair.a, bytes(size - 40))], 1.0)[0]) - 32
        for size in (40, 41, 48, 49, 1265, 1279, 1280, 1281, 1300)
    }
    assert sizes == {40: 48, 41: 48, 48: 48, 49: 64, 1265: 1280, 1279: 1280, 1280: 1280, 1281: 1281, 1300: 1300}


def test_new_genuine_source_is_reported(pair: Pair) -> None:
    pair.send(pair.a)
    pair.b.events.clear()
    pair.a.place = ("198.51.100.7", 7)
    pair.send(pair.a)
    pair.send(pair.a)
    assert pair.b.events == [Roamed(pair.b.tunnel.remote, ("198.51.100.7", 7))]


def test_handshake_under_load_needs_cookie(pair: Pair) -> None:
    pair.b.device.always_under_load = True
    pair.send(pair.a)
    assert [d[0] for _, _, d in pair.log] == [INITIATION, COOKIE]
    assert pair.b.device._sessions == {} and pair.b.device.stats.cookies_sent == 1
    pair.run(6.0)
    assert [d[0] for _, _, d in pair.log[2:]] == [INITIATION, RESPONSE, TRANSPORT]
    assert len(pair.b.inbox) == 1


def test_cookie_is_bound_to_address(pair: Pair) -> None:
    pair.b.device.always_under_load = True
    pair.send(pair.a)
    pair.a.place = ("192.0.2.1", 1001)
    pair.run(6.0)
    assert [d[0] for _, _, d in pair.log] == [INITIATION, COOKIE] * 2


def test_relayed_senders_get_cookies_too(pair: Pair) -> None:
    pair.b.device.always_under_load = True
    pair.a.place = bytes(pair.a.device.local.public)
    pair.send(pair.a)
    pair.run(6.0)
    assert len(pair.b.inbox) == 1


@pytest.mark.parametrize(("place", "limited"), [("2001:db8::{:x}", 3), ("2001:db8:0:{:x}::1", 0), ("10.0.0.{}", 0)])
def test_ipv6_network_is_one_source(pair: Pair, place: str, limited: int) -> None:
    """The owner of a network has 2**64 addresses, and can prove each of them by cookie."""
    device, handshaker = pair.b.device, pair.a.tunnel._handshaker
    device.always_under_load = True
    for number in range(1, 9):
        source = (place.format(number), 7)
        first = handshaker.initiate(number, WALL + number, 0.0)
        [reply] = device.receive_untrusted(first, source, 0.0).replies
        reply_message = wireguard.parse_untrusted(reply)
        assert isinstance(reply_message, wireguard.CookieReply)
        handshaker.jar.accept_reply_untrusted(reply_message.nonce, reply_message.cookie, 0.0)
        device.receive_untrusted(handshaker.initiate(number, WALL + number, 0.0), source, 0.0)
        handshaker.jar.slept(1000.0)
    assert (device.stats.cookies_sent, device.stats.limited) == (8, limited)


def test_handshake_flood_limited_per_source(pair: Pair) -> None:
    [initiation] = pair.a.tunnel.start_handshake(0.0)
    device = pair.b.device
    for _ in range(300):
        device.receive_untrusted(initiation, pair.a.place, 0.0)
    assert device.stats.cookies_sent > 30
    received = device.receive_untrusted(initiation, pair.a.place, 0.0)
    pair.carry(pair.b, received.replies)
    handshaker = pair.a.tunnel._handshaker
    fresh = [handshaker.initiate(1000 + i, WALL + 10 + i, 0.5) for i in range(8)]
    before = device.stats.cookies_sent
    for datagram in fresh:
        device.receive_untrusted(datagram, pair.a.place, 0.5)
    assert device.stats.cookies_sent == before
    assert device.stats.limited == 3
    # a quiet second later no cookie is required
    device.receive_untrusted(handshaker.initiate(2000, WALL + 30, 3.0)[:-16] + bytes(16), pair.a.place, 3.0)
    assert device.stats.cookies_sent == before


def test_superbuffer_is_sealed_in_place(pair: Pair) -> None:
    pair.send(pair.a)
    txbuf = TxBuf(1280)
    packets = [pair.packet(pair.a, bytes((i,)) * 1240) for i in range(43)] + [pair.packet(pair.a, b"last" * 2)]
    layout = txbuf.layout(1280)
    for i, packet in enumerate(packets):
        layout.plain[i][: len(packet)] = packet
    total = pair.a.tunnel.seal_into(txbuf, Batch(pair.b.address, 44, 1280, 48), 1.0)
    assert total == 43 * 1312 + 80
    received = pair.b.device.receive_batch_untrusted(txbuf.view, total, 1312, pair.a.place, 1.0)
    [(tunnel, delivered)] = received.deliveries
    assert tunnel is pair.b.tunnel and delivered == packets
    assert pair.a.tunnel.stats.tx_bytes == sum(len(d) for _, n, d in pair.log if n == "a") + total


def test_superbuffer_without_session_is_staged(pair: Pair) -> None:
    txbuf = TxBuf(1280)
    packet = pair.packet(pair.a, b"12345678")
    txbuf.buf[16:64] = packet
    assert pair.a.tunnel.seal_into(txbuf, Batch(pair.b.address, 1, 48, 48), 3.0) == 0
    txbuf.buf[16:64] = bytes(48)
    assert pair.a.device.next_wake() == 3.0
    pair.run(3.0)
    assert pair.b.inbox == [packet]


def test_mixed_batch_is_dispatched() -> None:
    hub = Device(PrivateKey.generate(Seeded(b"hub")), Seeded(b"h"), wall_offset=WALL)
    spokes = []
    for i in range(3):
        device = Device(PrivateKey.generate(Seeded(bytes((i,)))), Seeded(bytes((i + 100,))), wall_offset=WALL)
        address = b"\xfd" + bytes(14) + bytes((i,))
        inner = hub.add_peer(device.local.public, 0.0, allowed=[address])
        outer = device.add_peer(hub.local.public, 0.0)
        source = ("192.0.2.9", i)
        response = hub.receive_untrusted(outer.start_handshake(0.0)[0], source, 0.0).sends[0][1]
        confirm = device.receive_untrusted(response, source, 0.0).sends[0][1]
        hub.receive_untrusted(confirm, source, 0.0)
        spokes.append((inner, outer, ip_packet(address, bytes(16), b"12345678")))
    datagrams = [outer.seal([packet], 1.0)[0] for _, outer, packet in spokes for _ in range(2)]
    batch = b"".join([*datagrams, b"\x09" * 80, datagrams[0], spokes[0][1].seal([spokes[0][2]], 1.0)[0], b"short"])
    received = hub.receive_batch_untrusted(memoryview(batch), len(batch), 80, ("192.0.2.9", 1), 1.0)
    assert [(t, len(p)) for t, p in received.deliveries] == [
        (spokes[i][0], n) for i, n in ((0, 2), (1, 2), (2, 2), (0, 1))
    ]
    assert all(p == spokes[[s[0] for s in spokes].index(t)][2] for t, ps in received.deliveries for p in ps)


def test_peers_come_and_go(pair: Pair) -> None:
    pair.send(pair.a)
    device = pair.b.device
    assert device.tunnel_to(pair.a.address) is pair.b.tunnel
    with pytest.raises(ValueError, match="already"):
        device.add_peer(pair.a.device.local.public, 1.0)
    device.remove_peer(pair.a.device.local.public)
    device.remove_peer(pair.a.device.local.public)
    assert device.tunnel_to(pair.a.address) is None and device.next_wake() is None
    pair.send(pair.a)
    assert len(pair.b.inbox) == 1
    pair.b.tunnel = device.add_peer(pair.a.device.local.public, 2.0, allowed=[pair.a.address])
    pair.now = 20.0
    pair.send(pair.b)
    assert pair.a.inbox[-1][40:44] == b"data"


def test_address_belongs_to_one_peer() -> None:
    hub = Device(PrivateKey.generate(Seeded(b"hub")), Seeded(b"h"), wall_offset=WALL)
    x, y = bytes(15) + b"x", bytes(15) + b"y"
    one = hub.add_peer(PrivateKey.generate(Seeded(b"1")).public, 0.0, allowed=[x, y])
    two = hub.add_peer(PrivateKey.generate(Seeded(b"2")).public, 0.0, allowed=[y])
    assert (one.allowed, two.allowed, hub.tunnel_to(y)) == ((x,), (y,), two)
    hub.set_allowed(two, [])
    assert hub.tunnel_to(y) is None and hub.tunnel_to(x) is one


def test_unusable_peer_key_rejected() -> None:
    from coder.mesh.core.crypto.keys import PublicKey

    hub = Device(PrivateKey.generate(Seeded(b"hub")), Seeded(b"h"), wall_offset=WALL)
    with pytest.raises(CryptoError):
        hub.add_peer(PublicKey(bytes(32)), 0.0)
    assert hub.peers == {}


@pytest.mark.parametrize("slept", [30.0, 600.0, 100_000.0])
@pytest.mark.parametrize("keepalive", [0.0, 25.0])
def test_first_packet_after_sleep_arrives(slept: float, keepalive: float) -> None:
    """A machine that slept considers its keys fresh, and its peer has dropped them."""
    pair = Pair()
    pair.send(pair.a)
    pair.send(pair.b)
    for side in (pair.a, pair.b):
        side.tunnel.set_persistent_keepalive(keepalive, pair.now)
    pair.run(10.0)
    asleep, pair.lose = pair.now, lambda *_: True
    pair.a.behind = slept  # its timers do not run: they would be due after the end
    pair.run(asleep + slept)
    pair.lose = lambda *_: False
    pair.a.device.slept(slept)
    before = len(pair.a.inbox), len(pair.b.inbox)
    pair.send(pair.a, b"good morning")
    assert len(pair.b.inbox) == before[1] + 1
    pair.send(pair.b, b"good morning")
    assert len(pair.a.inbox) == before[0] + 1


def test_keepalive_finds_peer_after_sleep() -> None:
    """No data is queued, and yet the peer that stayed awake can reach it again."""
    pair = Pair()
    pair.send(pair.a)
    pair.a.tunnel.set_persistent_keepalive(25.0, pair.now)
    pair.run(1.0)
    pair.a.behind = 600.0
    pair.lose = lambda *_: True
    pair.run(601.0)
    pair.lose = lambda *_: False
    pair.a.device.slept(600.0)
    pair.run(601.5)
    assert pair.b.tunnel.is_ready(pair.now)
