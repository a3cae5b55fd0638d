"""The parts of a connection against models that are too slow to be wrong."""

from hypothesis import given, settings
from hypothesis import strategies as st

from coder.mesh.core.stack.settings import TcpSettings
from coder.mesh.core.stack.tcp.congestion import Cubic
from coder.mesh.core.stack.tcp.reassembly import Reassembly
from coder.mesh.core.stack.tcp.rtt import RoundTrip
from coder.mesh.core.stack.tcp.scoreboard import Scoreboard
from coder.mesh.core.stack.tcp.sendqueue import SendQueue

DATA = bytes(range(256)) * 40


@given(st.lists(st.tuples(st.integers(0, 6000), st.integers(1, 1500), st.booleans()), max_size=60))
@settings(max_examples=150, deadline=None)
def test_reassembly_gives_every_byte_once_and_in_order(arrivals: list[tuple[int, int, bool]]) -> None:
    rx = Reassembly(0)
    have: set[int] = set()
    out = b""
    for seq, size, read in arrivals:
        piece = DATA[seq : seq + size]
        before = rx.next
        gained = rx.insert(seq, memoryview(piece) if size % 2 else piece)
        have.update(range(seq, seq + len(piece)))
        edge = 0
        while edge in have:
            edge += 1
        assert rx.next == edge
        assert gained == edge - before
        assert rx.waiting == len([n for n in have if n > edge])
        assert sorted(rx.blocks) == ranges([n for n in sorted(have) if n > edge])
        if rx.blocks and piece and seq > edge:
            assert rx.blocks[0][0] <= seq < rx.blocks[0][1]
        if read:
            out += rx.read(size)
    while rx.unread:
        out += rx.read(1000)
    assert out == DATA[: rx.next]


def ranges(numbers: list[int]) -> list[tuple[int, int]]:
    out: list[tuple[int, int]] = []
    for number in numbers:
        if out and out[-1][1] == number:
            out[-1] = (out[-1][0], number + 1)
        else:
            out.append((number, number + 1))
    return out


@given(st.lists(st.integers(0, 20_000), max_size=30), st.lists(st.tuples(st.integers(0, 40_000), st.integers(0, 3000))))
@settings(max_examples=100, deadline=None)
def test_send_queue_is_one_long_string(sizes: list[int], slices: list[tuple[int, int]]) -> None:
    queue = SendQueue(1000)
    whole = b""
    for number, size in enumerate(sizes):
        chunk = bytes([number]) * size
        queue.append(chunk)
        whole += chunk
    assert len(queue) == len(whole)
    for offset, size in slices:
        assert queue.slice(1000 + offset, size) == whole[offset : offset + size]
        chunk, base = queue.at(1000 + offset)
        if offset < len(whole):
            assert chunk[1000 + offset - base] == whole[offset]
    half = len(whole) // 2
    queue.release(1000 + half)
    assert queue.slice(1000 + half, len(whole)) == whole[half:]


@given(st.lists(st.tuples(st.sampled_from("sakrl"), st.integers(0, 30), st.integers(1, 12)), max_size=80))
@settings(max_examples=150, deadline=None)
def test_flight_counts_what_a_list_of_bytes_counts(steps: list[tuple[str, int, int]]) -> None:
    """Every sequence number is a state letter in the model: flying, sacked, lost."""
    flight = Scoreboard()
    model: dict[int, str] = {}
    una = nxt = 0
    now = 0.0
    for kind, offset, size in steps:
        now += 0.01
        left, right = una + offset, min(una + offset + size, nxt)
        if kind == "s":
            flight.sent(nxt, nxt + size, now)
            model.update(dict.fromkeys(range(nxt, nxt + size), "f"))
            nxt += size
        elif kind == "a":
            una = min(una + size, nxt)
            flight.acknowledge(una, now, -1.0, 0.001)
            model = {n: s for n, s in model.items() if n >= una}
        elif kind == "k" and left < right:
            news = flight.sack(left, right, now, -1.0, 0.001)
            assert news == sum(model[n] != "s" for n in range(left, right))
            model.update(dict.fromkeys(range(left, right), "s"))
        elif kind == "l" and left < right:
            flight.lose(left, right)
            model.update({n: "l" for n in range(left, right) if model[n] == "f"})
        elif kind == "r":
            first = min((n for n, s in model.items() if s == "l"), default=None)
            taken = flight.resend(size, now, 1 << 40)
            assert (taken is None) == (first is None)
            if taken is not None:
                assert taken[0] == first
                assert taken[1] - taken[0] <= size
                model.update(dict.fromkeys(range(*taken), "f"))
        assert flight.sacked == sum(s == "s" for s in model.values())
        assert flight.lost == sum(s == "l" for s in model.values())
        assert [(r.start, r.end) for r in flight.runs] == sorted((r.start, r.end) for r in flight.runs)
        covered = [n for run in flight.runs for n in range(run.start, run.end)]
        assert covered == sorted(model)


def test_cubic_falls_to_seventy_percent_and_comes_back() -> None:
    cubic = Cubic(1000)
    cubic.ssthresh = cubic.window = 100_000
    cubic.lost(100_000)
    assert cubic.window == 70_000
    now = 0.0
    while cubic.window < 100_000:
        now += 0.05
        cubic.acked(cubic.window, now, 0.05)
    # K = cbrt(W_max * (1 - beta) / C) = cbrt(100 * 0.3 / 0.4) = 4.2 s, or sooner where Reno would be faster.
    assert 2.0 < now < 5.0
    cubic.lost(100_000)
    kept = cubic.snapshot()
    cubic.timed_out(70_000)
    assert cubic.window == 1000
    cubic.restore(kept)
    assert cubic.window == 70_000


def test_slow_start_ends_when_the_queue_grows() -> None:
    cubic = Cubic(1000)
    sent = acked = 0
    for round_number in range(30):
        sent += cubic.window
        for _ in range(10):
            cubic.round_trip(0.05 + 0.01 * round_number, acked, sent)
        cubic.acked(cubic.window, round_number * 0.05, 0.05)
        acked = sent
        if cubic.window >= cubic.ssthresh:
            break
    assert cubic.window < 1_000_000


def test_round_trip_follows_rfc_6298() -> None:
    rtt = RoundTrip(TcpSettings())
    assert rtt.rto == 1.0
    rtt.sample(0.1, 0.0)
    assert rtt.rto == 0.1 + 0.2
    for n in range(100):
        rtt.sample(0.5 if n % 2 else 0.1, n)
    assert rtt.rto > 0.6
    assert rtt.minimum == 0.1
    for n in range(100):
        rtt.sample(0.5, 1000.0 + n)
    assert rtt.minimum == 0.5  # a route that became longer
