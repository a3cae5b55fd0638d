"""When a connection wants to be looked at.

Lives here: every deadline of one connection, and the counts that belong to a deadline.
Does not live here: what happens when one has come (tcp_timer.py), the heap all connections share (stack/deadlines.py).
Obeys: RFC 9293 sections 3.8.1 (retransmission), 3.8.4 (keepalive), 3.8.6.1 (zero window), 3.8.6.3 (delayed
acknowledgements) and 3.6.1 (TIME-WAIT); RFC 8985 sections 6.2 (reordering) and 7.2 (tail loss probe).
"""

from __future__ import annotations

NEVER = float("inf")


class Timers:
    """Deadlines in seconds of the caller's clock, NEVER for those that do not run.

    Anybody may read them; they are moved by the verbs below. Nothing here knows the time: each verb is given a moment.
    """

    __slots__ = (
        "ack_at",
        "earliest",
        "keepalive",
        "keepalive_at",
        "keepalive_probes",
        "keepalive_sent",
        "persist_at",
        "persist_count",
        "probe_at",
        "reorder_at",
        "rto_at",
        "scheduled",
        "syn_at",
        "time_wait_at",
    )

    def __init__(self) -> None:
        self.syn_at = NEVER
        "When the SYN has to be sent (again)."
        # The next two watch over everything that is in flight, rather than one timer over each segment: progress sets
        # them anew (RFC 6298 section 5, RFC 8985 section 7.2), so they come only when nothing was heard for a while.
        self.rto_at = NEVER
        "When all that is in flight counts as lost."
        self.probe_at = NEVER
        "Earlier: when the last segment goes out once more. Nothing later can show by arriving that it is missing."
        self.reorder_at = NEVER
        "When segments given time for reordering count as lost."
        self.ack_at = NEVER
        "When a delayed acknowledgement is due."
        self.persist_at = NEVER
        self.persist_count = 0
        "Window probes in a row."
        self.time_wait_at = NEVER
        "When TIME_WAIT ends, or the wait of a closed socket for the peer's FIN."
        # RFC 9293 section 3.8.4: off unless asked for; most dead peers are noticed by whoever has something to send.
        self.keepalive: tuple[float, float, int] | None = None
        "(seconds of silence before the first probe, seconds between probes, probes)."
        self.keepalive_at = NEVER
        self.keepalive_probes = 0
        # Compared with when the peer was heard last: the way in then need not touch any timer.
        self.keepalive_sent = 0.0
        self.earliest = NEVER
        "No deadline comes before it. Moving one away leaves it where it was: it is looked at again when it has come."
        self.scheduled: list[float] = []
        "Entries of this connection in the stack's heap, the earliest last; the heap keeps them."

    def refresh(self) -> float:
        """Find the earliest of all. Comparing eight for every packet would cost a tenth of a conversation's work."""
        self.earliest = min(
            self.rto_at,
            self.probe_at,
            self.reorder_at,
            self.ack_at,
            self.persist_at,
            self.time_wait_at,
            self.keepalive_at,
            self.syn_at,
        )
        return self.earliest

    def _note(self, at: float) -> None:
        if at < self.earliest:
            self.earliest = at

    def stop(self) -> None:
        """The connection is closed."""
        self.syn_at = self.ack_at = self.time_wait_at = NEVER
        # TIME-WAIT's too: a closed connection answers nothing any more.
        self.stop_waiting()
        self.earliest = NEVER

    def stop_waiting(self) -> None:
        """Nothing more is expected of the peer but, maybe, its FIN once more."""
        # RFC 9293 section 3.10.7.4: in TIME-WAIT all timers but its own are turned off.
        self.rto_at = self.probe_at = self.reorder_at = self.persist_at = self.keepalive_at = NEVER

    def send_syn(self, at: float) -> None:
        """The SYN goes out at that moment; NEVER: it was answered."""
        self.syn_at = at
        self._note(at)

    def watch(self, rto_at: float, probe_at: float) -> None:
        """Data is under way (or, with NEVER, no more)."""
        self.rto_at = rto_at
        self.probe_at = probe_at
        # Written out, like every comparison on the way of a packet: `min` of two costs four times as much in plain
        # Python.
        at = rto_at if rto_at < probe_at else probe_at
        if at < self.earliest:
            self.earliest = at

    def all_arrived(self) -> None:
        """Nothing is under way."""
        self.rto_at = self.probe_at = self.reorder_at = NEVER

    def set_reordering(self, at: float) -> None:
        """RACK will look again; NEVER: it need not."""
        self.reorder_at = at
        self._note(at)

    def delay_ack(self, at: float) -> None:
        """An acknowledgement goes out then unless data carries it first; NEVER: it is out."""
        self.ack_at = at
        self._note(at)

    def start_persist(self, at: float) -> None:
        """The peer's window is closed: ask for it then."""
        self.persist_at = at
        self._note(at)

    def repeat_persist(self, at: float) -> None:
        """It was asked, and will be again."""
        # Counted, not timed: the count is what backs off, and what shows a window to have been small for a while.
        self.persist_count += 1
        self.start_persist(at)

    def stop_persist(self) -> None:
        """The window is open, or nothing waits for it."""
        self.persist_at = NEVER
        self.persist_count = 0

    def linger(self, at: float) -> None:
        """Stay only until then (RFC 9293 3.6.1: twice the segment lifetime); NEVER: over."""
        self.time_wait_at = at
        self._note(at)

    def set_keepalive(self, how: tuple[float, float, int] | None, heard: float) -> None:
        """Switch keepalive on or off; `heard`: when the peer was heard last."""
        self.keepalive = how
        self.start_keepalive(NEVER if how is None else heard + how[0])

    def start_keepalive(self, at: float) -> None:
        """Look at the connection's silence then; NEVER: never again."""
        self.keepalive_at = at
        self._note(at)

    def keepalive_answered(self) -> None:
        """The peer was heard since the last probe."""
        self.keepalive_probes = 0

    def keepalive_probed(self, now: float, interval: float) -> None:
        """A probe goes out."""
        self.keepalive_probes += 1
        self.keepalive_sent = now
        self.start_keepalive(now + interval)
