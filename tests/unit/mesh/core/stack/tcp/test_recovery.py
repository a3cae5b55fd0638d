"""Detection and repair of losses."""

from typing import Any

import pytest

from coder.mesh.core.stack.interface import Stack, TcpSettings
from coder.mesh.core.stack.tcp.connection import TcpSocket
from coder.mesh.core.stack.tcp.recovery import Phase
from coder.mesh.core.stack.tcp.reordering import ReorderingWindow
from coder.mesh.core.stack.tcp.rtt import RoundTrip
from coder.mesh.core.stack.tcp.scoreboard import Scoreboard
from coder.mesh.core.wire import ip
from coder.mesh.core.wire.tcp import ACK, SYN, Options
from tests.kit.network.scripted_tcp_peer import MODERN, PEER, ScriptedTcpPeer
from tests.kit.network.simulated_tcp_link import B, Link, LinkedStacks, Transfer

SEGMENT = 1208


def peer_with_flight(options: Options | None = None) -> tuple[ScriptedTcpPeer, TcpSocket]:
    """Return a peer that was sent ten segments, one round trip of 50 ms ago."""
    peer = ScriptedTcpPeer() if options is None else ScriptedTcpPeer(options=options)
    socket = peer.accepted()
    socket.write_nowait(b"a" * 100)
    peer.collect()
    peer.now += 0.05
    peer.ack += 100
    peer.send()
    socket.write_nowait(b"".join(bytes([n]) * socket.mss for n in range(10)))
    segments = peer.collect()
    assert len(segments) == 10
    peer.now += 0.05
    return peer, socket


def test_three_later_segments_mark_loss() -> None:
    peer, socket = peer_with_flight()
    base = peer.ack
    assert peer.send(sack=((base + SEGMENT, base + 2 * SEGMENT),)) == []
    assert socket.recovery.phase is Phase.OPEN
    (again, *_) = peer.send(sack=((base + SEGMENT, base + 4 * SEGMENT),))
    assert again.seq == base
    assert socket.recovery.phase is Phase.RECOVERY
    peer.ack = base + 10 * SEGMENT
    peer.send()
    assert socket.recovery.phase is Phase.OPEN
    assert socket.stats.retransmitted == SEGMENT


