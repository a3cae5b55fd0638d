"""Loss recovery and acknowledgement processing: progress, loss, window growth, and the timers of the flight.

Lives here: processing of acknowledgements, entering and leaving recovery, timeouts.
Does not live here: loss detection (loss_detection.py), the scoreboard (scoreboard.py), tail loss probes
(tail_probe.py), undoing a reduction (undo.py), the window's size (congestion.py), building packets (segments.py).
Obeys: RFC 8985 (RACK-TLP), RFC 6675 (pipe), RFC 6298 (timer).

The path of a lost segment: `LossDetector.detect` marks it (`on_timeout` marks all), `_resend_lost` of tcp_output.py
retransmits it, `_advance` sees it acknowledged. A lost SYN takes another path: tcp_timer.py, then `resend_syn` of
handshake.py.
"""

from __future__ import annotations

from enum import Enum

from coder.mesh.core.stack.tcp.agreement import Agreement
from coder.mesh.core.stack.tcp.burst import BurstLimit
from coder.mesh.core.stack.tcp.congestion import Cubic
from coder.mesh.core.stack.tcp.loss_detection import Blocks, LossDetector
from coder.mesh.core.stack.tcp.rtt import RoundTrip
from coder.mesh.core.stack.tcp.scoreboard import Scoreboard
from coder.mesh.core.stack.tcp.segments import SegmentBuilder
from coder.mesh.core.stack.tcp.sender import Sender
from coder.mesh.core.stack.tcp.tail_probe import TailProbe
from coder.mesh.core.stack.tcp.timers import NEVER, Timers
from coder.mesh.core.stack.tcp.undo import SpuriousLoss

_TICK = 0.001
"""Seconds between two values of our timestamp clock (`SegmentBuilder.clock`)."""
_LEAST_ROUND_TRIP = 1e-6
"""Ours: seconds. 0 means "none measured" (rtt.py), and a peer in the same process may answer in the same moment."""
_WINDOW_AFTER_LOST_SYN = 3
"""Ours: segments."""


class Phase(Enum):
    """State of loss recovery. `Recovery.recovery_point` is the end of the range under repair.

    OPEN becomes RECOVERY by an acknowledgement, either becomes LOSS by the retransmission timer; both return to OPEN
    when the recovery point is acknowledged, or when the loss proves spurious.
    """

    OPEN = "open"
    """No loss is under repair."""
    RECOVERY = "recovery"
    """Acknowledgements showed a loss; ends when everything outstanding then is acknowledged."""
    LOSS = "loss"
    """The retransmission timer showed a loss."""


