"""Closing of connections."""

import pytest

from coder.mesh.core.stack.errors import StackError
from coder.mesh.core.stack.interface import TcpSettings
from coder.mesh.core.stack.tcp.states import TcpState
from coder.mesh.core.wire.tcp import ACK, FIN, PSH, RST, SYN
from tests.kit.network.scripted_tcp_peer import ScriptedTcpPeer
from tests.kit.network.simulated_tcp_link import LinkedStacks


def test_half_close_keeps_other_direction() -> None:
    world = LinkedStacks()
    mine, theirs = world.connect()
    mine.write_nowait(b"question")
    mine.shutdown_write()
    world.run(lambda: theirs.unread == 8 and 0 <= theirs.receiver.fin_seq < theirs.receiver.rx.next)
    assert theirs.read_nowait() == b"question"
    assert theirs.eof
    assert theirs.state is TcpState.CLOSE_WAIT
    for _ in range(3):
        theirs.write_nowait(b"answer" * 1000)
        world.settle(0.2)
    assert mine.unread == 18_000
    theirs.shutdown_write()
    world.run(lambda: mine.state is TcpState.TIME_WAIT and theirs.closed)
    world.run(lambda: mine.closed)
    with pytest.raises(StackError):
        mine.write_nowait(b"late")


def test_simultaneous_close() -> None:
    world = LinkedStacks()
    mine, theirs = world.connect()
    mine.shutdown_write()
    theirs.shutdown_write()
    world.run(lambda: mine.state is TcpState.TIME_WAIT and theirs.state is TcpState.TIME_WAIT)
    world.run(lambda: mine.closed and theirs.closed, 100)


def test_fin_sent_with_last_data() -> None:
    peer = ScriptedTcpPeer()
    socket = peer.accepted()
    socket.write_nowait(b"bye")
    socket.shutdown_write()
    (segment,) = peer.collect()
    assert segment.flags == ACK | PSH | FIN
    assert bytes(segment.payload) == b"bye"


def test_lost_fin_is_retransmitted() -> None:
    peer = ScriptedTcpPeer()
    socket = peer.accepted()
    socket.shutdown_write()
    (fin,) = peer.collect()
    (again,) = peer.advance(0.5)[:1]
    assert (again.seq, again.flags) == (fin.seq, fin.flags)
    peer.ack += 1
    peer.send()
    assert socket.state is TcpState.FIN_WAIT_2


def test_fin_waits_for_earlier_data() -> None:
    peer = ScriptedTcpPeer()
    socket = peer.accepted()
    seq = peer.seq
    peer.send(FIN | ACK, b"second", seq=seq + 5)
    assert not socket.readable
    peer.send(payload=b"first", seq=seq)
    assert socket.read_nowait() == b"firstsecond"
    assert socket.eof


def test_bare_fin_waits_for_data() -> None:
    peer = ScriptedTcpPeer()
    socket = peer.accepted()
    seq = peer.seq
    peer.send(FIN | ACK, seq=seq + 1208)
    peer.send(payload=b"x" * 1208, seq=seq)
    assert len(socket.read_nowait()) == 1208
    assert socket.eof


def test_received_data_outlives_connection() -> None:
    """A reader slower than TIME_WAIT (or a machine that slept through it) still gets every byte and EOF."""
    peer = ScriptedTcpPeer()
    socket = peer.accepted()
    socket.shutdown_write()
    peer.collect()
    peer.ack += 1
    peer.send(FIN | ACK, b"unread")
    assert socket.state is TcpState.TIME_WAIT
    peer.advance(7200)
    assert socket.closed
    assert not peer.stack.connections
    assert socket.readable
    assert not socket.eof
    assert socket.read_nowait(4) == b"unre"
    assert socket.read_nowait() == b"ad"
    assert socket.eof
    assert socket.read_nowait() == b""


def test_close_with_unread_data_resets() -> None:
    peer = ScriptedTcpPeer()
    socket = peer.accepted()
    peer.send(payload=b"never read")
    socket.close()
    assert [s.flags for s in peer.collect()] == [RST | ACK]
    assert socket.closed


def test_data_after_close_resets() -> None:
    peer = ScriptedTcpPeer()
    socket = peer.accepted()
    socket.close()
    (fin,) = peer.collect()
    assert fin.flags == ACK | FIN
    peer.ack += 1
    answers = peer.send(payload=b"into the void")
    assert [s.flags & RST for s in answers] == [RST]
    assert socket.closed


