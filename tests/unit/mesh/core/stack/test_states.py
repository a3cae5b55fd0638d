"""The table itself."""

import pytest

from coder.mesh.core.stack.errors import StackError
from coder.mesh.core.stack.states import TABLE, Fact, State, step


def test_every_state_can_be_reached():
    assert set(TABLE.values()) == set(State)


def test_every_state_can_be_left_for_closed():
    for state in State:
        assert step(state, Fact.DIED) is State.CLOSED


def test_what_is_not_in_the_table_is_an_error():
    with pytest.raises(StackError, match="cannot take"):
        step(State.TIME_WAIT, Fact.FIN_SENT)


@pytest.mark.parametrize(
    ("facts", "path"),
    [
        ([Fact.FIN_SENT, Fact.FIN_ACKED, Fact.FIN_ARRIVED], "fin-wait-1 fin-wait-2 time-wait"),
        ([Fact.FIN_SENT, Fact.FIN_ARRIVED, Fact.FIN_ACKED], "fin-wait-1 closing time-wait"),
        ([Fact.FIN_ARRIVED, Fact.FIN_SENT, Fact.FIN_ACKED], "close-wait last-ack closed"),
    ],
)
def test_the_three_ways_to_close(facts, path):
    state = State.ESTABLISHED
    seen = []
    for fact in facts:
        state = step(state, fact)
        seen.append(state.value)
    assert " ".join(seen) == path
