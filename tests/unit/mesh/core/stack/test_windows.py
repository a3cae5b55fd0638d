"""Flow control: zero windows, silly windows, acknowledgements, bursts, keepalive."""

import pytest

from coder.mesh.core.stack.interface import TcpSettings
from coder.mesh.core.wire.tcp import ACK, Options
from tests.kit.network.scripted_tcp_peer import ScriptedTcpPeer
from tests.kit.network.simulated_tcp_link import Link, LinkedStacks, Transfer

PLAIN = Options(mss=1220)


def test_zero_window_probed_until_open() -> None:
    tcp_peer = ScriptedTcpPeer(options=PLAIN)
    socket = tcp_peer.accepted()
    tcp_peer.send(window=0)
    socket.write_nowait(b"x" * 3000)
    assert tcp_peer.collect() == []
    probes = tcp_peer.advance(60)
    assert 4 <= len(probes) <= 10
    assert all(p.seq == tcp_peer.ack - 1 and not p.payload for p in probes)
    segments = tcp_peer.send(window=5000)
    assert sum(len(s.payload) for s in segments) == 3000


def test_small_window_used_after_probe() -> None:
    tcp_peer = ScriptedTcpPeer(options=PLAIN)
    socket = tcp_peer.accepted()
    tcp_peer.send(window=40_000)
    tcp_peer.send(window=100)
    socket.write_nowait(b"x" * 3000)
    assert tcp_peer.collect() == []
    segments = tcp_peer.advance(3)
    assert [len(s.payload) for s in segments if s.payload][:1] == [100]


def test_second_segment_acked_immediately() -> None:
    tcp_peer = ScriptedTcpPeer()
    socket = tcp_peer.accepted()
    socket.receiver.quick_acks = 0
    assert tcp_peer.send(payload=b"x" * 600) == []
    (answer,) = tcp_peer.send(payload=b"x" * 600)
    assert answer.ack == tcp_peer.seq
    assert tcp_peer.send(payload=b"x" * 600) == []
    (answer,) = tcp_peer.advance(0.05)
    assert answer.ack == tcp_peer.seq


def test_data_carries_acknowledgement() -> None:
    tcp_peer = ScriptedTcpPeer()
    socket = tcp_peer.accepted()
    socket.receiver.quick_acks = 0
    tcp_peer.send(payload=b"ping")
    socket.write_nowait(b"pong")
    (segment,) = tcp_peer.collect()
    assert segment.ack == tcp_peer.seq
    assert bytes(segment.payload) == b"pong"
    tcp_peer.ack += 4
    tcp_peer.send()
    assert tcp_peer.advance(1) == []


def test_holes_reported_for_every_segment() -> None:
    tcp_peer = ScriptedTcpPeer()
    tcp_peer.accepted()
    base = tcp_peer.seq
    (first,) = tcp_peer.send(payload=b"b" * 1000, seq=base + 1000)
    assert first.options.sack == ((base + 1000, base + 2000),)
    (second,) = tcp_peer.send(payload=b"d" * 1000, seq=base + 3000)
    assert second.options.sack == ((base + 3000, base + 4000), (base + 1000, base + 2000))
    (third,) = tcp_peer.send(payload=b"b" * 1000, seq=base + 1000)
    assert third.ack == base
    (last,) = tcp_peer.send(payload=b"a" * 1000, seq=base)
    assert last.ack == base + 2000
    (duplicate,) = tcp_peer.send(payload=b"a" * 1000, seq=base)
    assert duplicate.options.sack[0] == (base, base + 1000)  # RFC 2883


def test_unread_data_closes_window() -> None:
    tcp_peer = ScriptedTcpPeer(TcpSettings(receive_buffer=10_000), options=PLAIN)
    socket = tcp_peer.accepted()
    for _ in range(10):
        tcp_peer.send(payload=b"x" * 1000)
    (answer,) = tcp_peer.send(payload=b"x")
    assert answer.window == 0
    assert socket.unread == 10_000
    socket.read_nowait(1000)
    assert tcp_peer.collect() == []  # a thousand bytes do not fill a segment
    socket.read_nowait(5000)
    (update,) = tcp_peer.collect()
    assert update.window == 6000


def test_burst_limit_bounds_fast_paths() -> None:
    world = LinkedStacks(there=Link(delay=0.0001), back=Link(delay=0.0001))
    world.a.burst_limit = world.b.burst_limit = 50_000
    mine, theirs = world.connect()
    transfer = Transfer(mine, theirs, bytes(3_000_000), world.random)
    peak = 0

    def step() -> None:
        nonlocal peak
        transfer.step()
        peak = max(peak, mine.unacked)

    world.on_step = step
    world.run(lambda: transfer.done)
    assert peak <= 50_001


def test_burst_limit_on_slow_paths() -> None:
    world = LinkedStacks(there=Link(delay=0.05), back=Link(delay=0.05))
    world.a.burst_limit = world.b.burst_limit = 50_000
    mine, theirs = world.connect()
    transfer = Transfer(mine, theirs, bytes(8_000_000), world.random)
    world.on_step = transfer.step
    begun = world.now
    world.run(lambda: transfer.done)
    assert world.now - begun < 1.5


