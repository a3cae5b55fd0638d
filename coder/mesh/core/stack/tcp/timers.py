"""Timers of a connection.

Lives here: every deadline of a connection, and the counts that belong to a deadline.
Does not live here: the reaction to an expired deadline (tcp_timer.py), the heap of all connections
(stack/deadlines.py).
Obeys: RFC 9293 sections 3.8.1 (retransmission), 3.8.4 (keepalive), 3.8.6.1 (zero window), 3.8.6.3 (delayed
acknowledgements) and 3.6.1 (TIME-WAIT); RFC 8985 sections 6.2 (reordering) and 7.2 (tail loss probe).
"""

from __future__ import annotations

NEVER = float("inf")


class Timers:
    """Deadlines in seconds of the caller's clock, NEVER for stopped timers.

    Any part may read them; only the methods below move them. This class has no clock: each method gets a moment.
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
        "Time to send the SYN (again)."
        # The next two timers cover everything in flight, rather than one timer per segment. Progress restarts them
        # (RFC 6298 section 5, RFC 8985 section 7.2), so they expire only after a silence.
        self.rto_at = NEVER
        "Time at which everything in flight counts as lost."
        self.probe_at = NEVER
        "Earlier: when the last segment is sent once more. No later segment can show that it is missing."
        self.reorder_at = NEVER
        "Time at which segments in the reordering window count as lost."
        self.ack_at = NEVER
        "Time to send a delayed acknowledgement."
        self.persist_at = NEVER
        self.persist_count = 0
        "Window probes in a row."
        self.time_wait_at = NEVER
        "End of TIME_WAIT, or of a closed socket's wait for the peer's FIN."
        # RFC 9293 section 3.8.4: off by default; most dead peers are noticed when data is sent to them.
        self.keepalive: tuple[float, float, int] | None = None
        "(seconds of silence before the first probe, seconds between probes, probes)."
        self.keepalive_at = NEVER
        self.keepalive_probes = 0
        # Compared with when the peer was heard last: input then need not touch any timer.
        self.keepalive_sent = 0.0
        self.earliest = NEVER
        "No deadline is earlier. A postponed deadline leaves it unchanged: the check happens when it expires."
        self.scheduled: list[float] = []
        "Entries of this connection in the stack's heap, the earliest last; the heap keeps them."

    def refresh(self) -> float:
        """Recompute the earliest deadline.

        Comparing eight for every packet would cost a tenth of a conversation's work.
        """
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
        """Stop all timers of a closed connection."""
        self.syn_at = self.ack_at = self.time_wait_at = NEVER
        # TIME-WAIT's too: a closed connection answers nothing any more.
        self.stop_all_but_time_wait()
        self.earliest = NEVER

    def stop_all_but_time_wait(self) -> None:
        """Stop all timers but TIME-WAIT's; only a retransmitted FIN may still arrive."""
        # RFC 9293 section 3.10.7.4: in TIME-WAIT all timers but its own are turned off.
        self.rto_at = self.probe_at = self.reorder_at = self.persist_at = self.keepalive_at = NEVER

    def send_syn(self, at: float) -> None:
        """Send the SYN at that moment; NEVER: it was answered."""
        self.syn_at = at
        self._note(at)

    def set_retransmission(self, rto_at: float, probe_at: float) -> None:
        """Set the timers of data in flight (NEVER: none is left)."""
        self.rto_at = rto_at
        self.probe_at = probe_at
        # Written out, like every comparison on a packet's path: `min` of two costs four times as much in plain Python.
        at = rto_at if rto_at < probe_at else probe_at
        if at < self.earliest:
            self.earliest = at

    def stop_retransmission(self) -> None:
        """Stop the timers of data in flight: all of it arrived."""
        self.rto_at = self.probe_at = self.reorder_at = NEVER

    def set_reordering(self, at: float) -> None:
        """Set RACK's reordering timer; NEVER: stop it."""
        self.reorder_at = at
        self._note(at)

    def delay_ack(self, at: float) -> None:
        """Set the delayed acknowledgement's timer; NEVER: the acknowledgement was sent."""
        self.ack_at = at
        self._note(at)

    def start_persist(self, at: float) -> None:
        """Start the persist timer: the peer's window is closed."""
        self.persist_at = at
        self._note(at)

    def repeat_persist(self, at: float) -> None:
        """Restart the persist timer after a probe."""
        # Counted, not timed: the count drives the backoff, and shows that a window was small for a while.
        self.persist_count += 1
        self.start_persist(at)

    def stop_persist(self) -> None:
        """Stop the persist timer: the window is open, or nothing waits for it."""
        self.persist_at = NEVER
        self.persist_count = 0

    def set_time_wait(self, at: float) -> None:
        """Set the end of TIME-WAIT (RFC 9293 3.6.1: twice the segment lifetime); NEVER: over."""
        self.time_wait_at = at
        self._note(at)

    def set_keepalive(self, how: tuple[float, float, int] | None, heard: float) -> None:
        """Switch keepalive on or off; `heard`: when the peer was heard last."""
        self.keepalive = how
        self.start_keepalive(NEVER if how is None else heard + how[0])

    def start_keepalive(self, at: float) -> None:
        """Set the next check of the connection's silence; NEVER: none."""
        self.keepalive_at = at
        self._note(at)

    def keepalive_answered(self) -> None:
        """Reset the count of probes: the peer was heard since the last probe."""
        self.keepalive_probes = 0

    def keepalive_probed(self, now: float, interval: float) -> None:
        """Count a probe that is sent."""
        self.keepalive_probes += 1
        self.keepalive_sent = now
        self.start_keepalive(now + interval)
