"""The scoreboard, against a model that stores every byte."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coder.mesh.core.stack.tcp.scoreboard import Run, Scoreboard

MSS = 1208
ANY_WINDOW = 1 << 40
LONG_AGO = -1e9
"""A reordering window that makes everything overdue."""


class Model:
    """State of every byte (in flight, sacked, lost), and segment boundaries."""

    def __init__(self) -> None:
        self.states: dict[int, str] = {}
        self.edges = {0}

    def set_state(self, left: int, right: int, state: str, only: str = "fsl") -> None:
        self.states.update({n: state for n in range(left, right) if self.states[n] in only})

    def whole_segments(self, left: int, right: int) -> tuple[int, int]:
        """Return the whole segments within a range; an empty range when there are none."""
        inside = [edge for edge in self.edges if left <= edge <= right]
        return (min(inside), max(inside)) if inside else (left, left)

    def send_range(self, left: int, right: int, size: int) -> None:
        """Record a range sent in segments of `size`."""
        self.edges -= set(range(left + 1, right))
        self.edges |= {*range(left, right, size), right}


STEPS = st.lists(st.tuples(st.sampled_from("ssakkrrlfe"), st.integers(0, 30), st.integers(1, 12)), max_size=80)


@given(STEPS, st.integers(1, 9))
@settings(max_examples=400, deadline=None)
def test_flight_matches_byte_list(steps: list[tuple[str, int, int]], mss: int) -> None:
    flight, model = Scoreboard(), Model()
    una = nxt = 0
    now = 0.0
    for kind, offset, size in steps:
        left, right = una + offset, min(una + offset + size, nxt)
        if kind in "ak":
            now += 0.01
        if kind == "s":
            flight.sent(nxt, nxt + size, now, mss)
            model.states.update(dict.fromkeys(range(nxt, nxt + size), "f"))
            model.send_range(nxt, nxt + size, mss)
            nxt += size
        elif kind == "a":
            una = min(una + size, nxt)
            flight.acknowledge(una, now, -1.0, 0.001)
            model.states = {n: s for n, s in model.states.items() if n >= una}
            model.edges = {edge for edge in model.edges if edge > una} | {una}
        elif kind == "k" and left < right:
            inside = model.whole_segments(left, right)
            assert flight.sack(left, right, now, -1.0, 0.001) == sum(model.states[n] != "s" for n in range(*inside))
            model.set_state(*inside, "s")
        elif kind == "l" and left < right:
            flight.mark_lost(left, right)
            # A cut is an edge from then on; reported or lost ranges are not cut.
            model.edges |= {edge for edge, inside in ((left, left), (right, right - 1)) if model.states[inside] == "f"}
            model.set_state(left, right, "l", "f")
        elif kind == "f" and una < nxt:
            flight.mark_first_lost()
            model.set_state(una, min(edge for edge in model.edges if edge > una), "l", "f")
        elif kind == "e" and una < nxt:
            if model.states[una] == "s":  # the peer reneged on its report
                reported = {n for n, s in model.states.items() if s == "s"}
                model.edges -= {n for n in reported if n - 1 in reported}
                model.set_state(una, nxt, "f", "s")
            flight.expire(now, LONG_AGO)
            model.set_state(una, nxt, "l", "f")
        elif kind == "r":
            first = min((n for n, s in model.states.items() if s == "l"), default=None)
            taken = flight.next_lost(size, now, ANY_WINDOW)
            assert (taken is None) == (first is None)
            if taken is not None:
                assert taken[0] == first
                assert 0 < taken[1] - taken[0] <= size
                assert {model.states[n] for n in range(*taken)} == {"l"}, "never a reported range"
                model.set_state(*taken, "f")
                model.send_range(*taken, size)
        check_against(flight, model)
    flight.expire(now, LONG_AGO)
    missing = set(range(una, nxt)) - {n for run in flight.runs if run.sacked for n in range(run.start, run.end)}
    resent = [n for taken in iter(lambda: flight.next_lost(mss, now, ANY_WINDOW), None) for n in range(*taken)]
    assert sorted(resent) == sorted(missing), "all that is missing is retransmitted once"


def check_against(flight: Scoreboard, model: Model) -> None:
    marks = {
        n: "s" if run.sacked else "l" if run.lost else "f" for run in flight.runs for n in range(run.start, run.end)
    }
    assert marks == model.states
    assert flight.sacked == sum(s == "s" for s in model.states.values())
    assert flight.lost == sum(s == "l" for s in model.states.values())
    assert [(r.start, r.end) for r in flight.runs] == sorted((r.start, r.end) for r in flight.runs)


def full_flight(size: int, segment: int = MSS, batch: int = 44) -> Scoreboard:
    """Return a flight of so many bytes, each batch sent at its own moment."""
    flight = Scoreboard()
    for start in range(0, size, batch * segment):
        flight.sent(start, min(start + batch * segment, size), 1 + start * 1e-6, segment)
    return flight


def test_block_edges_rounded_to_segments() -> None:
    flight = full_flight(10 * MSS)
    assert flight.sack(3 * MSS + 1, 5 * MSS, 2.0, -1.0, 0.001) == MSS
    assert flight.sack(6 * MSS, 8 * MSS - 1, 2.0, -1.0, 0.001) == MSS
    assert flight.sack(8 * MSS + 1, 9 * MSS - 1, 2.0, -1.0, 0.001) == 0
    assert [(run.start // MSS, run.end // MSS) for run in flight.runs if run.sacked] == [(4, 5), (6, 7)]


def test_single_bytes_share_segment_runs() -> None:
    flight = full_flight(1_800_000)
    random = Random(7)
    for _ in range(20_000):
        at = random.randrange(1_800_000 - 1)
        assert flight.sack(at, at + 1, 3.0, -1.0, 0.001) == 0
    assert len(flight.runs) == -(-1_800_000 // (44 * MSS))


@pytest.mark.parametrize("segment", [8, 1])
def test_tiny_segments_share_runs(segment: int) -> None:
    """The peer announces a tiny MSS, or the application writes byte by byte, each byte at its own moment."""
    size = 40_000 * segment
    flight = full_flight(size, segment, batch=1)
    most = 1024 + size // 1024 + 1
    assert len(flight.runs) <= most
    for at in range(segment, size, 2 * segment):
        flight.sack(at, at + segment, 1e6, -1.0, 0.001)
    assert len(flight.runs) <= most
    flight.expire(1e6, LONG_AGO)
    resent = 0
    while (taken := flight.next_lost(segment, 1e6 + resent, ANY_WINDOW)) is not None:
        resent += taken[1] - taken[0]
        assert len(flight.runs) <= 2 * most
    assert resent == size - flight.sacked


def test_window_opening_bytewise_is_bounded() -> None:
    """The peer shrank its window, and reopens it for the lost flight byte by byte."""
    flight = full_flight(100 * MSS)
    flight.expire(2.0, LONG_AGO)
    for edge in range(1, 20_000):
        while flight.next_lost(MSS, 2.0 + edge, edge) is not None:
            pass
    assert len(flight.runs) <= 1024 + 2 * 100 * MSS // 1024
    while flight.next_lost(MSS, 1e6, ANY_WINDOW) is not None:
        pass
    assert not flight.lost


class Watched(list[Run]):
    """Counts how often a run is accessed."""

    accesses = 0

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        self.accesses += 1
        return super().__getitem__(index)

    def __iter__(self):  # type: ignore[no-untyped-def]
        for run in super().__iter__():
            self.accesses += 1
            yield run


def test_lost_flight_is_scanned_once() -> None:
    """A quarter of two thousand segments is missing; retransmitting all of them accesses each run a few times."""
    flight = full_flight(2000 * MSS)
    for at in range(4, 2000, 4):
        flight.sack((at - 3) * MSS, at * MSS, 3.0, -1.0, 0.001)
    flight.expire(3.0, LONG_AGO)
    flight.runs = Watched(flight.runs)
    before, pieces = len(flight.runs), 0
    while flight.next_lost(MSS, 4.0 + pieces, ANY_WINDOW) is not None:
        pieces += 1
    assert pieces >= 500
    assert isinstance(flight.runs, Watched)
    assert flight.runs.accesses <= 6 * (before + pieces)


def test_detection_stops_behind_newest_arrival() -> None:
    flight = full_flight(2000 * MSS, batch=2)
    flight.sack(10 * MSS, 12 * MSS, 3.0, -1.0, 0.001)
    flight.runs = Watched(flight.runs)
    assert flight.detect(3.0, 0.0)[0] == 10 * MSS
    assert flight.runs.accesses <= 8
