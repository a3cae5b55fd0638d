"""RFC 5961 and other attacks on a connection from outside (or by a broken peer)."""

from random import Random

from coder.mesh.core.stack.tcp.states import TcpState
from coder.mesh.core.wire import ip
from coder.mesh.core.wire.tcp import ACK, RST, SYN, Options, Segment
from tests.kit.network.scripted_tcp_peer import MODERN, OURS, PEER, ScriptedTcpPeer


def test_reset_requires_exact_sequence_number() -> None:
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


def test_future_acknowledgement_is_dropped() -> None:
    peer = ScriptedTcpPeer()
    socket = peer.accepted()
    answers = peer.send(payload=b"evil", ack=peer.ack + 1, seq=peer.seq)
    assert not socket.readable
    assert [a.flags for a in answers] == [ACK]


def test_timestamps_survive_month_of_silence() -> None:
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


def test_data_beyond_window_is_trimmed() -> None:
    peer = ScriptedTcpPeer()
    socket = peer.accepted()
    peer.send(payload=b"now it is scaled")
    edge = socket.receiver.rcv_adv
    peer.send(payload=b"x" * 100, seq=edge - 50)
    assert socket.receiver.rx.waiting == 50
    peer.send(payload=b"x" * 100, seq=edge + 1)
    assert socket.receiver.rx.waiting == 50


def test_tiny_out_of_order_segments_bounded() -> None:
    peer = ScriptedTcpPeer()
    socket = peer.accepted()
    for index in range(5000):
        peer.send(payload=b"x", seq=peer.seq + 1 + 2 * index)
    receiver = socket.receiver
    assert receiver.rx.pieces == 256 + (receiver.rcv_adv - receiver.rx.next) // 1024


def test_sack_of_unsent_bytes_ignored() -> None:
    peer = ScriptedTcpPeer()
    socket = peer.accepted()
    socket.write_nowait(b"x" * 5000)
    peer.collect()
    peer.send(sack=((peer.ack + 4000, peer.ack + 9000), (peer.ack + 7, peer.ack + 3)))
    assert socket.recovery.scoreboard.sacked == 0


def test_single_byte_sacks_split_nothing() -> None:
    """20,000 acknowledgements; each split run would make every later one more expensive."""
    peer = ScriptedTcpPeer()
    socket = peer.accepted()
    for _ in range(8):
        socket.write_nowait(b"x" * 500_000)
        peer.collect()
        flight = socket.unacked
        peer.now += 0.05
        peer.ack += flight
        peer.send(window=60_000)
    socket.write_nowait(b"x" * 500_000)
    peer.collect()
    flight = socket.unacked
    assert flight > 100_000
    board, random = socket.recovery.scoreboard, Random(7)
    runs, sent = len(board.runs), socket.stats.segments_out
    for _ in range(20_000):
        at = [peer.ack + random.randrange(1, flight - 1) for _ in range(3)]
        peer.send(sack=tuple((left, left + 1) for left in at))
        assert len(board.runs) == runs
    assert board.sacked == board.lost == 0
    assert socket.stats.segments_out == sent


def test_partial_acks_split_nothing() -> None:
    """RFC 6582 section 3.2: a partial acknowledgement retransmits the next hole, which is one segment."""
    peer = ScriptedTcpPeer(options=Options(mss=1220))
    socket = peer.accepted()
    socket.write_nowait(b"x" * 10_000)
    peer.collect()
    for _ in range(3):
        peer.send()
    runs = len(socket.recovery.scoreboard.runs)
    for _ in range(500):
        peer.ack += 1
        peer.send()
    assert len(socket.recovery.scoreboard.runs) <= runs


def test_fragmented_segment_reaches_its_connection() -> None:
    """A SYN in a fragment must not open a second connection beside the one that has its addresses and ports."""
    peer = ScriptedTcpPeer()
    socket = peer.accepted()

    def fragmented(segment: Segment, cut: int) -> None:
        body = segment.encode()
        for at, more in ((0, 1), (cut, 0)) if cut else ((0, 0),):
            piece = body[at : at + cut] if more else body[at:]
            head = b"\6\0" + (at | more).to_bytes(2, "big") + bytes([cut, 0, 0, 1])
            peer.stack.input_batch([ip.Packet(44, PEER, OURS, head + piece).encode()], peer.now)

    for cut in (0, 16):
        fragmented(Segment(peer.own_port, peer.port, peer.seq + 7, 0, SYN, 1000, MODERN), cut)
        assert peer.stack.connections == [socket]
        assert [answer.flags for answer in peer.collect()] == [ACK]
    data = Segment(peer.own_port, peer.port, peer.seq, peer.ack, ACK, 1000, Options(timestamps=(9000, 0)), b"whole")
    fragmented(data, 16)
    assert socket.read_nowait() == b"whole"