def test_only_holes_are_retransmitted() -> None:
    peer, _ = peer_with_flight()
    base = peer.ack
    sack = ((base + SEGMENT, base + 4 * SEGMENT), (base + 6 * SEGMENT, base + 9 * SEGMENT))
    sent = peer.send(sack=sack)
    assert [(s.seq - base) // SEGMENT for s in sent] == [0, 4, 5]


def test_small_reordering_is_no_loss() -> None:
    peer, socket = peer_with_flight()
    base = peer.ack
    peer.send(sack=((base + SEGMENT, base + 3 * SEGMENT),))
    peer.now += 0.005
    peer.ack = base + 10 * SEGMENT
    peer.send()
    assert socket.stats.retransmitted == 0
    assert socket.recovery.scoreboard.reordering_seen


def test_tail_probed_before_rto() -> None:
    peer, socket = peer_with_flight()
    base = peer.ack
    peer.ack = base + 8 * SEGMENT
    peer.send()
    (probe, *_) = peer.advance(0.2)
    assert probe.seq == base + 9 * SEGMENT
    assert socket.stats.timeouts == 0
    repaired = peer.send(sack=((base + 9 * SEGMENT, base + 10 * SEGMENT),)) + peer.advance(0.1)
    assert [s.seq for s in repaired] == [base + 8 * SEGMENT]


def test_only_repairing_probe_reduces_window() -> None:
    for needless in (False, True):
        peer, socket = peer_with_flight()
        window = socket.recovery.cubic.window
        assert peer.last is not None and peer.last.options.timestamps is not None
        echo = peer.last.options.timestamps[0]
        (probe, *_) = peer.advance(0.2)
        peer.ack += 10 * SEGMENT
        peer.stamp += 1
        assert probe.options.timestamps is not None
        echo = echo if needless else probe.options.timestamps[0]
        peer.send(options=Options(timestamps=(peer.stamp, echo)))
        assert (socket.recovery.cubic.window < window) is not needless
        assert socket.recovery.phase is Phase.OPEN


def test_retransmissions_back_off_in_silence() -> None:
    peer, socket = peer_with_flight()
    sent = peer.advance(60)
    assert len(sent) == 9
    assert sent[0].seq == peer.ack + 9 * SEGMENT  # the tail loss probe
    assert all(s.seq == peer.ack for s in sent[1:])
    assert socket.recovery.cubic.window == SEGMENT
    assert socket.stats.timeouts == 8


def test_unanswered_data_times_out() -> None:
    peer = ScriptedTcpPeer(TcpSettings(give_up=100))
    socket = peer.accepted()
    socket.write_nowait(b"x")
    peer.advance(250)
    assert socket.error is not None
    assert socket.error.code == "timeout"


def test_spurious_timeout_is_undone() -> None:
    peer, socket = peer_with_flight()
    first = socket.recovery.cubic.window
    assert peer.last is not None and peer.last.options.timestamps is not None
    echo = peer.last.options.timestamps[0]
    peer.advance(1)
    assert socket.recovery.phase is Phase.LOSS
    peer.stamp += 1
    peer.ack += 10 * SEGMENT
    peer.send(options=Options(timestamps=(peer.stamp, echo)))  # the originals had arrived
    assert socket.recovery.phase is Phase.OPEN
    assert socket.recovery.cubic.window >= first


def test_reno_peer_recovers() -> None:
    peer, socket = peer_with_flight(Options(mss=1220))
    base, mss = peer.ack, socket.mss
    assert peer.send() == []
    assert peer.send() == []
    (again, *_) = peer.send()
    assert again.seq == base
    peer.ack = base + 4 * mss
    (partial, *_) = peer.send()
    assert partial.seq == base + 4 * mss
    peer.ack = base + 10 * mss
    peer.send()
    assert socket.recovery.phase is Phase.OPEN


def test_receiver_reneging_is_survived() -> None:
    peer, socket = peer_with_flight()
    base = peer.ack
    peer.send(sack=((base, base + 2 * SEGMENT),))  # reneging: the first byte is reported but never acknowledged
    sent = peer.advance(5)
    assert base in [s.seq for s in sent]
    peer.ack = base + 10 * SEGMENT
    peer.send()
    assert socket.recovery.scoreboard.runs == []


def test_path_change_retransmits_immediately() -> None:
    world = LinkedStacks()
    mine, theirs = world.connect()
    dark = {"on": True}
    world.filter = lambda _sender, _packet: not dark["on"]
    mine.write_nowait(b"are you there")
    world.settle(20)
    dark["on"] = False
    assert mine.recovery.rtt.retries >= 4
    before = world.now
    world.a.path_changed(B, world.now)
    world.run(lambda: theirs.unread > 0)
    assert world.now - before < 0.05


def test_one_percent_loss_throughput() -> None:
    world = LinkedStacks(5, Link(delay=0.01, loss=0.001, rate=12.5e6), Link(delay=0.01))
    mine, theirs = world.connect()
    transfer = Transfer(mine, theirs, world.random.randbytes(10_000_000), world.random)
    world.on_step = transfer.step
    begun = world.now
    world.run(lambda: transfer.done)
    assert world.now - begun < 2.5
    assert mine.stats.timeouts == 0
    assert mine.stats.retransmitted < 3 * world.links[world.a].dropped * SEGMENT + 10 * SEGMENT


def test_corrupt_sizes_never_confuse_prediction() -> None:
    """A run of full segments, one of them shorter by its header: it takes the slow path."""
    world = LinkedStacks()
    mine, theirs = world.connect()
    cut: list[Any] = []

    def shorten(sender: Stack, packet: bytes) -> bool:
        if sender is world.a and len(packet) == 1280 and not cut:
            cut.append(packet)
            size = (len(packet) - 40 - 100).to_bytes(2, "big")
            world.b.input_batch([packet[:4] + size + packet[6:]], world.now)
            return False
        return True

    world.filter = shorten
    data = world.random.randbytes(100_000)
    transfer = Transfer(mine, theirs, data, world.random)
    world.on_step = transfer.step
    world.run(lambda: transfer.done)
    assert ip.HEADER_SIZE == 40


def test_sleep_is_not_silence() -> None:
    """A laptop wakes after two hours and finds its network half a minute later: the connection is still there."""
    peer = ScriptedTcpPeer()
    socket = peer.accepted()
    socket.write_nowait(b"x" * 1000)
    (segment,) = peer.collect()
    peer.now += 7200
    assert peer.advance(40)
    assert socket.error is None
    peer.ack += len(segment.payload)
    peer.send()
    assert socket.unacked == 0
    socket.write_nowait(b"x" * 1000)
    peer.advance(3000)
    assert socket.error is not None, "but silence while awake ends it"


@pytest.mark.parametrize("options", [MODERN, Options(mss=1220)], ids=["timestamps", "neither timestamps nor SACK"])
def test_rtt_above_rto_is_measured(options: Options) -> None:
    """RFC 6298 section 5, RFC 7323 section 4.1: otherwise each segment would be retransmitted before its answer
    comes."""
    peer = ScriptedTcpPeer(options=options)
    socket = peer.accepted()
    copies = []
    for delay in [0.05] * 10 + [1.0] * 10:
        socket.write_nowait(b"x")
        (first,) = peer.collect()
        copies.append(len(peer.advance(delay)))
        peer.ack += 1
        peer.stamp += 1
        stamps = first.options.timestamps
        peer.send(options=Options(timestamps=(peer.stamp, stamps[0]) if stamps else None))
    assert not any(copies[:10])
    assert copies[10] > 0
    assert not any(copies[-3:])


def test_lost_syn_raises_first_rto() -> None:
    """RFC 6298 section 5, rule 5.7."""
    peer = ScriptedTcpPeer()
    socket = peer.stack.tcp_connect(PEER, peer.own_port, peer.now, source_port=peer.port)
    peer.collect()
    (again,) = peer.advance(1.5)
    peer.ack = again.seq + 1
    peer.send(SYN | ACK, options=MODERN)
    assert socket.connected
    assert socket.recovery.rtt.timeout() == 3.0
    socket.write_nowait(b"x" * 100)
    peer.collect()
    (probe,) = peer.advance(1.1)  # RFC 8985 section 7.2: a second where no round trip was measured
    assert bytes(probe.payload) == b"x" * 100
    assert socket.stats.timeouts == 1, "the SYN's"


def test_retransmitted_syn_gives_no_sample() -> None:
    """RFC 6298 section 3: we answered twice because the peer repeated its SYN, not after a timeout."""
    peer = ScriptedTcpPeer()
    peer.stack.tcp_listen(22)
    (answer,) = peer.send(SYN, options=MODERN)
    peer.now += 0.9
    assert len(peer.send(SYN, options=MODERN, seq=5000)) == 1
    peer.now += 0.05
    peer.ack = answer.seq + 1
    peer.send()
    (socket,) = peer.stack.connections
    assert socket.connected
    assert socket.recovery.rtt.srtt == 0.0
    assert socket.recovery.rtt.timeout() == 1.0
    assert socket.recovery.cubic.window == 10 * SEGMENT, "nothing was lost"


def test_reordering_window_shrinks_again() -> None:
    """RFC 8985 section 6.2, step 4."""
    board, rtt = Scoreboard(), RoundTrip(TcpSettings())
    rtt.add_sample(0.1, 0.0)
    board.reordering_seen = True
    window = ReorderingWindow(board, rtt)
    window.on_dsack(10, 20)
    window.on_dsack(30, 40)
    for _ in range(15):
        window.recovered()
    assert window.size(True, 1000) == pytest.approx(0.075)
    window.recovered()
    assert window.size(True, 1000) == pytest.approx(0.025)


def test_spurious_duplicates_are_no_loss() -> None:
    """RFC 6582 section 3.2, step 2: each brings a duplicate acknowledgement, from a peer without SACK."""
    peer, socket = peer_with_flight(Options(mss=1220))
    mss = socket.mss
    peer.advance(1)
    assert socket.recovery.phase is Phase.LOSS
    peer.ack += 10 * mss
    peer.send()  # the originals were late
    socket.write_nowait(b"y" * 3 * mss)
    peer.collect()
    again = socket.stats.retransmitted
    for _ in range(4):
        peer.send()
    assert socket.recovery.phase is Phase.OPEN
    assert socket.stats.retransmitted == again
