"""Receive side of a connection: what arrived, what may arrive, and the acknowledgements owed.

Lives here: receive window, acknowledgement policy, the peer's timestamps, header prediction.
Does not live here: the order of a segment's checks (tcp_input.py), the bytes themselves (reassembly.py).
Obeys: RFC 9293 sections 3.8.6.2.2 (when to open the window), 3.8.6.3 (when to acknowledge) and 3.10.7.4 (what is
acceptable); RFC 7323 sections 4.3 and 5 (timestamps); RFC 5961 (challenges); RFC 2018 and 2883 (blocks to report).
"""

from __future__ import annotations

from coder.mesh.core.stack.settings import DUPLICATE_THRESHOLD, QUICK_ACKS, TcpSettings
from coder.mesh.core.stack.tcp.agreement import Agreement
from coder.mesh.core.stack.tcp.burst import BurstLimit
from coder.mesh.core.stack.tcp.reassembly import Piece, Reassembly
from coder.mesh.core.stack.tcp.rtt import RoundTrip
from coder.mesh.core.stack.tcp.sequence import HALF, MASK
from coder.mesh.core.stack.tcp.timers import NEVER, Timers
from coder.mesh.core.wire import tcp
from coder.mesh.core.wire.tcp import Segment

_MAX_WINDOW = 0xFFFF
_PAWS_AGE = 24 * 86400.0
"""RFC 7323 5.5: a clock of one tick a millisecond wraps its sign after 24.8 days; an older timestamp proves nothing."""
_MAX_CHALLENGES = 10
"""RFC 5961 section 7 suggests ten in five seconds and leaves it to the implementation. Ten a second keep the packets
that an attacker provokes far below the packets he sends."""
_FREE_PIECES = 256
_PIECE_BYTES = 1024
"""Ours: segments held out of order per connection: as many as fill the window with this many bytes each, and some more
for small ones. A peer that sends single bytes must not fill the memory; a full window of ordinary segments fits."""
_HEADER_STAMPED = tcp.HEADER_SIZE + len(tcp.ESTABLISHED_OPTIONS) + 8
"""A header with timestamps and nothing else."""
MIN_PREDICTED = 512
"""Ours: payloads from which a run of equal sizes is likely; smaller ones are copied together (reassembly.py)."""


