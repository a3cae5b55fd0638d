"""The sending half of a connection: what is queued, what went out, what the peer takes.

Lives here: the variables RFC 9293 3.3.1 calls SND, the peer's window.
Does not live here: what was lost and how fast to send (recovery.py), how a segment is built (segments.py).
Obeys: RFC 9293 sections 3.3.1, 3.4 and 3.8.6; RFC 5961 section 5 (which acknowledgements are believed).
"""

from __future__ import annotations

from coder.mesh.core.stack.tcp.agreement import Agreement
from coder.mesh.core.stack.tcp.sendqueue import SendQueue
from coder.mesh.core.stack.tcp.timers import NEVER, Timers


class Sender:
    """Bytes on their way out."""

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
        """`iss`: unpredictable, which is what RFC 6528 is about; random where it adds a hash to a clock."""
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
        "Its acknowledgement."
        # MAX.SND.WND, which RFC 5961 section 5.2 and the silly window rule both ask for.
        self._max_wnd = 0
        self.write_closed = False
        "The application has finished; a FIN follows what is queued."
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
        """Our SYN is (about to be) under way: it takes the number ISS."""
        # RFC 9293 section 3.4: a SYN is acknowledged like a byte, so it has a number like one.
        self.snd_nxt = self.iss + 1

    def begin(self, syn_seq: int, window: int) -> None:
        """The peer's SYN arrived."""
        # Provisional: `update_window` follows with the acknowledgement that establishes the connection.
        self.snd_wnd = self._max_wnd = window
        self.snd_wl1 = syn_seq
        self.snd_wl2 = self.snd_una

    def established(self) -> None:
        """The peer acknowledged our SYN."""
        self.snd_una = self.iss + 1

    def finish(self) -> None:
        """Nothing more will be queued."""
        self.write_closed = True

    def stop(self) -> None:
        """The connection is closed."""
        self.queue.clear()

    def await_writable(self, waits: bool) -> None:
        """Whether somebody wants to know when there is room again."""
        self.awaits_writable = waits

    # Out

    def sent(self, upto: int, segments: int) -> None:
        """Everything below `upto` went out at least once, in so many segments more."""
        # Never moves back, also where all is sent again: what is lost stands on the scoreboard, and an acknowledgement
        # of anything sent stays acceptable (SEG.ACK =< SND.NXT).
        self.snd_nxt = upto
        self.segments_out += segments

    def sent_fin(self) -> None:
        """The FIN went out, after all that was queued."""
        self.fin_sent = True

    def count(self, segments: int) -> None:
        """Segments without new data went out."""
        self.segments_out += segments

    def number_for_bare(self) -> int:
        """The sequence number of a segment without data that the peer will look at.

        Normally SND.NXT. A peer short of memory takes its window back (RFC 9293 3.8.6 warns of it; Linux does), and
        then drops what lies beyond the new edge, acknowledgements included: both directions would hang for good.
        """
        edge = self.snd_una + self.snd_wnd
        # An edge is only as exact as its scale: within one step it may be SND.NXT itself, rounded down.
        return self.snd_nxt if self.snd_nxt - edge < 1 << self._agreed.snd_scale else edge

    # In

    def believes(self, ack: int) -> bool:
        """Whether an acknowledgement may be genuine (RFC 5961 5.2): nothing unsent, nothing older than any window."""
        return self.snd_una - self._max_wnd <= ack <= self.snd_nxt

    def acknowledged(self, ack: int) -> None:
        """Everything below arrived."""
        self.snd_una = ack
        # Only here: a SACK may be taken back (RFC 2018 section 8), an acknowledgement never.
        self.queue.release(ack)

    def update_window(self, window: int, seq: int, ack: int) -> bool:
        """The peer takes `window` bytes from `ack` on; whether that ends a wait for its window to open."""
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
        """RFC 9293 3.10.7.4: whether a segment's window is newer than the one we have; segments may swap places."""
        return seq > self.snd_wl1 or (seq == self.snd_wl1 and ack >= self.snd_wl2)

    def takes_little(self, room: int) -> bool:
        """Whether less than a segment may be sent into the peer's window of `room` bytes.

        RFC 9293 3.8.6.2.1: when it is half of the largest window ever seen (case 3), or was that small for a while
        (case 4, which is what window probes tell).
        """
        # RFC 9293 leaves the fraction at one half. The override of case 4 is the persist timer: its probe asks first,
        # and what a small window still takes goes out after.
        return room * 2 >= self._max_wnd or self._timers.persist_count > 0

    @property
    def is_stalled_by_window(self) -> bool:
        """Whether something waits and nothing is under way whose acknowledgement could open the window."""
        return self.snd_nxt == self.snd_una and self.has_more
