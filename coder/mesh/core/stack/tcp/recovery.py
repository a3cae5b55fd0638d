"""What acknowledgements mean for sending: progress, loss, growth, and the timers that watch over what is under way.

Lives here: processing of acknowledgements, entering and leaving recovery, timeouts.
Does not live here: what counts as lost (loss_detection.py), the scoreboard (scoreboard.py), probes of the tail
(tail_probe.py), taking a reduction back (undo.py), the window's size (congestion.py), building packets (segments.py).
Obeys: RFC 8985 (RACK-TLP), RFC 6675 (pipe), RFC 6298 (timer).

A lost segment's way: `LossDetector.find` marks it (`on_timeout` marks all), `_resend_lost` of tcp_output.py sends
it again, `_advance` sees it acknowledged. A lost SYN goes another way: tcp_timer.py, then `resend_syn` of handshake.py.
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
"""Ours: seconds; 0 means "none measured" (rtt.py), which a peer in the same process and moment would be taken for."""
_WINDOW_AFTER_LOST_SYN = 3
"""Ours: segments."""


class Phase(Enum):
    """Where loss recovery stands. `Recovery.recovery_point` is how far the repair of what was found reaches.

    OPEN becomes RECOVERY by an acknowledgement, either becomes LOSS by the retransmission timer; both go back to OPEN
    when the recovery point is acknowledged, or when the loss proves to have been none.
    """

    OPEN = "open"
    """Nothing is being repaired."""
    RECOVERY = "recovery"
    """A loss was found by acknowledgements; ends when everything outstanding then is acknowledged."""
    LOSS = "loss"
    """A loss was found by silence."""


class Recovery:
    """One connection's reliability: what is believed to be in the network, and what is done when it is not."""

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
        "last_sent",
        "limited",
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
        "Bytes that may be sent whatever the congestion window says: probes, the first retransmission."
        self.limited = False
        "Whether the congestion window was what stopped us: only then may it grow (RFC 9438 section 5.8)."
        self._undo = SpuriousLoss()
        self.probe = TailProbe(sender, self.scoreboard, rtt)
        self._detector = LossDetector(sender, timers, rtt, agreed, self.scoreboard, self.probe)
        self.last_sent = 0.0
        self._syns = 0
        "How often our SYN went out."
        self.timeouts = 0
        self.retransmitted = 0
        "Bytes."

    # Opening

    def resize(self, mss: int) -> None:
        """The segment size changed."""
        self.cubic.resize(mss)

    def begin(self, mss: int) -> None:
        """The peer's SYN named its segment size: the initial window counts in true segments."""
        self.cubic = Cubic(mss)

    def established(self, now: float) -> None:
        """Our SYN was acknowledged."""
        rtt = self.rtt
        # RFC 6298 section 3 (Karn): of a SYN that went out twice nobody knows which one was answered. That is not the
        # timer's doing alone: a change of path, or a peer that says its SYN again, has us repeat ours as well.
        if self._syns == 1:
            rtt.sample(max(now - self.last_sent, _LEAST_ROUND_TRIP), now)
        elif rtt.retries:
            rtt.syn_was_lost()
            # RFC 5681 section 3.1 begins with one segment after a lost SYN. RFC 6928 section 2 asks to refrain from
            # that after a single repetition, as a first timeout of one second is spurious more often; three is between.
            self.cubic.shrink_to(_WINDOW_AFTER_LOST_SYN)
        rtt.progressed()

    def sent_syn(self, now: float) -> None:
        """A SYN went out."""
        self._syns += 1
        self.last_sent = now

    def syn_unanswered(self) -> None:
        """It has to be sent again."""
        self.rtt.back_off()
        self.timeouts += 1

    # What may be sent

    @property
    def pipe(self) -> int:
        """Bytes believed to be in the network (RFC 6675 section 4: pipe)."""
        sender = self._sender
        board = self.scoreboard
        # Without SACK each duplicate acknowledgement tells of one segment that arrived (RFC 5681 3.2 step 4).
        credit = 0 if self._agreed.sack else self._detector.dup_acks * self.cubic.mss
        # What was sent again counts once more: `retransmit` takes it out of `lost`.
        pipe = sender.snd_nxt - sender.snd_una - board.sacked - board.lost - credit
        return pipe if pipe > 0 else 0

    def room(self) -> int:
        """Bytes that may be added to the pipe: what congestion, and the buffer at the far end, leave of it."""
        cap = self._burst.within(self.rtt.minimum)
        window = self.cubic.window
        # The burst limit is no congestion window: it is not reduced by losses and does not make them.
        room = (window if window < cap else cap) - self.pipe
        return room if room > self._extra else self._extra

    def note_limit(self, wanted: int) -> None:
        """`wanted` more bytes could go as far as the application and the peer are concerned: who stops us?"""
        window = self.cubic.window
        # Where the burst limit is what stops us the window tells nothing about the path, and growing it would not
        # show.
        self.limited = window <= self._burst.within(self.rtt.minimum) and window - self.pipe < wanted

    def fits_lone(self, size: int, now: float) -> bool:
        """Whether a small segment may go out without a closer look at any limit."""
        sender = self._sender
        board = self.scoreboard
        if self.phase is not Phase.OPEN or board.lost or board.sacked:
            return False
        used = sender.snd_nxt - sender.snd_una
        # With more under way the limits want a closer look; after a silence the window has to shrink.
        cubic = self.cubic
        after = used + size
        return (
            used < cubic.mss
            and after <= sender.snd_wnd
            and after <= cubic.window
            and now - self.last_sent <= self.rtt.rto
        )

    def wake_window(self, now: float) -> None:
        """Sending begins again after a silence: an old window says nothing about the path (RFC 5681 4.1)."""
        idle = now - self.last_sent
        if idle > self.rtt.rto:
            # Beyond one timeout: RFC 5681 section 4.1.
            self.cubic.idle(int(idle / self.rtt.rto))

    # What was sent

    def sent_lone(self, start: int, end: int, now: float) -> None:
        """A segment that `fits_lone` went out."""
        self.limited = False
        self._extra = 0
        self.scoreboard.sent(start, end, now, self._builder.mss)
        self._after_send(now)

    def sent(self, start: int, end: int, now: float) -> None:
        """New data, and maybe a FIN, went out."""
        self._extra = 0
        self.scoreboard.sent(start, end, now, self._builder.mss)
        self._after_send(now)

    def take_lost(self, limit: int, now: float) -> tuple[int, int] | None:
        """The next lost range, at most `limit` bytes of it, as sent again now; None: there is none to send."""
        sender = self._sender
        taken = self.scoreboard.take_lost(limit, now, sender.snd_una + sender.snd_wnd)
        if taken is not None:
            self.retransmitted += taken[1] - taken[0]
        return taken

    def on_retransmit(self, now: float) -> None:
        """Lost ranges went out again."""
        self._extra = 0
        self._undo.on_retransmit(self._builder.clock(now))
        self._after_send(now)

    def _after_send(self, now: float) -> None:
        """RFC 6298 5.1: the timer runs whenever something is outstanding. A running one goes on."""
        self.last_sent = now
        rto_at = self._timers.rto_at
        if rto_at == NEVER:
            rto_at = now + self.rtt.timeout()
        self._watch(now, rto_at)

    def _watch(self, now: float, rto_at: float) -> None:
        """Both timers of what is under way; a tail is probed only where no loss is being repaired."""
        # RFC 8985 section 7.2: what a probe provokes is a SACK; without one it would be a retransmission and no more.
        probes = self.phase is Phase.OPEN and self._agreed.sack
        self._timers.watch(rto_at, self.probe.time(now, rto_at, self.cubic.mss) if probes else NEVER)

    # Acknowledgements

    @property
    def is_orderly(self) -> bool:
        """Whether acknowledgements need no closer look: nothing lost, swapped or probed."""
        board = self.scoreboard
        return not (board.retransmissions or board.sacked or self._detector.dup_acks) and self.probe.end < 0

    def on_full_ack(self, now: float) -> bool:
        """`on_ack` when everything sent is acknowledged, went out at once and arrived; False when that is not so.

        What a request and its answer consist of: a sixth of the work.
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
        # With SACK, which the condition above demands, duplicates are not counted: there is no count to begin anew.
        ack = sender.snd_nxt
        sample, delivered = self.scoreboard.acknowledge_all(ack, now)
        if not delivered:
            return False
        sender.acknowledged(ack)
        self.rtt.progressed()
        self.rtt.sample(sample, now)
        cubic = self.cubic
        if cubic.window < cubic.ssthresh:
            # A round ends here: with nothing left under way SND.UNA and SND.NXT are one.
            cubic.round_trip(sample, ack, ack)
        if self.limited:
            cubic.acked(delivered, now, self.rtt.smoothed)
        # RFC 6298 rule 5.2: nothing outstanding, no timer.
        self._timers.all_arrived()
        return True

    def on_ack(self, ack: int, blocks: Blocks, tsecr: int, now: float, duplicate: bool = False) -> None:
        """Take an acceptable acknowledgement: snd_una <= ack <= snd_nxt. `tsecr`: echoed timestamp, -1 without.

        `blocks` hold 32-bit numbers. `duplicate`: a segment that says nothing but this acknowledgement again.
        """
        sender = self._sender
        board = self.scoreboard
        delivered = board.delivered
        echoed = self._builder.moment(tsecr, now) if tsecr >= 0 else -1.0
        # Before anything is taken off: RFC 5681 section 3.2 cuts the window by the flight at the time of the loss.
        in_flight = sender.in_flight
        if blocks:
            self._detector.take_blocks(ack, blocks, echoed, now)
        progress = ack - sender.snd_una
        if progress:
            self._advance(ack, echoed, now)
        elif duplicate and not self._agreed.sack and in_flight:
            # Without SACK the third one is all that tells of a hole (RFC 5681 section 3.2); with it the blocks say
            # where it is.
            self._detector.duplicate()
        if self.probe.end >= 0:
            self._judge_probe(ack, tsecr, progress == 0 and not blocks)
        # Only with progress: an old duplicate echoes old stamps as well (RFC 3522 section 3.2 waits for an acceptable
        # acknowledgement).
        if progress and tsecr >= 0 and self._undo.undo(tsecr, self.cubic):
            self._was_spurious()
        # After the scoreboard has all of this segment: RACK compares times, and needs the newest one delivered (RFC
        # 8985 section 6.2, steps 2 to 5 in their order).
        # With nothing out of order and nothing sent twice RACK could find nothing, and looking at the flight for every
        # acknowledgement would be most of its cost. Nor does an acknowledgement without news make anything older than
        # the newest arrival; what only time makes lost is the timer's, or a peer could have us look for nothing.
        if not self._agreed.sack or (
            (board.sacked or board.retransmissions) and (progress or board.delivered != delivered)
        ):
            is_open = self.phase is Phase.OPEN
            news = self._detector.find(now, self.cubic.mss, self.recovery_point, is_open=is_open, progress=progress > 0)
            if news and is_open:
                self._enter_recovery(in_flight)
        delivered = board.delivered - delivered
        if self.phase is not Phase.OPEN and sender.snd_una >= self.recovery_point:
            self._leave_recovery()
        # In recovery the window is what the reduction left; growth begins again with the first full acknowledgement. In
        # LOSS it is slow start, which is how the rest of the flight gets out again (RFC 5681 section 3.1).
        if delivered and self.limited and self.phase is not Phase.RECOVERY:
            self.cubic.acked(delivered, now, self.rtt.smoothed)
        # RFC 6298 rule 5.3 speaks of new data acknowledged; a SACK of something new shows as well that the path lives.
        if progress or delivered:
            self._restart(now)

    def _advance(self, ack: int, echoed: float, now: float) -> None:
        board = self.scoreboard
        sample = board.acknowledge(ack, now, echoed, self.rtt.minimum)
        self._sender.acknowledged(ack)
        self.rtt.progressed()
        if sample >= 0:
            self.rtt.sample(sample, now)
            self.cubic.round_trip(sample, ack, self._sender.snd_nxt)
        elif echoed >= 0:
            # What was sent twice gives no sample of its own; the echo names the copy that was answered (RFC 7323
            # section 4.1). A path that became slower than its timeout is measured so at once; without timestamps the
            # backoff has to grow beyond the round trip first. A tick more, as `echoed` is rounded up.
            self.rtt.sample(now - echoed + _TICK, now)
        if not board.sacked and not board.lost and (self.phase is Phase.OPEN or ack >= self.recovery_point):
            self._detector.all_in_order()
        if self.phase is Phase.OPEN:
            self._detector.forget_duplicates()

    # Losses

    def on_reorder_timer(self, now: float) -> None:
        """Segments given time for reordering have used it up."""
        in_flight = self._sender.in_flight
        is_open = self.phase is Phase.OPEN
        if self._detector.look_again(now, self.cubic.mss, is_open=is_open) and is_open:
            self._enter_recovery(in_flight)

    def _enter_recovery(self, in_flight: int) -> None:
        self._undo.begin(self.cubic.snapshot())
        # Once for a flight, however many of its segments are lost: `recovery_point` marks where the next loss is a new
        # one.
        self.cubic.lost(in_flight)
        self.phase = Phase.RECOVERY
        self.recovery_point = self._sender.snd_nxt
        # The first retransmission goes out whatever the pipe says (RFC 6675 section 5, step 4.3).
        self._allow_segment()

    def _leave_recovery(self) -> None:
        self.phase = Phase.OPEN
        self._detector.recovered()
        self._undo.end()
        board = self.scoreboard
        if not board.sacked and not board.lost:
            self._detector.all_in_order()

    def _was_spurious(self) -> None:
        """The original had arrived: what was believed lost is still under way."""
        self.phase = Phase.OPEN
        self._detector.recovered()
        self.scoreboard.forgive()

    def on_too_big(self, now: float) -> None:
        """A router says our packets are too large for it, and the size has been changed: send again what it dropped.

        No sign of congestion (RFC 8201 section 5.4), so the window stays.
        """
        sender = self._sender
        self.scoreboard.lose_all(sender.snd_una, sender.snd_nxt)
        self._allow_segment()
        self._timers.watch(now + self.rtt.timeout(), self._timers.probe_at)

    def _allow_segment(self) -> None:
        if self._extra < self.cubic.mss:
            self._extra = self.cubic.mss

    # Silence

    def on_timeout(self, now: float, heard: float) -> bool:
        """The retransmission timer: begin again from the oldest byte. False: it is time to give up.

        `heard`: when the peer was heard last.
        """
        # A closed window that the peer confirms is no silence (RFC 9293 section 3.8.6.1).
        if self.rtt.is_in_vain(self.rtt.timeout(), now, -1.0 if self._sender.snd_wnd else heard):
            return False
        self.timeouts += 1
        if self.phase is not Phase.LOSS:
            # From RECOVERY on, what is undone is the first reduction.
            self._undo.begin(self.cubic.snapshot() if self.phase is Phase.OPEN else None)
            self.cubic.timed_out(self._sender.in_flight)
        else:
            # RFC 5681 section 3.1: the threshold is set once for a flight, however often its timer runs out.
            self.cubic.shrink_to(1)
        self.phase = Phase.LOSS
        self.recovery_point = self._sender.snd_nxt
        self._detector.forget_duplicates()
        self.scoreboard.expire(
            now, self._detector.patience(self.cubic.mss, is_open=False) if self._agreed.sack else -NEVER
        )
        # The timer sends what the probe would have asked about.
        self.probe.cancel()
        self.rtt.back_off()
        self._allow_segment()
        self._timers.set_reordering(NEVER)
        self._timers.watch(now + self.rtt.timeout(), NEVER)
        return True

    def path_changed(self, now: float, heard: float) -> bool:
        """Data was under way on a path that is gone: send again at once. False: it is time to give up."""
        if self.rtt.retries:
            if not self.on_timeout(now, heard):
                return False
            self.rtt.path_changed()
            self._timers.watch(now + self.rtt.rto, NEVER)
        elif self._agreed.sack:
            self.on_probe_timer(now)
        return True

    def on_probe_timer(self, now: float) -> None:
        """The tail went unanswered: send one segment to provoke an acknowledgement (RFC 8985 section 7.3)."""
        # One probe for a flight: RFC 8985 section 7.2 forbids a second before an answer.
        self._timers.watch(self._timers.rto_at, NEVER)
        if not self._sender.in_flight or self.probe.end >= 0:
            return
        self._extra = self.cubic.mss
        if not self.probe.begin(self.cubic.mss):
            self._undo.begin()
        self._timers.watch(now + self.rtt.timeout(), NEVER)

    def _judge_probe(self, ack: int, tsecr: int, bare: bool) -> None:
        """An acknowledgement after a tail loss probe; a loss it repaired is answered like any other."""
        was_again = not self.probe.is_new and self.phase is Phase.OPEN
        if self.probe.repaired(ack, tsecr, self._undo.sent_at if was_again else -1, bare):
            # The segment that was lost was in flight too, and is acknowledged by now.
            self.cubic.lost(self._sender.in_flight + self.cubic.mss)

    def _restart(self, now: float) -> None:
        """Progress was made: both timers run anew (RFC 6298 5.3), or stop when nothing is outstanding (5.2)."""
        if self._sender.snd_nxt == self._sender.snd_una:
            self._timers.watch(NEVER, NEVER)
            return
        rto_at = now + self.rtt.timeout()
        self._watch(now, rto_at)

    def stop(self) -> None:
        """The connection is closed."""
        self.scoreboard.clear()
