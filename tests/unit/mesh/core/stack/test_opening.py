"""Handshakes: both roles, both at once, refused, lost, held back."""

from typing import Any

import pytest

from coder.mesh.core.stack.errors import StackError
from coder.mesh.core.stack.interface import Stack, TcpSettings
from coder.mesh.core.stack.tcp.states import TcpState
from coder.mesh.core.wire.tcp import ACK, RST, SYN, Options
from tests.kit.puppet import MODERN, PUPPET, Puppet
from tests.kit.tcpnet import A, B, Transfer, World


def test_syn_offers_what_modern_hosts_offer() -> None:
    puppet = Puppet()
    puppet.stack.tcp_connect(PUPPET, 80, puppet.now)
    (syn,) = puppet.collect()
    assert syn.flags == SYN
    options = syn.options
    assert (options.mss, options.window_scale, options.sack_permitted) == (1220, 7, True)
    assert options.timestamps is not None
    assert options.same_stack == 32_768


def test_answer_offers_only_what_was_asked_for() -> None:
    puppet = Puppet(options=Options(mss=536))
    puppet.stack.tcp_listen(22)
    (answer,) = puppet.send(SYN, options=puppet.options)
    assert answer.options == Options(mss=1220)


@pytest.mark.parametrize("options", [MODERN, Options(mss=536), Options(), Options(mss=1000, sack_permitted=True)])
def test_data_flows_with_any_options(options: Options) -> None:
    puppet = Puppet(options=options)
    socket = puppet.accepted()
    puppet.send(payload=b"hello")
    assert socket.read_nowait() == b"hello"
    socket.write_nowait(b"x" * 3000)
    segments = puppet.collect()
    assert b"".join(bytes(s.payload) for s in segments) == b"x" * 3000
    assert max(len(s.payload) for s in segments) <= (options.mss or 536)


def test_same_stack_peers_leave_checksums_out_and_strangers_get_them() -> None:
    world = World()
    mine, theirs = world.connect()
    assert mine.stats.skips_checksums
    assert theirs.stats.skips_checksums
    assert not Puppet().accepted().stats.skips_checksums
    assert not Puppet().connected().stats.skips_checksums


def test_simultaneous_open() -> None:
    world = World()
    a = world.a.tcp_connect(B, 2000, world.now, source_port=1000)
    b = world.b.tcp_connect(A, 1000, world.now, source_port=2000)
    world.run(lambda: a.connected and b.connected)
    a.write_nowait(b"crossed")
    world.run(lambda: b.unread == 7)
    assert b.read_nowait() == b"crossed"


def test_connecting_to_a_closed_port_is_refused() -> None:
    world = World()
    socket = world.a.tcp_connect(B, 9, world.now)
    world.run(lambda: socket.closed)
    assert socket.error is not None
    assert socket.error.code == "refused"
    with pytest.raises(StackError):
        socket.read_nowait()


def test_silence_ends_in_a_timeout() -> None:
    puppet = Puppet(TcpSettings(syn_retries=3))
    socket = puppet.stack.tcp_connect(PUPPET, 9, puppet.now)
    syns = puppet.advance(100)
    assert [s.flags for s in syns] == [SYN] * 4
    assert socket.error is not None
    assert socket.error.code == "timeout"
    assert not puppet.stack.connections


def test_nobody_answers_for_a_minute() -> None:
    puppet = Puppet()
    puppet.stack.tcp_connect(PUPPET, 9, puppet.now)
    assert len(puppet.advance(62)) == 6
    assert puppet.stack.connections
    assert puppet.advance(2) == []
    assert not puppet.stack.connections


def test_lost_answer_is_sent_again_when_the_syn_comes_again() -> None:
    puppet = Puppet()
    puppet.stack.tcp_listen(22)
    (first,) = puppet.send(SYN, options=MODERN)
    (second,) = puppet.send(SYN, options=MODERN, seq=5000)
    assert (first.flags, first.seq) == (second.flags, second.seq)


def test_backlog_bounds_half_open_connections() -> None:
    puppet = Puppet()
    listener = puppet.stack.tcp_listen(22, backlog=3)
    answers = []
    for port in range(100, 110):
        puppet.own_port = port
        answers += puppet.send(SYN, options=MODERN, seq=1)
    assert len(answers) == 3
    assert len(puppet.stack.connections) == 3
    puppet.advance(200)
    assert not puppet.stack.connections
    assert listener.opening == 0


