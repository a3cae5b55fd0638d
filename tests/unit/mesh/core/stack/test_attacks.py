"""RFC 5961 and other ways to disturb a connection from outside (or by a broken peer)."""

from coder.mesh.core.stack.tcp.states import TcpState
from coder.mesh.core.wire.tcp import ACK, RST, SYN, Options
from tests.kit.network.scripted_tcp_peer import MODERN, ScriptedTcpPeer


def test_reset_must_hit_the_exact_number() -> None:
    peer = ScriptedTcpPeer()
    socket = peer.accepted()
    (answer,) = peer.send(RST, seq=peer.seq + 1)
    assert (answer.flags, answer.ack) == (ACK, peer.seq)
    assert peer.send(RST, seq=peer.seq - 1) == []
    assert socket.state is TcpState.ESTABLISHED
    peer.send(RST, seq=peer.seq)
    assert socket.error is not None
    assert socket.error.code == "reset"


def test_syn_is_challenged() -> None:
    peer = ScriptedTcpPeer()
    socket = peer.accepted()
    for seq in (peer.seq, peer.seq + 10, peer.seq - 10_000):
        (answer,) = peer.send(SYN, seq=seq, options=MODERN)
        assert answer.flags == ACK
    assert socket.state is TcpState.ESTABLISHED


def test_challenges_are_limited() -> None:
    peer = ScriptedTcpPeer()
    peer.accepted()
    answers = [answer for _ in range(50) for answer in peer.send(RST, seq=peer.seq + 1)]
    assert len(answers) == 10


def test_acknowledgement_of_the_future_is_dropped() -> None:
    peer = ScriptedTcpPeer()
    socket = peer.accepted()
    answers = peer.send(payload=b"evil", ack=peer.ack + 1, seq=peer.seq)
    assert not socket.readable
    assert [a.flags for a in answers] == [ACK]


def test_a_month_of_silence_does_not_make_timestamps_old() -> None:
    """RFC 7323 5.5: half the timestamps lie behind the last one by then; the first that comes replaces it."""
    peer = ScriptedTcpPeer()
    socket = peer.accepted()
    peer.now += 30 * 86400
    peer.stamp += 30 * 86400 * 1000
    (answer,) = peer.send(payload=b"awake")
    assert socket.read_nowait() == b"awake"
    assert answer.options.timestamps is not None
    assert answer.options.timestamps[1] == peer.stamp
    assert peer.send(payload=b"again")
    assert socket.read_nowait() == b"again"


def test_old_timestamps_are_dropped() -> None:
    peer = ScriptedTcpPeer()
    socket = peer.accepted()
    old = Options(timestamps=(peer.stamp - 500, 0))
    (answer,) = peer.send(payload=b"a ghost", options=old, seq=peer.seq)
    assert not socket.readable
    assert answer.ack == peer.seq


def test_data_beyond_the_window_is_cut() -> None:
    peer = ScriptedTcpPeer()
    socket = peer.accepted()
    peer.send(payload=b"now it is scaled")
    edge = socket.receiver.rcv_adv
    peer.send(payload=b"x" * 100, seq=edge - 50)
    assert socket.receiver.rx.waiting == 50
    peer.send(payload=b"x" * 100, seq=edge + 1)
    assert socket.receiver.rx.waiting == 50


def test_tiny_segments_out_of_order_are_bounded() -> None:
    peer = ScriptedTcpPeer()
    socket = peer.accepted()
    for index in range(5000):
        peer.send(payload=b"x", seq=peer.seq + 1 + 2 * index)
    assert socket.receiver.rx.pieces <= 4097


def test_sack_of_bytes_never_sent_is_ignored() -> None:
    peer = ScriptedTcpPeer()
    socket = peer.accepted()
    socket.write_nowait(b"x" * 5000)
    peer.collect()
    peer.send(sack=((peer.ack + 4000, peer.ack + 9000), (peer.ack + 7, peer.ack + 3)))
    assert socket.recovery.scoreboard.sacked == 0
