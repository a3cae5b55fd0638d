"""The ends of connections."""

import pytest

from coder.mesh.core.stack.errors import StackError
from coder.mesh.core.stack.interface import TcpSettings
from coder.mesh.core.stack.tcp.states import TcpState
from coder.mesh.core.wire.tcp import ACK, FIN, PSH, RST
from tests.kit.puppet import Puppet
from tests.kit.tcpnet import World


def test_half_close_keeps_the_other_direction_open() -> None:
    world = World()
    mine, theirs = world.connect()
    mine.write_nowait(b"question")
    mine.shutdown_write()
    world.run(lambda: theirs.unread == 8 and 0 <= theirs.receiver.fin_at < theirs.receiver.rx.next)
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
    world = World()
    mine, theirs = world.connect()
    mine.shutdown_write()
    theirs.shutdown_write()
    world.run(lambda: mine.state is TcpState.TIME_WAIT and theirs.state is TcpState.TIME_WAIT)
    world.run(lambda: mine.closed and theirs.closed, 100)


def test_fin_rides_on_the_last_data() -> None:
    puppet = Puppet()
    socket = puppet.accepted()
    socket.write_nowait(b"bye")
    socket.shutdown_write()
    (segment,) = puppet.collect()
    assert segment.flags == ACK | PSH | FIN
    assert bytes(segment.payload) == b"bye"


def test_lost_fin_is_sent_again() -> None:
    puppet = Puppet()
    socket = puppet.accepted()
    socket.shutdown_write()
    (fin,) = puppet.collect()
    (again,) = puppet.advance(0.5)[:1]
    assert (again.seq, again.flags) == (fin.seq, fin.flags)
    puppet.ack += 1
    puppet.send()
    assert socket.state is TcpState.FIN_WAIT_2


def test_fin_waits_for_data_sent_before_it() -> None:
    puppet = Puppet()
    socket = puppet.accepted()
    seq = puppet.seq
    puppet.send(FIN | ACK, b"second", seq=seq + 5)
    assert not socket.readable
    puppet.send(payload=b"first", seq=seq)
    assert socket.read_nowait() == b"firstsecond"
    assert socket.eof


def test_bare_fin_waits_for_data_sent_before_it() -> None:
    puppet = Puppet()
    socket = puppet.accepted()
    seq = puppet.seq
    puppet.send(FIN | ACK, seq=seq + 1208)
    puppet.send(payload=b"x" * 1208, seq=seq)
    assert len(socket.read_nowait()) == 1208
    assert socket.eof


def test_what_arrived_outlives_the_connection() -> None:
    """A reader slower than TIME_WAIT (or a machine that slept through it) still gets every byte and the end."""
    puppet = Puppet()
    socket = puppet.accepted()
    socket.shutdown_write()
    puppet.collect()
    puppet.ack += 1
    puppet.send(FIN | ACK, b"unread")
    assert socket.state is TcpState.TIME_WAIT
    puppet.advance(7200)
    assert socket.closed
    assert not puppet.stack.connections
    assert socket.readable
    assert not socket.eof
    assert socket.read_nowait(4) == b"unre"
    assert socket.read_nowait() == b"ad"
    assert socket.eof
    assert socket.read_nowait() == b""


def test_close_with_unread_data_resets() -> None:
    puppet = Puppet()
    socket = puppet.accepted()
    puppet.send(payload=b"never read")
    socket.close()
    assert [s.flags for s in puppet.collect()] == [RST | ACK]
    assert socket.closed


def test_data_after_close_resets() -> None:
    puppet = Puppet()
    socket = puppet.accepted()
    socket.close()
    (fin,) = puppet.collect()
    assert fin.flags == ACK | FIN
    puppet.ack += 1
    answers = puppet.send(payload=b"into the void")
    assert [s.flags & RST for s in answers] == [RST]
    assert socket.closed


def test_closed_socket_does_not_wait_for_a_silent_peer_for_ever() -> None:
    puppet = Puppet()
    socket = puppet.accepted()
    socket.close()
    puppet.collect()
    puppet.ack += 1
    puppet.send()
    assert socket.state is TcpState.FIN_WAIT_2
    puppet.advance(61)
    assert socket.closed
    assert not puppet.stack.connections


def test_closed_socket_resets_a_peer_that_acknowledges_nothing() -> None:
    """RFC 9293 section 3.8.3 (R2). While the application is there its data is worth `give_up`, a quarter of an hour."""
    puppet = Puppet()
    socket = puppet.accepted()
    socket.write_nowait(b"x" * 5000)
    puppet.collect()
    puppet.advance(10)
    socket.close()
    sent = puppet.advance(80)
    assert not socket.closed
    assert not [s for s in sent if s.flags & RST]
    sent = puppet.advance(100)
    assert [s.flags for s in sent if s.flags & RST] == [RST | ACK]
    assert sent[-1].flags & RST
    assert not puppet.stack.connections
    assert puppet.advance(1000) == []


def test_closed_socket_waits_while_its_peer_takes_something() -> None:
    puppet = Puppet()
    socket = puppet.accepted()
    socket.write_nowait(b"x" * 1000)
    puppet.collect()
    socket.close()
    for _ in range(20):
        puppet.advance(50)
        puppet.ack += 1
        puppet.send()
    assert not socket.closed
    puppet.ack += 980
    puppet.send()
    puppet.advance(1)
    puppet.ack += 1
    puppet.send()
    assert socket.state is TcpState.FIN_WAIT_2


def test_closed_socket_ends_at_a_window_that_stays_closed() -> None:
    """A peer that answers every probe and takes nothing has a slow reader, or keeps our memory."""
    puppet = Puppet()
    socket = puppet.accepted()
    puppet.send(window=0)
    socket.write_nowait(b"x" * 5000)
    socket.close()
    answered = 0
    while not socket.closed:
        for segment in puppet.advance(10):
            if not segment.flags & RST:
                answered += 1
                puppet.send(window=0)
        assert puppet.now < 3000
    assert puppet.now > 1900
    assert answered > 15
    assert not puppet.stack.connections


def test_abort_tells_the_peer_and_the_application() -> None:
    world = World()
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


def test_repeated_fin_in_time_wait_is_acknowledged_again() -> None:
    puppet = Puppet(TcpSettings(time_wait=10))
    socket = puppet.accepted()
    socket.shutdown_write()
    puppet.collect()
    puppet.ack += 1
    puppet.send(FIN | ACK)
    assert socket.state is TcpState.TIME_WAIT
    puppet.now += 8
    (answer,) = puppet.send(FIN | ACK, seq=puppet.seq - 1)
    assert answer.ack == puppet.seq
    puppet.advance(8)
    assert socket.state is TcpState.TIME_WAIT
    puppet.advance(8)
    assert socket.closed


def test_closing_the_stack_resets_everybody() -> None:
    world = World()
    mine, theirs = world.connect()
    world.a.close(world.now)
    world.run(lambda: theirs.closed)
    assert mine.closed
    assert not world.a.connections


def test_a_removed_peer_is_unreachable_without_a_packet() -> None:
    world = World()
    mine, _ = world.connect()
    world.a.reset_peer(mine.remote, world.now)
    assert mine.error is not None
    assert mine.error.code == "unreachable"
    assert world.a.take_output(world.now) == []