def test_keepalive_detects_dead_peer_only() -> None:
    tcp_peer = ScriptedTcpPeer()
    socket = tcp_peer.accepted()
    socket.set_keepalive(10, interval=1, probes=3)
    (probe,) = tcp_peer.advance(10.5)
    assert probe.seq == tcp_peer.ack - 1
    tcp_peer.send()
    assert len(tcp_peer.advance(9)) == 0
    sent = tcp_peer.advance(10)
    assert len(sent) == 4  # three probes and a RST
    assert socket.error is not None
    assert socket.error.code == "timeout"


def test_late_timers_keep_answered_probes() -> None:
    """The answer comes within a millisecond, the timer a little later than requested: again and again."""
    tcp_peer = ScriptedTcpPeer()
    socket = tcp_peer.accepted()
    socket.set_keepalive(10, interval=10, probes=2)
    for _ in range(8):
        assert len(tcp_peer.advance(10.2)) == 1
        tcp_peer.send()
    assert socket.error is None


def test_keepalive_probes_are_answered() -> None:
    tcp_peer = ScriptedTcpPeer()
    tcp_peer.accepted()
    (answer,) = tcp_peer.send(seq=tcp_peer.seq - 1)
    assert (answer.flags, answer.ack) == (ACK, tcp_peer.seq)


def test_peer_with_small_packets_only() -> None:
    world = LinkedStacks()
    mine, theirs = world.connect()
    world.a.set_mtu_to(mine.remote, 1280)
    assert mine.mss == 1208
    world.a.set_mtu_to(mine.remote, 9000)
    assert mine.mss == 9000 - 72
    mine.write_nowait(bytes(100_000))
    world.run(lambda: theirs.unread == 100_000)
    world.a.set_mtu_to(mine.remote, None)
    assert mine.mss == 1208


def test_connection_timers_do_not_accumulate() -> None:
    world = LinkedStacks()
    for _ in range(30):
        mine, theirs = world.connect()
        mine.set_keepalive(72 * 3600.0)
        theirs.set_keepalive(72 * 3600.0)
        for _ in range(100):
            mine.write_nowait(b"x")
            world.settle(0.05)
        assert world.a.deadlines < 64 + 5 * len(world.a.connections)
        mine.abort()
    world.settle(1)
    assert world.a.deadlines < 70
    assert world.b.deadlines < 70


def test_shrunk_window_blocks_nothing() -> None:
    """A Linux peer short of memory shrinks its advertised window and drops every segment beyond the new edge."""
    tcp_peer = ScriptedTcpPeer(options=PLAIN)
    socket = tcp_peer.accepted()
    tcp_peer.send(window=20_000)
    socket.write_nowait(b"x" * 10_000)
    assert sum(len(s.payload) for s in tcp_peer.collect()) == 10_000
    tcp_peer.send(window=500)  # all ten thousand were dropped
    (answer,) = tcp_peer.send(payload=b"y" * 600, window=500)
    assert answer.seq == tcp_peer.ack + 500, "the peer ignores data beyond its edge"
    assert answer.ack == tcp_peer.seq
    again = [s for s in tcp_peer.advance(2) if s.payload]
    assert {(s.seq, len(s.payload)) for s in again} == {(tcp_peer.ack, 500)}
    tcp_peer.ack += 500
    tcp_peer.send(window=0)
    probes = [s for s in tcp_peer.advance(20) if s.payload]
    assert probes and all(s.seq == tcp_peer.ack for s in probes), "the data at the window's new edge is its probe"
    assert socket.error is None
    received = 500
    for _ in range(50):
        for segment in tcp_peer.send(window=20_000) + tcp_peer.advance(0.3):
            if segment.payload and segment.seq == tcp_peer.ack:
                tcp_peer.ack += len(segment.payload)
                received += len(segment.payload)
    assert received == 10_000


def test_answered_closed_window_stays() -> None:
    tcp_peer = ScriptedTcpPeer(settings=TcpSettings(give_up=60), options=PLAIN)
    socket = tcp_peer.accepted()
    tcp_peer.send(window=5000)
    socket.write_nowait(b"x" * 3000)
    assert tcp_peer.collect()
    for _ in range(60):
        for segment in tcp_peer.advance(10):
            if segment.payload:
                tcp_peer.send(window=0)
    assert socket.error is None


@pytest.mark.parametrize("size", [4, 600])
def test_overtaken_data_keeps_window(size: int) -> None:
    """RFC 9293 section 3.10.7.4, SND.WL1: also on the fast paths of a single segment and of a run."""
    tcp_peer = ScriptedTcpPeer()
    socket = tcp_peer.accepted()
    for _ in range(2):
        tcp_peer.send(payload=b"x" * size)
    tcp_peer.send(seq=tcp_peer.seq + size, window=2000)
    tcp_peer.send(payload=b"x" * size, window=10)
    assert socket.unread == 3 * size
    assert socket.sender.snd_wnd == 2000 << 7


def test_buffer_grows_for_readers_only() -> None:
    """A peer may fill the buffer of each of its connections; a reader that reads gets the whole buffer."""
    peer = ScriptedTcpPeer()
    socket = peer.accepted()
    first = socket.receiver.rcv_wnd
    assert first <= 128 << 10
    size = 1000

    def fill(limit: int) -> None:
        for _ in range(limit // size):
            peer.send(payload=bytes(size))

    fill(3 * first)
    assert socket.unread <= first
    assert socket.receiver.rcv_wnd == first
    for _ in range(12):
        while socket.read_nowait():
            pass
        fill(socket.receiver.rcv_wnd)
        peer.seq = socket.receiver.rx.next
    assert socket.receiver.rcv_wnd == socket.host.settings.receive_buffer
