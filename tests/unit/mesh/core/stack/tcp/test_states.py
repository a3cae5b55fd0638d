"""The table of state transitions."""

import pytest

from coder.mesh.core.stack.errors import StackError
from coder.mesh.core.stack.tcp.states import TABLE, TcpEvent, TcpState, step


def test_every_state_is_reachable() -> None:
    assert set(TABLE.values()) == set(TcpState)


def test_every_state_reaches_closed() -> None:
    for state in TcpState:
        assert step(state, TcpEvent.DIED) is TcpState.CLOSED


def test_missing_transition_raises() -> None:
    with pytest.raises(StackError, match="cannot take"):
        step(TcpState.TIME_WAIT, TcpEvent.FIN_SENT)


@pytest.mark.parametrize(
    ("facts", "path"),
    [
        ([TcpEvent.FIN_SENT, TcpEvent.FIN_ACKED, TcpEvent.FIN_ARRIVED], "fin-wait-1 fin-wait-2 time-wait"),
        ([TcpEvent.FIN_SENT, TcpEvent.FIN_ARRIVED, TcpEvent.FIN_ACKED], "fin-wait-1 closing time-wait"),
        ([TcpEvent.FIN_ARRIVED, TcpEvent.FIN_SENT, TcpEvent.FIN_ACKED], "close-wait last-ack closed"),
    ],
)
def test_three_ways_to_close(facts: list[TcpEvent], path: str) -> None:
    state = TcpState.ESTABLISHED
    seen = []
    for fact in facts:
        state = step(state, fact)
        seen.append(state.value)
    assert " ".join(seen) == path
