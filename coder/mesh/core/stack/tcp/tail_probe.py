"""The tail loss probe: one segment that makes a silent peer speak before the retransmission timer does.

Lives here: when to probe, with what, and what the answer to a probe tells.
Does not live here: the timer itself (timers.py), what a loss leads to (recovery.py).
Obeys: RFC 8985 section 7.
"""

from __future__ import annotations

from coder.mesh.core.stack.tcp.rtt import RoundTrip
from coder.mesh.core.stack.tcp.scoreboard import Scoreboard
from coder.mesh.core.stack.tcp.sender import Sender
from coder.mesh.core.stack.tcp.sequence import HALF, MASK
from coder.mesh.core.stack.tcp.timers import NEVER

_LONE_SEGMENT_DELAY = 0.2
"""RFC 8985 7.2: the longest a peer may delay the acknowledgement of a single segment."""
_UNMEASURED_DELAY = 1.0
"""RFC 8985 7.2: until there is a round trip. The retransmission timer begins with as much and then comes first; only
after a lost SYN, when it begins with three seconds, there is a probe."""
_MIN_DELAY = 0.01
"""Ours: RFC 8985 has no floor but names 10 ms as what implementations use; timers of busy machines are no finer."""


class TailProbe:
    """At most one probe at a time."""

    __slots__ = ("_board", "_rtt", "_sender", "end", "is_new")

    def __init__(self, sender: Sender, board: Scoreboard, rtt: RoundTrip) -> None:
        self._sender = sender
        self._board = board
        self._rtt = rtt
        self.end = -1
        "RFC 8985: TLP.end_seq, SND.NXT when the probe went out, or -1: none is out."
        self.is_new = False
        "Whether it was data never sent before (RFC 8985: not TLP.is_retrans)."

    def time(self, now: float, rto_at: float, mss: int) -> float:
        """When to send one, if the path is orderly and the peer reports with SACK; NEVER where that is no use."""
        smoothed = self._rtt.smoothed
        board = self._board
        # RFC 8985 section 7.2: only without SACKed data and outside of recovery, and never one probe behind another.
        if self.end >= 0 or board.sacked or board.lost:
            return NEVER
        # RFC 8985 section 7.2: PTO is two smoothed round trips. One would often fire before an acknowledgement that
        # is merely on its way.
        delay = 2 * smoothed if smoothed else _UNMEASURED_DELAY
        # A peer may sit on the acknowledgement of a lone segment; of two it may not (RFC 9293 section 3.8.6.3).
        if smoothed and self._sender.snd_nxt - self._sender.snd_una <= mss:
            delay += _LONE_SEGMENT_DELAY
        if delay < _MIN_DELAY:
            delay = _MIN_DELAY
        at = now + delay
        # RFC 8985 section 7.2 would probe at the timer's moment, and have the timer run after it. Here the timer keeps
        # its moment: it repairs more than a tail, and a second wait would double the silence.
        return at if at < rto_at else NEVER

    def begin(self, mss: int) -> bool:
        """Choose what to send (section 7.3). False: the last segment again, which now counts as lost.

        New data, when there is some and the peer takes it: it provokes an answer as well and is never sent twice.
        """
        sender = self._sender
        room = sender.snd_una + sender.snd_wnd - sender.snd_nxt
        # RFC 8985 section 7.3: new data first. Less than a segment of room counts only where it is all there is to
        # send, or the probe would be the silly segment that the sender's rules forbid.
        self.is_new = sender.queue.end > sender.snd_nxt and room >= min(mss, sender.unsent)
        if not self.is_new:
            self._board.lose(max(sender.snd_una, sender.snd_nxt - mss), sender.snd_nxt)
        self.end = sender.snd_nxt
        return self.is_new

    def cancel(self) -> None:
        """Whatever it finds out is known already."""
        self.end = -1

    def was_duplicate(self) -> None:
        """The peer reports a duplicate: it was the probe, so there is no loss to answer for."""
        if not self.is_new:
            self.end = -1

    def repaired(self, ack: int, tsecr: int, sent_at: int, bare: bool) -> bool:
        """An acknowledgement arrived: whether the probe repaired a loss nobody else noticed (section 7.4.2).

        `tsecr`: its echo, or -1; `sent_at`: our timestamp on the probe, -1 if it was new data or recovery has begun;
        `bare`: it says nothing new.
        """
        if ack < self.end:
            return False
        # RFC 8985 section 7.4.2: a probe of new data says nothing about the old; and during recovery the window has
        # been reduced for this flight already.
        if sent_at < 0:
            self.end = -1
            return False
        if tsecr >= 0:
            self.end = -1
            # The echo is not older than the probe: it answers the probe and not the original, which therefore was
            # lost.
            return (tsecr - sent_at) & MASK < HALF
        if ack == self.end and not bare:
            return False  # without timestamps only what comes next tells: a duplicate, if both copies arrived
        self.end = -1
        return not bare
