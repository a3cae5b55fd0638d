"""The eleven states of TCP (ten: listening is an object of its own) as a table and one function.

Lives here: the state transitions. Does not live here: the segments sent on a transition (tcp_output.py).
Obeys: RFC 9293 section 3.3.2, with one deviation: a connection leaves ESTABLISHED for FIN_WAIT_1 when the FIN is first
sent, not when the application requests it; queued data keeps it ESTABLISHED.
"""

from __future__ import annotations

from enum import Enum

from coder.mesh.core.stack.errors import StackError


class TcpState(Enum):
    """RFC 9293 section 3.3.2."""

    CLOSED = "closed"
    SYN_SENT = "syn-sent"
    SYN_RECEIVED = "syn-received"
    ESTABLISHED = "established"
    FIN_WAIT_1 = "fin-wait-1"
    FIN_WAIT_2 = "fin-wait-2"
    CLOSE_WAIT = "close-wait"
    CLOSING = "closing"
    LAST_ACK = "last-ack"
    TIME_WAIT = "time-wait"

    __hash__ = object.__hash__  # identity, in C: Enum's own costs a Python call per `in`


class TcpEvent(Enum):
    """Events of a connection."""

    CONNECT_CALLED = "connect called"
    SYN_ACCEPTED = "syn accepted"
    """A SYN arrived for a listener (or a fallback accepted it), or in a simultaneous open."""
    HANDSHAKE_DONE = "handshake done"
    """Our SYN was acknowledged and the peer's is known."""
    FIN_SENT = "fin sent"
    FIN_ACKED = "fin acked"
    FIN_ARRIVED = "fin arrived"
    """The FIN arrived in order: everything before it has arrived too."""
    TIME_WAIT_OVER = "time wait over"
    DIED = "died"
    """Reset by the peer, aborted here, or given up."""


_S, _E = TcpState, TcpEvent

TABLE: dict[tuple[TcpState, TcpEvent], TcpState] = {
    (_S.CLOSED, _E.CONNECT_CALLED): _S.SYN_SENT,
    (_S.CLOSED, _E.SYN_ACCEPTED): _S.SYN_RECEIVED,
    # The usual case: the answer acknowledged our SYN and carried the peer's, in one segment.
    (_S.SYN_SENT, _E.HANDSHAKE_DONE): _S.ESTABLISHED,
    (_S.SYN_SENT, _E.SYN_ACCEPTED): _S.SYN_RECEIVED,  # simultaneous open
    (_S.SYN_RECEIVED, _E.HANDSHAKE_DONE): _S.ESTABLISHED,
    (_S.ESTABLISHED, _E.FIN_SENT): _S.FIN_WAIT_1,
    # We may continue as long as we like: half-closed (RFC 9293 section 3.6.1).
    (_S.ESTABLISHED, _E.FIN_ARRIVED): _S.CLOSE_WAIT,
    # A segment that acknowledges our FIN and carries the peer's is two events, the acknowledgement first, as in
    # RFC 9293 section 3.10.7.4. The step from FIN-WAIT-1 to TIME-WAIT (section 3.3.2, note 2) therefore needs no row.
    (_S.FIN_WAIT_1, _E.FIN_ACKED): _S.FIN_WAIT_2,
    (_S.FIN_WAIT_1, _E.FIN_ARRIVED): _S.CLOSING,  # simultaneous close
    (_S.FIN_WAIT_2, _E.FIN_ARRIVED): _S.TIME_WAIT,
    # Only this end still had data to send.
    (_S.CLOSE_WAIT, _E.FIN_SENT): _S.LAST_ACK,
    (_S.CLOSING, _E.FIN_ACKED): _S.TIME_WAIT,
    # No TIME-WAIT: only the end that finished first enters it, and here that was the peer.
    (_S.LAST_ACK, _E.FIN_ACKED): _S.CLOSED,
    (_S.TIME_WAIT, _E.TIME_WAIT_OVER): _S.CLOSED,
    (_S.FIN_WAIT_2, _E.TIME_WAIT_OVER): _S.CLOSED,  # ours: the application has closed and the peer never finishes
} | {(state, _E.DIED): _S.CLOSED for state in _S}

# CLOSE-WAIT: the peer has finished, we need not have. Half-closed connections live as long as their second half.
SENDING = frozenset({_S.ESTABLISHED, _S.CLOSE_WAIT})
"""States in which new data may be sent."""
SYNCHRONIZED = frozenset(_S) - {_S.CLOSED, _S.SYN_SENT, _S.SYN_RECEIVED}
"""States in which both sides know each other's sequence numbers."""
# FIN-WAIT-1 and 2: we have finished and still receive; `shutdown(SHUT_WR)` of a client that waits for its answer.
RECEIVING = frozenset({_S.ESTABLISHED, _S.FIN_WAIT_1, _S.FIN_WAIT_2})
"""States in which the peer may still send data."""


def step(state: TcpState, event: TcpEvent) -> TcpState:
    """Return the state after an event. Raises StackError("impossible") when the table has no row."""
    after = TABLE.get((state, event))
    if after is None:
        raise StackError("impossible", f"a TCP connection cannot take '{event.value}' in state {state.value}")
    return after
