"""Tail loss probe: one segment that provokes an acknowledgement before the retransmission timer expires.

Lives here: when to probe, with which segment, and how to read the answer.
Does not live here: the timer itself (timers.py), the reaction to a loss (recovery.py).
Obeys: RFC 8985 section 7.
"""

from __future__ import annotations

from coder.mesh.core.stack.tcp.rtt import RoundTrip
from coder.mesh.core.stack.tcp.scoreboard import Scoreboard
from coder.mesh.core.stack.tcp.sender import Sender
from coder.mesh.core.stack.tcp.sequence import HALF, MASK
from coder.mesh.core.stack.tcp.timers import NEVER

_MAX_ACK_DELAY = 0.2
"""RFC 8985 7.2: the longest a peer may delay the acknowledgement of a single segment."""
_INITIAL_PTO = 1.0
"""RFC 8985 7.2: until there is a round trip. The retransmission timer starts with the same value and then expires
first; only after a lost SYN, when it starts with three seconds, there is a probe."""
_MIN_PTO = 0.01
"""Ours: RFC 8985 has no minimum but names 10 ms as common in implementations; timers of busy machines are no finer."""


class TailProbe:
    """State of the tail loss probe; at most one at a time."""

    __slots__ = ("_board", "_rtt", "_sender", "end", "is_new")

    def __init__(self, sender: Sender, board: Scoreboard, rtt: RoundTrip) -> None:
        self._sender = sender
        self._board = board
        self._rtt = rtt
        self.end = -1
        "RFC 8985: TLP.end_seq, SND.NXT when the probe went out, or -1: none is out."
        self.is_new = False
        "Whether it was data never sent before (RFC 8985: not TLP.is_retrans)."

    def pto_at(self, now: float, rto_at: float, mss: int) -> float:
        """Return when to send a probe, on a path in order to a peer with SACK; NEVER where a probe has no use."""
        srtt = self._rtt.srtt
        board = self._board
        # RFC 8985 section 7.2: only without SACKed data and outside of recovery, and never one probe after another.
        if self.end >= 0 or board.sacked or board.lost:
            return NEVER
        # RFC 8985 section 7.2: PTO is two smoothed round trips. One would often fire before an acknowledgement that is
        # merely in flight.
        delay = 2 * srtt if srtt else _INITIAL_PTO
        # A peer may delay the acknowledgement of a single segment, not of two (RFC 9293 section 3.8.6.3).
        if srtt and self._sender.snd_nxt - self._sender.snd_una <= mss:
            delay += _MAX_ACK_DELAY
        if delay < _MIN_PTO:
            delay = _MIN_PTO
        at = now + delay
        # RFC 8985 section 7.2 would probe at the timer's moment, and restart the timer after it. Here the timer keeps
        # its moment: it repairs more than a tail, and a second wait would double the silence.
        return at if at < rto_at else NEVER

    def begin(self, mss: int) -> bool:
        """Choose the probe (section 7.3).

        Returns False for a retransmission of the last segment, which now counts as lost. New data, when there is some
        and the peer takes it: it provokes an answer as well and is never sent twice.
        """
        sender = self._sender
        room = sender.snd_una + sender.snd_wnd - sender.snd_nxt
        # RFC 8985 section 7.3: new data first. Room for less than a segment counts only when nothing more is queued.
        # Otherwise the probe would be a small segment of the silly window syndrome.
        self.is_new = sender.queue.end > sender.snd_nxt and room >= min(mss, sender.unsent)
        if not self.is_new:
            self._board.mark_lost(max(sender.snd_una, sender.snd_nxt - mss), sender.snd_nxt)
        self.end = sender.snd_nxt
        return self.is_new

    def cancel(self) -> None:
        """End the probe: its answer is not needed any more."""
        self.end = -1

    def on_dsack(self) -> None:
        """End the probe after a report of a duplicate: the probe was the duplicate, so there is no loss to react to."""
        if not self.is_new:
            self.end = -1

    def repaired(self, ack: int, tsecr: int, sent_at: int, bare: bool) -> bool:
        """Return whether an acknowledgement shows that the probe repaired an undetected loss (section 7.4.2).

        `tsecr`: its echo, or -1; `sent_at`: our timestamp on the probe, -1 if it was new data or recovery has begun;
        `bare`: it says nothing new.
        """
        if ack < self.end:
            return False
        # RFC 8985 section 7.4.2: a probe of new data says nothing about the old data; and during recovery the window
        # has been reduced for this flight already.
        if sent_at < 0:
            self.end = -1
            return False
        if tsecr >= 0:
            self.end = -1
            # The echo is not older than the probe: it answers the probe and not the original, which therefore was lost.
            return (tsecr - sent_at) & MASK < HALF
        if ack == self.end and not bare:
            return False  # without timestamps the next acknowledgement decides: a duplicate, if both copies arrived
        self.end = -1
        return not bare
