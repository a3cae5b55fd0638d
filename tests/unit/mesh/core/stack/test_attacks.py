"""RFC 5961 and other ways to disturb a connection from outside (or by a broken peer)."""

from random import Random

from coder.mesh.core.stack.tcp.states import TcpState
from coder.mesh.core.wire.tcp import ACK, RST, SYN, Options
from tests.kit.puppet import MODERN, Puppet


def test_reset_must_hit_the_exact_number() -> None:
    puppet = Puppet()
    socket = puppet.accepted()
    (answer,) = puppet.send(RST, seq=puppet.seq + 1)
    assert (answer.flags, answer.ack) == (ACK, puppet.seq)
    assert puppet.send(RST, seq=puppet.seq - 1) == []
    assert socket.state is TcpState.ESTABLISHED
    puppet.send(RST, seq=puppet.seq)
    assert socket.error is not None
    assert socket.error.code == "reset"


def test_syn_is_challenged() -> None:
    puppet = Puppet()
    socket = puppet.accepted()
    for seq in (puppet.seq, puppet.seq + 10, puppet.seq - 10_000):
        (answer,) = puppet.send(SYN, seq=seq, options=MODERN)
        assert answer.flags == ACK
    assert socket.state is TcpState.ESTABLISHED


def test_challenges_are_limited() -> None:
    puppet = Puppet()
    puppet.accepted()
    answers = [answer for _ in range(50) for answer in puppet.send(RST, seq=puppet.seq + 1)]
    assert len(answers) == 10


def test_acknowledgement_of_the_future_is_dropped() -> None:
    puppet = Puppet()
    socket = puppet.accepted()
    answers = puppet.send(payload=b"evil", ack=puppet.ack + 1, seq=puppet.seq)
    assert not socket.readable
    assert [a.flags for a in answers] == [ACK]


def test_a_month_of_silence_does_not_make_timestamps_old() -> None:
    """RFC 7323 5.5: half the timestamps lie behind the last one by then; the first that comes replaces it."""
    puppet = Puppet()
    socket = puppet.accepted()
    puppet.now += 30 * 86400
    puppet.stamp += 30 * 86400 * 1000
    (answer,) = puppet.send(payload=b"awake")
    assert socket.read_nowait() == b"awake"
    assert answer.options.timestamps is not None
    assert answer.options.timestamps[1] == puppet.stamp
    assert puppet.send(payload=b"again")
    assert socket.read_nowait() == b"again"


def test_old_timestamps_are_dropped() -> None:
    puppet = Puppet()
    socket = puppet.accepted()
    old = Options(timestamps=(puppet.stamp - 500, 0))
    (answer,) = puppet.send(payload=b"a ghost", options=old, seq=puppet.seq)
    assert not socket.readable
    assert answer.ack == puppet.seq


def test_data_beyond_the_window_is_cut() -> None:
    puppet = Puppet()
    socket = puppet.accepted()
    puppet.send(payload=b"now it is scaled")
    edge = socket.receiver.rcv_adv
    puppet.send(payload=b"x" * 100, seq=edge - 50)
    assert socket.receiver.rx.waiting == 50
    puppet.send(payload=b"x" * 100, seq=edge + 1)
    assert socket.receiver.rx.waiting == 50


def test_tiny_segments_out_of_order_are_bounded() -> None:
    puppet = Puppet()
    socket = puppet.accepted()
    for index in range(5000):
        puppet.send(payload=b"x", seq=puppet.seq + 1 + 2 * index)
    receiver = socket.receiver
    assert receiver.rx.pieces == 256 + (receiver.rcv_adv - receiver.rx.next) // 1024


def test_sack_of_bytes_never_sent_is_ignored() -> None:
    puppet = Puppet()
    socket = puppet.accepted()
    socket.write_nowait(b"x" * 5000)
    puppet.collect()
    puppet.send(sack=((puppet.ack + 4000, puppet.ack + 9000), (puppet.ack + 7, puppet.ack + 3)))
    assert socket.recovery.scoreboard.sacked == 0


def test_sacks_of_single_bytes_cut_nothing() -> None:
    """20,000 acknowledgements; each run cut off would make every later one dearer."""
    puppet = Puppet()
    socket = puppet.accepted()
    for _ in range(8):
        socket.write_nowait(b"x" * 500_000)
        puppet.collect()
        flight = socket.unacked
        puppet.now += 0.05
        puppet.ack += flight
        puppet.send(window=60_000)
    socket.write_nowait(b"x" * 500_000)
    puppet.collect()
    flight = socket.unacked
    assert flight > 100_000
    board, random = socket.recovery.scoreboard, Random(7)
    runs, sent = len(board.runs), socket.stats.segments_out
    for _ in range(20_000):
        at = [puppet.ack + random.randrange(1, flight - 1) for _ in range(3)]
        puppet.send(sack=tuple((left, left + 1) for left in at))
        assert len(board.runs) == runs
    assert board.sacked == board.lost == 0
    assert socket.stats.segments_out == sent


def test_acknowledged_bytes_cut_nothing_without_sack() -> None:
    """RFC 6582 section 3.2: a partial acknowledgement has the next hole sent again, which is one segment."""
    puppet = Puppet(options=Options(mss=1220))
    socket = puppet.accepted()
    socket.write_nowait(b"x" * 10_000)
    puppet.collect()
    for _ in range(3):
        puppet.send()
    runs = len(socket.recovery.scoreboard.runs)
    for _ in range(500):
        puppet.ack += 1
        puppet.send()
    assert len(socket.recovery.scoreboard.runs) <= runs