def test_closed_socket_leaves_silent_peer() -> None:
    peer = ScriptedTcpPeer()
    socket = peer.accepted()
    socket.close()
    peer.collect()
    peer.ack += 1
    peer.send()
    assert socket.state is TcpState.FIN_WAIT_2
    peer.advance(61)
    assert socket.closed
    assert not peer.stack.connections


def test_closed_socket_resets_unresponsive_peer() -> None:
    """RFC 9293 section 3.8.3 (R2).

    While the application is there its data has `give_up` seconds, a quarter of an hour.
    """
    peer = ScriptedTcpPeer()
    socket = peer.accepted()
    socket.write_nowait(b"x" * 5000)
    peer.collect()
    peer.advance(10)
    socket.close()
    sent = peer.advance(80)
    assert not socket.closed
    assert not [s for s in sent if s.flags & RST]
    sent = peer.advance(100)
    assert [s.flags for s in sent if s.flags & RST] == [RST | ACK]
    assert sent[-1].flags & RST
    assert not peer.stack.connections
    assert peer.advance(1000) == []


def test_closed_socket_waits_for_reader() -> None:
    peer = ScriptedTcpPeer()
    socket = peer.accepted()
    socket.write_nowait(b"x" * 1000)
    peer.collect()
    socket.close()
    for _ in range(20):
        peer.advance(50)
        peer.ack += 1
        peer.send()
    assert not socket.closed
    peer.ack += 980
    peer.send()
    peer.advance(1)
    peer.ack += 1
    peer.send()
    assert socket.state is TcpState.FIN_WAIT_2


def test_closed_socket_leaves_closed_window() -> None:
    """A peer that answers every probe and takes nothing has a slow reader, or attacks our memory."""
    peer = ScriptedTcpPeer()
    socket = peer.accepted()
    peer.send(window=0)
    socket.write_nowait(b"x" * 5000)
    socket.close()
    answered = 0
    while not socket.closed:
        for segment in peer.advance(10):
            if not segment.flags & RST:
                answered += 1
                peer.send(window=0)
        assert peer.now < 3000
    assert peer.now > 1900
    assert answered > 15
    assert not peer.stack.connections


def test_abort_notifies_peer_and_application() -> None:
    world = LinkedStacks()
    mine, theirs = world.connect()
    theirs.write_nowait(b"last words")
    world.run(lambda: mine.unread == 10)
    theirs.abort()
    world.run(lambda: mine.closed)
    assert mine.read_nowait() == b"last words"
    with pytest.raises(StackError, match="reset"):
        mine.read_nowait()
    with pytest.raises(StackError, match="aborted"):
        theirs.write_nowait(b"x")


def test_fin_in_time_wait_acknowledged() -> None:
    peer = ScriptedTcpPeer(TcpSettings(time_wait=10))
    socket = peer.accepted()
    socket.shutdown_write()
    peer.collect()
    peer.ack += 1
    peer.send(FIN | ACK)
    assert socket.state is TcpState.TIME_WAIT
    peer.now += 8
    (answer,) = peer.send(FIN | ACK, seq=peer.seq - 1)
    assert answer.ack == peer.seq
    peer.advance(8)
    assert socket.state is TcpState.TIME_WAIT
    peer.advance(8)
    assert socket.closed


def test_closing_stack_resets_all_connections() -> None:
    world = LinkedStacks()
    mine, theirs = world.connect()
    world.a.close(world.now)
    world.run(lambda: theirs.closed)
    assert mine.closed
    assert not world.a.connections


def test_removed_peer_unreachable_without_packet() -> None:
    world = LinkedStacks()
    mine, _ = world.connect()
    world.a.reset_peer(mine.remote, world.now)
    assert mine.error is not None
    assert mine.error.code == "unreachable"
    assert world.a.take_output(world.now) == []


def test_oldest_time_wait_makes_room() -> None:
    """A peer whose connections are closed by this end, as a proxy's often are, can always open new ones."""
    peer = ScriptedTcpPeer(TcpSettings(max_connections=4))
    listener = peer.stack.tcp_listen(22)
    for number in range(20):
        peer.own_port, peer.seq = 50_000 + number, 5000
        (answer,) = peer.send(SYN, options=peer.options)
        peer.ack = answer.seq + 1
        peer.send()
        socket = listener.accept_nowait()
        assert socket is not None
        socket.close()
        (fin,) = peer.collect()
        peer.ack = fin.seq + 1
        peer.send(FIN | ACK)
        assert socket.state is TcpState.TIME_WAIT
        assert len(peer.stack.connections) <= 4
