"""Handshakes: both roles, simultaneous, refused, lost, held."""

from typing import Any

import pytest

from coder.mesh.core.stack.errors import StackError
from coder.mesh.core.stack.interface import Stack, TcpSettings
from coder.mesh.core.stack.tcp.states import TcpState
from coder.mesh.core.wire.tcp import ACK, RST, SYN, Options
from tests.kit.network.scripted_tcp_peer import MODERN, PEER, ScriptedTcpPeer
from tests.kit.network.simulated_tcp_link import A, B, LinkedStacks, Transfer


def test_syn_offers_modern_options() -> None:
    peer = ScriptedTcpPeer()
    peer.stack.tcp_connect(PEER, 80, peer.now)
    (syn,) = peer.collect()
    assert syn.flags == SYN
    options = syn.options
    assert (options.mss, options.window_scale, options.sack_permitted) == (1220, 7, True)
    assert options.timestamps is not None
    assert options.same_stack == 32_768


def test_syn_ack_offers_requested_options() -> None:
    peer = ScriptedTcpPeer(options=Options(mss=536))
    peer.stack.tcp_listen(22)
    (answer,) = peer.send(SYN, options=peer.options)
    assert answer.options == Options(mss=1220)


@pytest.mark.parametrize("options", [MODERN, Options(mss=536), Options(), Options(mss=1000, sack_permitted=True)])
def test_data_flows_with_any_options(options: Options) -> None:
    peer = ScriptedTcpPeer(options=options)
    socket = peer.accepted()
    peer.send(payload=b"hello")
    assert socket.read_nowait() == b"hello"
    socket.write_nowait(b"x" * 3000)
    segments = peer.collect()
    assert b"".join(bytes(s.payload) for s in segments) == b"x" * 3000
    assert max(len(s.payload) for s in segments) <= (options.mss or 536)


def test_same_stack_leaves_checksums_out() -> None:
    world = LinkedStacks()
    mine, theirs = world.connect()
    assert mine.stats.skips_checksums
    assert theirs.stats.skips_checksums
    assert not ScriptedTcpPeer().accepted().stats.skips_checksums
    assert not ScriptedTcpPeer().connected().stats.skips_checksums


def test_simultaneous_open() -> None:
    world = LinkedStacks()
    a = world.a.tcp_connect(B, 2000, world.now, source_port=1000)
    b = world.b.tcp_connect(A, 1000, world.now, source_port=2000)
    world.run(lambda: a.connected and b.connected)
    a.write_nowait(b"crossed")
    world.run(lambda: b.unread == 7)
    assert b.read_nowait() == b"crossed"


def test_closed_port_refuses_connection() -> None:
    world = LinkedStacks()
    socket = world.a.tcp_connect(B, 9, world.now)
    world.run(lambda: socket.closed)
    assert socket.error is not None
    assert socket.error.code == "refused"
    with pytest.raises(StackError):
        socket.read_nowait()


def test_silence_ends_in_timeout() -> None:
    peer = ScriptedTcpPeer(TcpSettings(syn_retries=3))
    socket = peer.stack.tcp_connect(PEER, 9, peer.now)
    syns = peer.advance(100)
    assert [s.flags for s in syns] == [SYN] * 4
    assert socket.error is not None
    assert socket.error.code == "timeout"
    assert not peer.stack.connections


def test_connect_times_out() -> None:
    peer = ScriptedTcpPeer()
    peer.stack.tcp_connect(PEER, 9, peer.now)
    assert len(peer.advance(62)) == 6
    assert peer.stack.connections
    assert peer.advance(2) == []
    assert not peer.stack.connections


def test_lost_syn_ack_is_retransmitted() -> None:
    peer = ScriptedTcpPeer()
    peer.stack.tcp_listen(22)
    (first,) = peer.send(SYN, options=MODERN)
    (second,) = peer.send(SYN, options=MODERN, seq=5000)
    assert (first.flags, first.seq) == (second.flags, second.seq)


def test_backlog_bounds_half_open_connections() -> None:
    peer = ScriptedTcpPeer()
    listener = peer.stack.tcp_listen(22, backlog=3)
    answers = []
    for port in range(100, 110):
        peer.own_port = port
        answers += peer.send(SYN, options=MODERN, seq=1)
    assert len(answers) == 3
    assert len(peer.stack.connections) == 3
    peer.advance(200)
    assert not peer.stack.connections
    assert listener.opening == 0