class Recovery:
    """Reliability of a connection: the bytes in flight, and the reaction to their loss."""

    __slots__ = (
        "_agreed",
        "_builder",
        "_burst",
        "_detector",
        "_extra",
        "_sender",
        "_syns",
        "_timers",
        "_undo",
        "cubic",
        "is_cwnd_limited",
        "last_sent",
        "phase",
        "probe",
        "recovery_point",
        "retransmitted",
        "rtt",
        "scoreboard",
        "timeouts",
    )

    def __init__(
        self,
        sender: Sender,
        timers: Timers,
        builder: SegmentBuilder,
        rtt: RoundTrip,
        agreed: Agreement,
        burst: BurstLimit,
    ) -> None:
        self._sender = sender
        self._timers = timers
        self._builder = builder
        self._agreed = agreed
        self._burst = burst
        self.rtt = rtt
        self.cubic = Cubic(builder.mss)
        self.scoreboard = Scoreboard()
        self.phase = Phase.OPEN
        self.recovery_point = sender.iss
        "RFC 6582 calls it recover, RFC 6675 RecoveryPoint: SND.NXT when the loss was found."
        self._extra = 0
        "Bytes that may be sent regardless of the congestion window: probes, the first retransmission."
        self.is_cwnd_limited = False
        "Whether the congestion window was the limit: only then may it grow (RFC 9438 section 5.8)."
        self._undo = SpuriousLoss()
        self.probe = TailProbe(sender, self.scoreboard, rtt)
        self._detector = LossDetector(sender, timers, rtt, agreed, self.scoreboard, self.probe)
        self.last_sent = 0.0
        self._syns = 0
        "Transmissions of our SYN."
        self.timeouts = 0
        self.retransmitted = 0
        "Bytes."

    # Opening

    def resize(self, mss: int) -> None:
        """Change the segment size."""
        self.cubic.resize(mss)

    def begin(self, mss: int) -> None:
        """Set the initial window: the peer's SYN announced its segment size."""
        self.cubic = Cubic(mss)

    def established(self, now: float) -> None:
        """Start data transfer: our SYN was acknowledged."""
        rtt = self.rtt
        # RFC 6298 section 3 (Karn): after two transmissions of a SYN the acknowledged one is unknown. The timer is not
        # the only cause: after a change of path, or a repeated SYN of the peer, ours is repeated as well.
        if self._syns == 1:
            rtt.add_sample(max(now - self.last_sent, _LEAST_ROUND_TRIP), now)
        elif rtt.retries:
            rtt.syn_was_lost()
            # RFC 5681 section 3.1 begins with one segment after a lost SYN. RFC 6928 section 2 asks to refrain from
            # that after a single repetition, as a first timeout of one second is spurious more often; three is between.
            self.cubic.shrink_to(_WINDOW_AFTER_LOST_SYN)
        rtt.on_progress()

    def sent_syn(self, now: float) -> None:
        """Record the transmission of a SYN."""
        self._syns += 1
        self.last_sent = now

    def on_syn_timeout(self) -> None:
        """Back off after the SYN's timer expired."""
        self.rtt.back_off()
        self.timeouts += 1

    # Send limits

    @property
    def pipe(self) -> int:
        """Bytes believed to be in the network (RFC 6675 section 4: pipe)."""
        sender = self._sender
        board = self.scoreboard
        # Without SACK each duplicate acknowledgement reports one segment that arrived (RFC 5681 3.2 step 4).
        credit = 0 if self._agreed.sack else self._detector.dup_acks * self.cubic.mss
        # A retransmission counts once more: `retransmit` takes it out of `lost`.
        pipe = sender.snd_nxt - sender.snd_una - board.sacked - board.lost - credit
        return pipe if pipe > 0 else 0

    def room(self) -> int:
        """Return the bytes that may be added to the pipe: the room that congestion window and far-end buffer leave."""
        cap = self._burst.within(self.rtt.minimum)
        window = self.cubic.window
        # The burst limit is no congestion window: it is not reduced by losses and does not make them.
        room = (window if window < cap else cap) - self.pipe
        return room if room > self._extra else self._extra

    def note_cwnd_limited(self, sendable: int) -> None:
        """Record which limit stops us: application and peer would allow `wanted` more bytes."""
        window = self.cubic.window
        # Where the burst limit stops us the window says nothing about the path, and growing it would have no effect.
        self.is_cwnd_limited = window <= self._burst.within(self.rtt.minimum) and window - self.pipe < sendable

    def may_send_small(self, size: int, now: float) -> bool:
        """Return whether a small segment may be sent without checking every limit."""
        sender = self._sender
        board = self.scoreboard
        if self.phase is not Phase.OPEN or board.lost or board.sacked:
            return False
        used = sender.snd_nxt - sender.snd_una
        # With more in flight the limits need a full check; after a silence the window has to shrink.
        cubic = self.cubic
        after = used + size
        return (
            used < cubic.mss
            and after <= sender.snd_wnd
            and after <= cubic.window
            and now - self.last_sent <= self.rtt.rto
        )

    def restart_idle_window(self, now: float) -> None:
        """Shrink the window when sending resumes after a silence: an old window does not describe the path (RFC 5681
        4.1)."""
        idle = now - self.last_sent
        if idle > self.rtt.rto:
            # Beyond one timeout: RFC 5681 section 4.1.
            self.cubic.idle(int(idle / self.rtt.rto))

    # Output

    def sent_small(self, start: int, end: int, now: float) -> None:
        """Record a segment that passed `may_send_small`."""
        self.is_cwnd_limited = False
        self._extra = 0
        self.scoreboard.sent(start, end, now, self._builder.mss)
        self._after_send(now)

    def sent(self, start: int, end: int, now: float) -> None:
        """Record new data, and maybe a FIN, as sent."""
        self._extra = 0
        self.scoreboard.sent(start, end, now, self._builder.mss)
        self._after_send(now)

    def next_lost(self, limit: int, now: float) -> tuple[int, int] | None:
        """Return the next lost range, at most `limit` bytes of it, marked as retransmitted; None: no range is left."""
        sender = self._sender
        taken = self.scoreboard.next_lost(limit, now, sender.snd_una + sender.snd_wnd)
        if taken is not None:
            self.retransmitted += taken[1] - taken[0]
        return taken

    def on_retransmit(self, now: float) -> None:
        """Record a retransmission."""
        self._extra = 0
        self._undo.on_retransmit(self._builder.clock(now))
        self._after_send(now)

    def _after_send(self, now: float) -> None:
        """Start the timer unless it runs: RFC 6298 5.1 keeps it running whenever data is outstanding."""
        self.last_sent = now
        rto_at = self._timers.rto_at
        if rto_at == NEVER:
            rto_at = now + self.rtt.timeout()
        self._watch(now, rto_at)

    def _watch(self, now: float, rto_at: float) -> None:
        """Arm both timers of the flight; a tail is probed only where no loss is being repaired."""
        # RFC 8985 section 7.2: a probe's purpose is a SACK; without SACK it would be a retransmission and no more.
        probes = self.phase is Phase.OPEN and self._agreed.sack
        self._timers.set_retransmission(rto_at, self.probe.pto_at(now, rto_at, self.cubic.mss) if probes else NEVER)

    # Acknowledgements

    @property
    def is_orderly(self) -> bool:
        """Whether acknowledgements need no loss detection: nothing lost, reordered or probed."""
        board = self.scoreboard
        return not (board.retransmissions or board.sacked or self._detector.dup_acks) and self.probe.end < 0

    def on_full_ack(self, now: float) -> bool:
        """Process an acknowledgement of a flight that was sent in one moment; False when `on_ack` has to do it.

        The case of a request and its answer; a sixth of the work.
        """
        sender = self._sender
        if (
            self.phase is not Phase.OPEN
            or self._undo.is_possible
            or self.probe.end >= 0
            or sender.fin_sent
            or not self._agreed.sack
        ):
            return False
        # With SACK, which the condition above requires, duplicates are not counted: there is no count to reset.
        ack = sender.snd_nxt
        sample, delivered = self.scoreboard.acknowledge_all(ack, now)
        if not delivered:
            return False
        sender.acknowledged(ack)
        self.rtt.on_progress()
        self.rtt.add_sample(sample, now)
        cubic = self.cubic
        if cubic.window < cubic.ssthresh:
            # A round ends here: with nothing in flight SND.UNA and SND.NXT are equal.
            cubic.round_trip(sample, ack, ack)
        if self.is_cwnd_limited:
            cubic.acked(delivered, now, self.rtt.srtt)
        # RFC 6298 rule 5.2: nothing outstanding, no timer.
        self._timers.stop_retransmission()
        return True

    def on_ack(self, ack: int, blocks: Blocks, tsecr: int, now: float, duplicate: bool = False) -> None:
        """Process an acceptable acknowledgement: snd_una <= ack <= snd_nxt. `tsecr`: echoed timestamp, -1 without.

        `blocks` hold 32-bit numbers. `duplicate`: a segment that only repeats this acknowledgement.
        """
        sender = self._sender
        board = self.scoreboard
        delivered = board.delivered
        echoed = self._builder.sent_time(tsecr, now) if tsecr >= 0 else -1.0
        # Before anything is removed: RFC 5681 section 3.2 reduces the window by the flight at the time of the loss.
        in_flight = sender.in_flight
        if blocks:
            self._detector.on_sack(ack, blocks, echoed, now)
        progress = ack - sender.snd_una
        if progress:
            self._advance(ack, echoed, now)
        elif duplicate and not self._agreed.sack and in_flight:
            # Without SACK only the third duplicate shows a hole (RFC 5681 section 3.2); with SACK the blocks locate it.
            self._detector.count_dup_ack()
        if self.probe.end >= 0:
            self._process_probe_ack(ack, tsecr, progress == 0 and not blocks)
        # Only with progress: an old duplicate echoes old stamps as well (RFC 3522 section 3.2 requires an acceptable
        # acknowledgement).
        if progress and tsecr >= 0 and self._undo.undo(tsecr, self.cubic):
            self._undo_spurious_loss()
        # After the scoreboard has all of this segment: RACK compares times, and needs the newest delivered segment
        # (RFC 8985 section 6.2, steps 2 to 5 in their order). With nothing out of order and nothing retransmitted RACK
        # could find nothing, and scanning the flight for every acknowledgement would be most of its cost. An
        # acknowledgement without news makes nothing older than the newest arrival either. Losses by time alone are left
        # to the timer, or a peer could make us scan for nothing.
        if not self._agreed.sack or (
            (board.sacked or board.retransmissions) and (progress or board.delivered != delivered)
        ):
            is_open = self.phase is Phase.OPEN
            news = self._detector.detect(
                now, self.cubic.mss, self.recovery_point, is_open=is_open, progress=progress > 0
            )
            if news and is_open:
                self._enter_recovery(in_flight)
        delivered = board.delivered - delivered
        if self.phase is not Phase.OPEN and sender.snd_una >= self.recovery_point:
            self._leave_recovery()
        # In recovery the window is the reduced one; growth restarts with the first full acknowledgement. In LOSS it is
        # slow start, which retransmits the rest of the flight (RFC 5681 section 3.1).
        if delivered and self.is_cwnd_limited and self.phase is not Phase.RECOVERY:
            self.cubic.acked(delivered, now, self.rtt.srtt)
        # RFC 6298 rule 5.3 speaks of new data acknowledged; a new SACK shows as well that the path is alive.
        if progress or delivered:
            self._restart_timers(now)

    def _advance(self, ack: int, echoed: float, now: float) -> None:
        board = self.scoreboard
        sample = board.acknowledge(ack, now, echoed, self.rtt.minimum)
        self._sender.acknowledged(ack)
        self.rtt.on_progress()
        if sample >= 0:
            self.rtt.add_sample(sample, now)
            self.cubic.round_trip(sample, ack, self._sender.snd_nxt)
        elif echoed >= 0:
            # A retransmitted segment gives no sample of its own; the echo identifies the copy that was answered
            # (RFC 7323 section 4.1). A path that became slower than its timeout is so measured immediately; without
            # timestamps the backoff has to grow beyond the round trip first. A tick more, as `echoed` is rounded up.
            self.rtt.add_sample(now - echoed + _TICK, now)
        if not board.sacked and not board.lost and (self.phase is Phase.OPEN or ack >= self.recovery_point):
            self._detector.stop_reordering_timer()
        if self.phase is Phase.OPEN:
            self._detector.reset_dup_acks()

    # Losses

    def on_reorder_timer(self, now: float) -> None:
        """Mark segments lost whose reordering window has passed."""
        in_flight = self._sender.in_flight
        is_open = self.phase is Phase.OPEN
        if self._detector.on_reordering_timer(now, self.cubic.mss, is_open=is_open) and is_open:
            self._enter_recovery(in_flight)

    def _enter_recovery(self, in_flight: int) -> None:
        self._undo.begin(self.cubic.snapshot())
        # Once for a flight, however many of its segments are lost: `recovery_point` marks where the next loss is a new
        # one.
        self.cubic.lost(in_flight)
        self.phase = Phase.RECOVERY
        self.recovery_point = self._sender.snd_nxt
        # The first retransmission is sent regardless of the pipe (RFC 6675 section 5, step 4.3).
        self._allow_segment()

    def _leave_recovery(self) -> None:
        self.phase = Phase.OPEN
        self._detector.recovered()
        self._undo.end()
        board = self.scoreboard
        if not board.sacked and not board.lost:
            self._detector.stop_reordering_timer()

    def _undo_spurious_loss(self) -> None:
        """Undo the reduction: the original arrived, so the data believed lost is still in flight."""
        self.phase = Phase.OPEN
        self._detector.recovered()
        self.scoreboard.clear_lost()

    def on_too_big(self, now: float) -> None:
        """Retransmit what a router dropped as too big; the segment size has been changed.

        No sign of congestion (RFC 8201 section 5.4), so the window stays.
        """
        sender = self._sender
        self.scoreboard.mark_for_retransmission(sender.snd_una, sender.snd_nxt)
        self._allow_segment()
        self._timers.set_retransmission(now + self.rtt.timeout(), self._timers.probe_at)

    def _allow_segment(self) -> None:
        if self._extra < self.cubic.mss:
            self._extra = self.cubic.mss

    # Timeouts

    def on_timeout(self, now: float, heard: float) -> bool:
        """Restart from the oldest byte after the retransmission timer expired. False: it is time to give up.

        `heard`: when the peer was heard last.
        """
        # A closed window that the peer confirms is no silence (RFC 9293 section 3.8.6.1).
        if self.rtt.should_give_up(self.rtt.timeout(), now, -1.0 if self._sender.snd_wnd else heard):
            return False
        self.timeouts += 1
        if self.phase is not Phase.LOSS:
            # From RECOVERY on, the reduction to undo is the first one.
            self._undo.begin(self.cubic.snapshot() if self.phase is Phase.OPEN else None)
            self.cubic.timed_out(self._sender.in_flight)
        else:
            # RFC 5681 section 3.1: the threshold is set once for a flight, however often its timer expires.
            self.cubic.shrink_to(1)
        self.phase = Phase.LOSS
        self.recovery_point = self._sender.snd_nxt
        self._detector.reset_dup_acks()
        self.scoreboard.expire(
            now, self._detector.reordering_window(self.cubic.mss, is_open=False) if self._agreed.sack else -NEVER
        )
        # The timer retransmits what the probe would have covered.
        self.probe.cancel()
        self.rtt.back_off()
        self._allow_segment()
        self._timers.set_reordering(NEVER)
        self._timers.set_retransmission(now + self.rtt.timeout(), NEVER)
        return True

    def path_changed(self, now: float, heard: float) -> bool:
        """Retransmit the flight after a change of path. False: it is time to give up."""
        if self.rtt.retries:
            if not self.on_timeout(now, heard):
                return False
            self.rtt.path_changed()
            self._timers.set_retransmission(now + self.rtt.rto, NEVER)
        elif self._agreed.sack:
            self.on_probe_timer(now)
        return True

    def on_probe_timer(self, now: float) -> None:
        """Send one segment to provoke an acknowledgement of the tail (RFC 8985 section 7.3)."""
        # One probe for a flight: RFC 8985 section 7.2 forbids a second before an answer.
        self._timers.set_retransmission(self._timers.rto_at, NEVER)
        if not self._sender.in_flight or self.probe.end >= 0:
            return
        self._extra = self.cubic.mss
        if not self.probe.begin(self.cubic.mss):
            self._undo.begin()
        self._timers.set_retransmission(now + self.rtt.timeout(), NEVER)

    def _process_probe_ack(self, ack: int, tsecr: int, bare: bool) -> None:
        """Process the acknowledgement of a tail loss probe; a loss that it repaired reduces the window like others."""
        was_again = not self.probe.is_new and self.phase is Phase.OPEN
        if self.probe.repaired(ack, tsecr, self._undo.retransmit_ts if was_again else -1, bare):
            # The lost segment was in flight too, and is acknowledged by now.
            self.cubic.lost(self._sender.in_flight + self.cubic.mss)

    def _restart_timers(self, now: float) -> None:
        """Restart both timers after progress (RFC 6298 5.3), or stop them when nothing is outstanding (5.2)."""
        if self._sender.snd_nxt == self._sender.snd_una:
            self._timers.set_retransmission(NEVER, NEVER)
            return
        rto_at = now + self.rtt.timeout()
        self._watch(now, rto_at)

    def stop(self) -> None:
        """Drop the state of a closed connection."""
        self.scoreboard.clear()