def test_held_syn_is_answered_after_the_decision_only() -> None:
    puppet = Puppet()
    held: list[Any] = []
    puppet.stack.set_tcp_fallback(held.append)
    assert puppet.send(SYN, options=MODERN) == []
    assert puppet.send(SYN, options=MODERN, seq=5000) == []  # the retransmission asks nobody again
    (pending,) = held
    assert (pending.source, pending.port) == (PUPPET, 22)
    socket = pending.accept()
    (answer,) = puppet.collect()
    assert answer.flags == SYN | ACK
    puppet.ack = answer.seq + 1
    puppet.send(payload=b"early")
    assert socket.read_nowait() == b"early"
    assert pending.accept() is None


def test_held_syn_can_be_refused_or_expires() -> None:
    puppet = Puppet()
    held: list[Any] = []
    puppet.stack.set_tcp_fallback(held.append)
    puppet.send(SYN, options=MODERN)
    held[0].reset()
    (answer,) = puppet.collect()
    assert answer.flags == RST | ACK
    assert answer.ack == 5001
    puppet.send(SYN, options=MODERN)
    puppet.now += 100
    puppet.stack.on_timer(puppet.now)
    assert held[1].expired
    assert held[1].accept() is None


def test_held_syns_are_bounded() -> None:
    puppet = Puppet(TcpSettings(max_held_syns=5))
    held: list[Any] = []
    puppet.stack.set_tcp_fallback(held.append)
    for port in range(100, 120):
        puppet.own_port = port
        puppet.send(SYN, options=MODERN, seq=1)
    assert len(held) == 5


def test_syn_reuses_addresses_in_time_wait() -> None:
    world = World()
    mine, theirs = world.connect()
    mine.shutdown_write()
    world.run(lambda: theirs.eof)
    theirs.shutdown_write()
    world.run(lambda: mine.state is TcpState.TIME_WAIT and theirs.closed)
    world.a.tcp_listen(mine.local_port)
    again = world.b.tcp_connect(A, mine.local_port, world.now, source_port=mine.remote_port)
    world.run(lambda: again.connected)


def test_stray_segments_are_reset() -> None:
    puppet = Puppet()
    (answer,) = puppet.send(ACK, b"who are you", seq=1, ack=77)
    assert (answer.flags, answer.seq) == (RST, 77)
    assert puppet.send(RST, seq=1) == []


def test_ports() -> None:
    stack = Stack([A], bytes)
    stack.tcp_listen(1)
    with pytest.raises(StackError, match="in use"):
        stack.tcp_listen(1)
    ports = {stack.tcp_connect(B, 80, 1.0).local_port for _ in range(50)}
    assert len(ports) == 50


def test_ecn_is_tolerated_and_not_agreed_to() -> None:
    """RFC 3168 6.1.1: a peer may offer it; marks on packets and echoes in segments then mean nothing to us."""
    puppet = Puppet()
    listener = puppet.stack.tcp_listen(22)
    (answer,) = puppet.send(SYN | 0xC0, options=puppet.options)
    assert answer.flags == SYN | ACK, "no ECE: not agreed"
    puppet.ack = answer.seq + 1
    puppet.send(ACK | 0xC0)
    socket = listener.accept_nowait()
    assert socket is not None
    for flags in (ACK, ACK | 0x40, ACK | 0x80, ACK | 0xC0):
        puppet.send(flags, payload=b"x" * 1000)
    assert socket.unread == 4000
    socket.write_nowait(b"y" * 10_000)
    sent = sum(len(s.payload) for s in puppet.collect())
    window = socket.recovery.cubic.window
    puppet.ack += sent
    puppet.send(ACK | 0x40)
    assert socket.recovery.cubic.window >= window


def test_marked_packets_of_a_run_are_taken_like_others() -> None:
    world = World()
    mine, theirs = world.connect()
    transfer = Transfer(mine, theirs, world.random.randbytes(200_000), world.random)

    def mark(sender: Stack, packet: bytes) -> bool:
        """A router that marks every third packet: congestion experienced."""
        if world.random.random() < 0.3:
            marked = bytes((packet[0], packet[1] | 0x30)) + packet[2:]
            world.other(sender).input_batch([marked], world.now)
            return False
        return True

    world.filter = mark
    world.on_step = transfer.step
    world.run(lambda: transfer.done)