def test_held_syn_answered_after_decision() -> None:
    peer = ScriptedTcpPeer()
    held: list[Any] = []
    peer.stack.set_tcp_fallback(held.append)
    assert peer.send(SYN, options=MODERN) == []
    assert peer.send(SYN, options=MODERN, seq=5000) == []  # the retransmission does not reach the fallback again
    (pending,) = held
    assert (pending.source, pending.port) == (PEER, 22)
    socket = pending.accept()
    (answer,) = peer.collect()
    assert answer.flags == SYN | ACK
    peer.ack = answer.seq + 1
    peer.send(payload=b"early")
    assert socket.read_nowait() == b"early"
    assert pending.accept() is None


def test_held_syn_refused_or_expires() -> None:
    peer = ScriptedTcpPeer()
    held: list[Any] = []
    peer.stack.set_tcp_fallback(held.append)
    peer.send(SYN, options=MODERN)
    held[0].reset()
    (answer,) = peer.collect()
    assert answer.flags == RST | ACK
    assert answer.ack == 5001
    peer.send(SYN, options=MODERN)
    peer.now += 100
    peer.stack.on_timer(peer.now)
    assert held[1].expired
    assert held[1].accept() is None


def test_held_syns_are_bounded() -> None:
    peer = ScriptedTcpPeer(TcpSettings(max_held_syns=5))
    held: list[Any] = []
    peer.stack.set_tcp_fallback(held.append)
    for port in range(100, 120):
        peer.own_port = port
        peer.send(SYN, options=MODERN, seq=1)
    assert len(held) == 5


def test_syn_reuses_time_wait_addresses() -> None:
    world = LinkedStacks()
    mine, theirs = world.connect()
    mine.shutdown_write()
    world.run(lambda: theirs.eof)
    theirs.shutdown_write()
    world.run(lambda: mine.state is TcpState.TIME_WAIT and theirs.closed)
    world.a.tcp_listen(mine.local_port)
    again = world.b.tcp_connect(A, mine.local_port, world.now, source_port=mine.remote_port)
    world.run(lambda: again.connected)


def test_stray_segments_are_reset() -> None:
    peer = ScriptedTcpPeer()
    (answer,) = peer.send(ACK, b"who are you", seq=1, ack=77)
    assert (answer.flags, answer.seq) == (RST, 77)
    assert peer.send(RST, seq=1) == []


def test_ports() -> None:
    stack = Stack([A], bytes)
    stack.tcp_listen(1)
    with pytest.raises(StackError, match="in use"):
        stack.tcp_listen(1)
    ports = {stack.tcp_connect(B, 80, 1.0).local_port for _ in range(50)}
    assert len(ports) == 50


def test_ecn_is_tolerated_not_negotiated() -> None:
    """RFC 3168 6.1.1: a peer may offer it; marks on packets and echoes in segments have no effect here."""
    peer = ScriptedTcpPeer()
    listener = peer.stack.tcp_listen(22)
    (answer,) = peer.send(SYN | 0xC0, options=peer.options)
    assert answer.flags == SYN | ACK, "no ECE: not agreed"
    peer.ack = answer.seq + 1
    peer.send(ACK | 0xC0)
    socket = listener.accept_nowait()
    assert socket is not None
    for flags in (ACK, ACK | 0x40, ACK | 0x80, ACK | 0xC0):
        peer.send(flags, payload=b"x" * 1000)
    assert socket.unread == 4000
    socket.write_nowait(b"y" * 10_000)
    sent = sum(len(s.payload) for s in peer.collect())
    window = socket.recovery.cubic.window
    peer.ack += sent
    peer.send(ACK | 0x40)
    assert socket.recovery.cubic.window >= window


def test_ecn_marks_keep_run() -> None:
    world = LinkedStacks()
    mine, theirs = world.connect()
    transfer = Transfer(mine, theirs, world.random.randbytes(200_000), world.random)

    def mark_congestion(sender: Stack, packet: bytes) -> bool:
        """Mark every third packet as a router does: congestion experienced."""
        if world.random.random() < 0.3:
            marked = bytes((packet[0], packet[1] | 0x30)) + packet[2:]
            world.other(sender).input_batch([marked], world.now)
            return False
        return True

    world.filter = mark_congestion
    world.on_step = transfer.step
    world.run(lambda: transfer.done)