class Receiver:
    """The variables that RFC 9293 3.3.1 calls RCV, and the acknowledgements owed to the peer."""

    __slots__ = (
        "_agreed",
        "_burst",
        "_challenges",
        "_challenges_at",
        "_delayed_ack",
        "_largest",
        "_read",
        "_rtt",
        "_timers",
        "acks_pending",
        "discards",
        "dsack",
        "fin_seq",
        "irs",
        "last_ack_sent",
        "last_heard",
        "quick_acks",
        "rcv_adv",
        "rcv_wnd",
        "received",
        "run_prefix",
        "run_size",
        "rx",
        "segments_in",
        "segments_unacked",
        "ts_recent",
        "ts_recent_at",
    )

    def __init__(
        self, agreed: Agreement, timers: Timers, rtt: RoundTrip, burst: BurstLimit, settings: TcpSettings
    ) -> None:
        self._agreed = agreed
        self._timers = timers
        self._rtt = rtt
        self._burst = burst
        self._delayed_ack = settings.delayed_ack
        self.irs = 0
        "Initial receive sequence number: that of the peer's SYN."
        self.rx = Reassembly(0)
        "Reassembly queue; the attribute `next` is RCV.NXT."
        self._largest = settings.receive_buffer
        self.rcv_wnd = min(settings.receive_buffer_start, settings.receive_buffer)
        self._read = 0
        "Bytes read since the buffer grew."
        self.rcv_adv = 0
        "Right edge of the advertised window; never moves left."
        self.fin_seq = -1
        "Sequence number of the peer's FIN, once known."
        self.discards = False
        "Whether the application has closed: arriving data then resets the connection."
        self.acks_pending = 0
        "Acknowledgements to send now; more than one only to repeat duplicates."
        self.segments_unacked = 0
        self.quick_acks = QUICK_ACKS
        self.last_ack_sent = 0
        "RFC 7323 4.3: Last.ACK.sent, which decides the timestamp to echo."
        self.dsack: tuple[int, int] | None = None
        "A range that arrived twice and has to be reported (RFC 2883)."
        self.ts_recent = 0
        "RFC 7323: TS.Recent, the timestamp to echo."
        self.ts_recent_at = 0.0
        self._challenges = 0
        self._challenges_at = 0.0
        self.last_heard = 0.0
        "Arrival of the last acceptable segment."
        self.received = 0
        self.segments_in = 0
        # Header prediction: the expected header of the next segment of a run.
        self.run_prefix = b""
        self.run_size = 0

    # Opening

    def begin(self, syn: Segment, now: float) -> None:
        """Set the peer's numbers from its SYN (RFC 9293 3.10.7.3: RCV.NXT is SEG.SEQ + 1)."""
        self.irs = syn.seq
        self.rx = Reassembly(syn.seq + 1)
        # Nothing is advertised yet: the first window goes out with our own SYN, unscaled.
        self.rcv_adv = self.last_ack_sent = syn.seq + 1
        if syn.options.timestamps is not None:
            self.ts_recent = syn.options.timestamps[0]
            self.ts_recent_at = now
        self.last_heard = now

    def start_clock(self, now: float) -> None:
        """Start counting silence; nothing was heard yet."""
        self.last_heard = now

    # The window

    def window(self) -> int:
        """Return the bytes the peer may send beyond RCV.NXT: the room in the buffer, at most what survives as one
        burst."""
        rx = self.rx
        # The same limit as for sending: data in flight may sit in our socket buffer before we read it.
        burst = self._burst.within(self._rtt.minimum)
        window = (self.rcv_wnd if self.rcv_wnd < burst else burst) - rx.unread
        # The peer may use the whole advertised window: RFC 9293 3.8.6 strongly discourages shrinking it.
        advertised = self.rcv_adv - rx.next
        if window < advertised:
            window = advertised
        return window if window > 0 else 0

    def count_read(self, size: int) -> None:
        """Let the buffer grow with what the application reads: half of it at once doubles it, once a round trip.

        A peer may fill the buffer of every connection whose reader is slow, so a large one is for readers that have
        shown to be fast (Linux's dynamic right-sizing).
        """
        if self.rcv_wnd == self._largest:
            return
        self._read += size
        if self._read >= self.rcv_wnd // 2:
            self._read = 0
            self.rcv_wnd = min(2 * self.rcv_wnd, self._largest)

    def advertise(self) -> int:
        """Return the window for a header; record its right edge."""
        scale = self._agreed.rcv_scale
        # Rounded down: never more than there is (RFC 7323 section 2.3). The recorded edge is the rounded one.
        window = self.window() >> scale
        if window > _MAX_WINDOW:
            window = _MAX_WINDOW
        edge = self.rx.next + (window << scale)
        if edge > self.rcv_adv:
            self.rcv_adv = edge
        return window

    def advertise_unscaled(self) -> int:
        """Return the window of a SYN, which is never scaled (RFC 7323 2.2)."""
        window = self.window()
        if window > _MAX_WINDOW:
            window = _MAX_WINDOW
        if self.rx.next + window > self.rcv_adv:
            self.rcv_adv = self.rx.next + window
        return window

    def is_update_due(self, mss: int) -> bool:
        """Return whether the window opened enough for an update, after a read.

        RFC 9293 3.8.6.2.2: half of the buffer or a segment. Two segments here, as an acknowledgement goes out for every
        second one anyway: a reader of single bytes does not double the packets.
        """
        rx = self.rx
        window = self.window()
        min_update = (window if window < self.rcv_wnd else self.rcv_wnd) // 2
        return rx.next + window - self.rcv_adv >= (min_update if min_update > 2 * mss else 2 * mss)

    def discard(self) -> None:
        """Discard data that arrives from now on: the application left."""
        self.discards = True

    # Acceptance tests

    def fails_paws(self, stamp: int, now: float) -> bool:
        """Return whether PAWS (RFC 7323 5.3) rejects the timestamp as one of an earlier lap of the numbers."""
        # RFC 7323 section 5.2 compares like sequence numbers; by section 5.5 the comparison is void after 24 days of
        # silence.
        return (stamp - self.ts_recent) & MASK >= HALF and now - self.ts_recent_at < _PAWS_AGE

    def is_acceptable(self, seq: int, segment: Segment) -> bool:
        """Return whether any of the segment lies in the window; an empty one may lie at its edge (RFC 9293
        3.10.7.4)."""
        size = segment.length
        # The advertised edge counts, not the current room: RFC 7323 section 2.4 treats everything once advertised as
        # in-window. At the edge itself data is still "acceptable": it is cut to nothing, and its acknowledgement, which
        # a closed window must accept (RFC 9293 section 3.10.7.4), is processed.
        edge = self.rcv_adv if self.rcv_adv > self.rx.next else self.rx.next
        if size == 0:
            return self.rx.next <= seq <= edge
        return seq + size > self.rx.next and seq <= edge

    def update_ts_recent(self, seq: int, stamp: int, now: float) -> None:
        """Update TS.Recent, by RFC 7323 4.3 step 2: from the first segment since the last acknowledgement."""
        if seq <= self.last_ack_sent:  # newer, or ours is out of date (5.5)
            self.ts_recent = stamp
            self.ts_recent_at = now

    def heard(self, now: float) -> None:
        """Record that the peer is alive."""
        self.last_heard = now

    def count(self) -> None:
        """Count an arriving segment."""
        self.segments_in += 1

    def record_in_order(self, segments: int, stamp: int, now: float) -> None:
        """Record predicted segments at RCV.NXT. Called before `received_run` and `receive_segment`."""
        if self.last_ack_sent == self.rx.next:  # as `update_ts_recent`
            self.ts_recent = stamp
            self.ts_recent_at = now
        self.last_heard = now
        self.segments_in += segments

    # Data

    def received_run(self, segments: int, size: int, now: float) -> None:
        """Account for a run of full segments that was appended to `rx.parts`."""
        self.rx.appended(size)
        self._schedule_ack(segments, size, now)

    def receive_segment(self, packet: bytes, start: int, end: int, now: float) -> None:
        """Accept packet[start:end], the next data in order, while nothing is held out of order."""
        rx = self.rx
        size = end - start
        # An empty queue and a small payload, a keystroke: kept as bytes, which a reader of one part gets without
        # another copy.
        if rx.parts or size >= MIN_PREDICTED:
            rx.deliver(memoryview(packet)[start:end])
        else:
            rx.parts.append(packet[start:end])
            rx.appended(size)
        if size >= MIN_PREDICTED:
            self.run_prefix = packet[4:44]
            self.run_size = len(packet)
        self._schedule_ack(1, size, now)

    def receive(self, seq: int, data: Piece, now: float) -> int:
        """Accept data anywhere in the window; return how many bytes became readable."""
        rx = self.rx
        before = rx.next
        # Dropped: the sender retransmits it when the hole is closed. In-order data is always accepted, or the hole
        # would never close.
        if seq > before and rx.pieces >= _FREE_PIECES + (self.rcv_adv - before) // _PIECE_BYTES:
            return 0
        if seq < before and self._agreed.sack:
            self.dsack = (seq, min(seq + len(data), before))
        # Before `insert`, which may close it: the segment that closes a hole is acknowledged immediately as well
        # (RFC 5681 section 4.2).
        had_hole = rx.waiting > 0
        size = rx.insert(seq, data)
        if seq > before or had_hole:
            # A hole opened, is still open, or closed: the sender must learn it immediately, once per segment (RFC 5681
            # 4.2). More than three duplicates would add nothing.
            self.acks_pending = min(self.acks_pending + 1, DUPLICATE_THRESHOLD)
        if size:
            self._schedule_ack(1, size, now)
        return size

    def _schedule_ack(self, segments: int, size: int, now: float) -> None:
        """Decide when in-order data is acknowledged (RFC 9293 3.8.6.3).

        At least every second segment immediately, a single one after a delay. The first ones of a connection
        immediately too, as the peer's slow start counts acknowledgements.
        """
        self.received += size
        self.segments_unacked += segments
        # One acknowledgement for a whole run, where RFC 5681 section 4.2 says every second segment: the run arrived in
        # one moment, and growth counts bytes (RFC 3465), not acknowledgements.
        if self.quick_acks > 0:
            self.quick_acks -= segments
            if not self.acks_pending:
                self.acks_pending = 1
        elif self.segments_unacked >= 2:
            if not self.acks_pending:
                self.acks_pending = 1
        elif self._timers.ack_at == NEVER:
            self._timers.delay_ack(now + self._delayed_ack)

    def trim_to_window(self, seq: int, payload: memoryview | bytes) -> memoryview | bytes:
        """Return the part of a payload inside the advertised window."""
        self.request_ack()  # a peer that probes the window waits for an acknowledgement
        room = self.rcv_adv - seq
        return payload[: room if room > 0 else 0]

    def set_fin(self, at: int) -> None:
        """Record the sequence number of the peer's FIN; it counts when everything before it has arrived."""
        if self.fin_seq < 0:
            self.fin_seq = at

    def receive_fin(self) -> None:
        """Advance over the FIN, which takes a sequence number (RFC 9293 3.4)."""
        self.rx.skip(1)
        # The FIN's number lies behind the window it may have filled (RFC 9293 section 3.4 reserves room for it).
        if self.rcv_adv < self.rx.next:
            self.rcv_adv = self.rx.next
        self.request_ack()

    def on_duplicate_data(self, seq: int, size: int) -> None:
        """Acknowledge data that lies entirely below RCV.NXT or beyond the window."""
        if size and seq < self.rx.next and self._agreed.sack:
            self.dsack = (seq, min(seq + size, self.rx.next))

    def predict(self, packet: bytes, segment: Segment) -> None:
        """Expect more segments like this one, which took the slow path."""
        options = segment.options
        # Only what the run's comparison covers: SACK blocks and other header lengths would be read as timestamps.
        if len(segment.payload) < MIN_PREDICTED or options.timestamps is None or options.sack:
            return
        prefix = packet[4:44]
        if (prefix[0] << 8 | prefix[1]) == len(segment.payload) + _HEADER_STAMPED:
            self.run_prefix = prefix
            self.run_size = len(packet)

    # Acknowledgements owed

    def request_ack(self) -> None:
        """Acknowledge immediately."""
        if not self.acks_pending:
            self.acks_pending = 1

    def challenge(self, now: float) -> None:
        """Send a challenge ACK for a segment that may be forged, at a limited rate (RFC 5961 section 7)."""
        # A counter per connection. A counter for the whole host is a side channel: an attacker who provokes challenges
        # on his own connection sees whether others were spent on his guess.
        if now - self._challenges_at >= 1.0:
            self._challenges_at = now
            self._challenges = 0
        self._challenges += 1
        if self._challenges <= _MAX_CHALLENGES:
            self.request_ack()

    def acknowledged(self) -> None:
        """Record that an acknowledgement of everything so far was sent."""
        self.acks_pending = 0
        self.segments_unacked = 0
        if self._timers.ack_at != NEVER:
            self._timers.delay_ack(NEVER)
        # With every acknowledgement, carried by data or not: RFC 7323 section 4.3, step 1.
        self.last_ack_sent = self.rx.next

    def reported(self) -> None:
        """Clear the duplicate after its report; RFC 2883 section 4: once."""
        self.dsack = None

    def blocks(self, room: int) -> list[tuple[int, int]]:
        """Return at most `room` ranges to report: a duplicate first, then the most recent (RFC 2018 section 4)."""
        if not self._agreed.sack:
            return []
        # RFC 2883 section 4: the duplicate takes the first place and one block less of the others is reported.
        return (([self.dsack] if self.dsack else []) + self.rx.blocks)[:room]

    def stop(self) -> None:
        """Drop the state of a closed connection; data that arrived can still be read."""
        self.acks_pending = 0
