"""What is under way, against a model that holds every byte."""

from hypothesis import given, settings
from hypothesis import strategies as st

from coder.mesh.core.stack.tcp.scoreboard import Scoreboard


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
            taken = flight.take_lost(size, now, 1 << 40)
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
