"""Send side of a connection: what is queued, what was sent, what the peer's window allows.

Lives here: the variables RFC 9293 3.3.1 calls SND, the peer's window.
Does not live here: losses and the send rate (recovery.py), building segments (segments.py).
Obeys: RFC 9293 sections 3.3.1, 3.4 and 3.8.6; RFC 5961 section 5 (acceptable acknowledgements).
"""

from __future__ import annotations

from coder.mesh.core.stack.tcp.agreement import Agreement
from coder.mesh.core.stack.tcp.sendqueue import SendQueue
from coder.mesh.core.stack.tcp.timers import NEVER, Timers


class Sender:
    """Send sequence variables and the send queue."""

    __slots__ = (
        "_agreed",
        "_max_wnd",
        "_timers",
        "awaits_writable",
        "fin_sent",
        "iss",
        "queue",
        "segments_out",
        "snd_nxt",
        "snd_una",
        "snd_wl1",
        "snd_wl2",
        "snd_wnd",
        "write_closed",
    )

    def __init__(self, iss: int, agreed: Agreement, timers: Timers) -> None:
        """Set the initial sequence number `iss`.

        RFC 6528 requires an unpredictable one; here it is random instead of a hash added to a clock.
        """
        self._agreed = agreed
        self._timers = timers
        self.iss = iss
        self.queue = SendQueue(iss + 1)  # the SYN takes the number before the first byte
        self.snd_una = iss
        self.snd_nxt = iss
        self.snd_wnd = 0
        self.snd_wl1 = 0
        "Sequence number of the segment that set the window last."
        self.snd_wl2 = 0
        "Acknowledgement number of that segment."
        # MAX.SND.WND, which RFC 5961 section 5.2 and the silly window rule both need.
        self._max_wnd = 0
        self.write_closed = False
        "Whether the application has finished; a FIN follows the queue."
        self.fin_sent = False
        self.awaits_writable = False
        self.segments_out = 0

    @property
    def in_flight(self) -> int:
        """Sequence numbers sent and not acknowledged."""
        return self.snd_nxt - self.snd_una

    @property
    def unsent(self) -> int:
        """Bytes queued that were never sent."""
        left = self.queue.end - self.snd_nxt
        return left if left > 0 else 0

    @property
    def has_more(self) -> bool:
        """Whether data or a FIN waits to be sent."""
        return self.queue.end > self.snd_nxt or (self.write_closed and not self.fin_sent)

    # Opening and closing

    def send_syn(self) -> None:
        """Give our SYN, which is about to be sent, the number ISS."""
        # RFC 9293 section 3.4: a SYN is acknowledged like a byte, so it occupies a sequence number.
        self.snd_nxt = self.iss + 1

    def begin(self, syn_seq: int, window: int) -> None:
        """Record the window of the peer's SYN."""
        # Provisional: `update_window` follows with the acknowledgement that establishes the connection.
        self.snd_wnd = self._max_wnd = window
        self.snd_wl1 = syn_seq
        self.snd_wl2 = self.snd_una

    def established(self) -> None:
        """Record that the peer acknowledged our SYN."""
        self.snd_una = self.iss + 1

    def finish(self) -> None:
        """Finish the queue."""
        self.write_closed = True

    def stop(self) -> None:
        """Drop the state of a closed connection."""
        self.queue.clear()

    def await_writable(self, waits: bool) -> None:
        """Set whether a writer waits for room."""
        self.awaits_writable = waits

    # Out

    def sent(self, upto: int, segments: int) -> None:
        """Record that everything below `upto` was sent at least once, in so many further segments."""
        # Never moves back, also when all is retransmitted: losses are on the scoreboard, and an acknowledgement of
        # anything sent stays acceptable (SEG.ACK =< SND.NXT).
        self.snd_nxt = upto
        self.segments_out += segments

    def sent_fin(self) -> None:
        """Record the FIN as sent, after the whole queue."""
        self.fin_sent = True

    def count(self, segments: int) -> None:
        """Count segments without new data."""
        self.segments_out += segments

    def control_seq(self) -> int:
        """Return the sequence number of a segment without data that the peer accepts.

        Normally SND.NXT. A peer short of memory shrinks its window (RFC 9293 3.8.6 warns of it; Linux does). It then
        drops everything beyond the new edge, acknowledgements included: both directions would hang for good.
        """
        edge = self.snd_una + self.snd_wnd
        # An edge is only as exact as its scale: within one step it may be SND.NXT itself, rounded down.
        return self.snd_nxt if self.snd_nxt - edge < 1 << self._agreed.snd_scale else edge

    # In

    def is_acceptable_ack(self, ack: int) -> bool:
        """Return whether an acknowledgement is acceptable (RFC 5961 5.2): nothing unsent, not older than any window."""
        return self.snd_una - self._max_wnd <= ack <= self.snd_nxt

    def acknowledged(self, ack: int) -> None:
        """Advance SND.UNA."""
        self.snd_una = ack
        # Only here: a receiver may renege on a SACK (RFC 2018 section 8), never on an acknowledgement.
        self.queue.release(ack)

    def update_window(self, window: int, seq: int, ack: int) -> bool:
        """Set the peer's window to `window` bytes from `ack` on; return whether a closed window opened."""
        self.snd_wnd = window
        if window > self._max_wnd:
            self._max_wnd = window
        self.snd_wl1 = seq
        self.snd_wl2 = ack
        if window and self._timers.persist_at != NEVER:
            self._timers.stop_persist()
            return True
        return False

    def is_newer_window(self, seq: int, ack: int) -> bool:
        """Return whether a segment's window is newer than the current one (RFC 9293 3.10.7.4): segments may be
        reordered."""
        return seq > self.snd_wl1 or (seq == self.snd_wl1 and ack >= self.snd_wl2)

    def allows_small_segment(self, room: int) -> bool:
        """Return whether less than a segment may be sent into the peer's window of `room` bytes.

        RFC 9293 3.8.6.2.1: when it is half of the largest window ever seen (case 3), or was that small for a while
        (case 4, which the window probes show).
        """
        # RFC 9293 leaves the fraction at one half. The override of case 4 is the persist timer: its probe asks first,
        # and the data that a small window still takes is sent after.
        return room * 2 >= self._max_wnd or self._timers.persist_count > 0

    @property
    def is_stalled_by_window(self) -> bool:
        """Whether data waits and nothing is in flight whose acknowledgement could open the window."""
        return self.snd_nxt == self.snd_una and self.has_more
