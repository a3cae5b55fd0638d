"""What acknowledgements mean for the sender: progress, loss, growth, and the timers that watch over it.

Lives here: processing of ACK and SACK, entering and leaving recovery, tail loss probes, timeouts, spurious-loss undo.
Does not live here: the scoreboard (flight.py), the window's size (congestion.py), building packets (emission.py).
Obeys: RFC 8985 (RACK-TLP), RFC 6675 (pipe), RFC 6582 (partial acknowledgements without SACK), RFC 6298 (timer),
RFC 3522 (Eifel detection), RFC 2883 (duplicate SACK).
"""

from __future__ import annotations

from coder.mesh.core.stack.connection import HALF, MASK, NEVER, Phase, TcpSocket
from coder.mesh.core.stack.errors import StackError
from coder.mesh.core.stack.settings import DUPLICATE_THRESHOLD

_LONE_SEGMENT_DELAY = 0.2
"""RFC 8985 7.2: the longest a peer may delay the acknowledgement of a single segment."""
_MIN_PROBE_DELAY = 0.01
"""Ours: RFC 8985 has no floor but names 10 ms as what implementations use; timers of busy machines are no finer."""
_MAX_REORDERING_STEPS = 16

Blocks = tuple[tuple[int, int], ...]


def pipe(c: TcpSocket) -> int:
    """Bytes believed to be in the network (RFC 6675: pipe)."""
    flight = c.flight
    credit = 0 if c.sack_ok else c.dup_acks * c.mss  # each duplicate tells of one segment that arrived
    return max(c.snd_nxt - c.snd_una - flight.sacked - flight.lost - credit, 0)


def on_ack(c: TcpSocket, ack: int, blocks: Blocks, tsecr: int, now: float, duplicate: bool = False) -> None:
    """Take an acceptable acknowledgement: snd_una <= ack <= snd_nxt. `tsecr`: echoed timestamp, -1 without.

    `blocks` hold 32-bit numbers. `duplicate`: a segment that says nothing but this acknowledgement again.
    """
    flight = c.flight
    delivered = flight.delivered
    echoed = c.moment(tsecr, now) if tsecr >= 0 else -1.0
    in_flight = c.snd_nxt - c.snd_una
    if blocks:
        _take_blocks(c, ack, blocks, echoed, now)
    progress = ack - c.snd_una
    if progress:
        _advance(c, ack, echoed, now)
    elif duplicate and not c.sack_ok and c.snd_nxt > c.snd_una:
        c.dup_acks += 1
    if c.probe_end >= 0:
        _judge_probe(c, ack, tsecr, progress == 0 and not blocks)
    if progress and c.loss_undo is not None and tsecr >= 0:
        _undo_if_spurious(c, tsecr)
    newly_lost = _find_losses(c, now, progress > 0)
    if newly_lost and c.phase is Phase.OPEN:
        _enter_recovery(c, in_flight)
    delivered = flight.delivered - delivered
    if c.phase is not Phase.OPEN and c.snd_una >= c.recovery_point:
        _leave_recovery(c)
    if delivered and c.limited and c.phase is not Phase.RECOVERY:
        c.cubic.acked(delivered, now, c.rtt.smoothed)
    if progress or delivered:
        restart(c, now)


def on_full_ack(c: TcpSocket, now: float) -> bool:
    """`on_ack` when everything sent is acknowledged, went out at once and arrived; False when that is not so.

    What a request and its answer consist of: a sixth of the work.
    """
    flight = c.flight
    runs = flight.runs
    if len(runs) != 1 or c.phase is not Phase.OPEN or c.loss_undo is not None or c.probe_end >= 0 or c.fin_sent:
        return False
    run = runs[0]
    ack = c.snd_nxt
    if run.again or run.sacked or run.lost or run.end != ack or run.time < flight.rack_time or not c.sack_ok:
        return False
    sample = now - run.time
    delivered = ack - run.start
    runs.clear()
    flight.delivered += delivered
    flight.furthest = flight.rack_end = ack
    flight.rack_time = run.time
    flight.rack_rtt = sample
    flight.again = 0
    c.snd_una = ack
    c.queue.release(ack)
    c.retries = c.dup_acks = 0
    c.silence = 0.0
    c.last_progress = now
    c.rtt.sample(sample, now)
    if c.cubic.window < c.cubic.ssthresh:
        c.cubic.round_trip(sample, ack, ack)
    if c.limited:
        c.cubic.acked(delivered, now, c.rtt.smoothed)
    c.reorder_at = c.rto_at = c.probe_at = NEVER
    return True


def _advance(c: TcpSocket, ack: int, echoed: float, now: float) -> None:
    flight = c.flight
    sample = flight.acknowledge(ack, now, echoed, c.rtt.minimum)
    c.snd_una = ack
    c.queue.release(ack)
    c.retries = 0
    c.silence = 0.0
    c.last_progress = now
    if sample >= 0:
        c.rtt.sample(sample, now)
        c.cubic.round_trip(sample, ack, c.snd_nxt)
    if not flight.sacked and not flight.lost and (c.phase is Phase.OPEN or ack >= c.recovery_point):
        flight.again = 0
        c.reorder_at = NEVER
    if c.phase is Phase.OPEN:
        c.dup_acks = 0


def _take_blocks(c: TcpSocket, ack: int, blocks: Blocks, echoed: float, now: float) -> None:
    una = c.snd_una
    for index, (left32, right32) in enumerate(blocks):
        left = una + ((left32 - una + HALF) & MASK) - HALF
        right = left + ((right32 - left32) & MASK)
        if right > c.snd_nxt or right <= left:
            continue  # never sent: a broken peer
        if left < ack or (index == 0 and len(blocks) > 1 and _inside(blocks[0], blocks[1])):
            if index == 0 and (right <= ack or len(blocks) > 1):
                _duplicate_arrived(c)
                continue
            if right <= ack:
                continue
        c.flight.sack(max(left, una), right, now, echoed, c.rtt.minimum)


def _inside(inner: tuple[int, int], outer: tuple[int, int]) -> bool:
    return (inner[0] - outer[0]) & MASK < HALF and (outer[1] - inner[1]) & MASK < HALF


def _duplicate_arrived(c: TcpSocket) -> None:
    """A D-SACK: something was sent twice for nothing; allow for more reordering (RFC 8985 6.2 step 4)."""
    if c.snd_una >= c.reo_mult_end:
        c.reo_mult = min(c.reo_mult + 1, _MAX_REORDERING_STEPS)
        c.reo_mult_end = c.snd_nxt
    if c.probe_end >= 0 and not c.probe_fresh:
        c.probe_end = -1  # the probe was the copy: no loss to answer for


def reordering_window(c: TcpSocket) -> float:
    """How long after RACK's newest arrival an older segment may still be under way (RFC 8985 6.2 step 4)."""
    if not c.flight.reordered and (c.phase is not Phase.OPEN or c.flight.sacked >= DUPLICATE_THRESHOLD * c.mss):
        return 0.0
    shortest = c.rtt.minimum
    if shortest == NEVER:
        return 0.0
    return min(c.reo_mult * shortest / 4, c.rtt.smoothed)


def _find_losses(c: TcpSocket, now: float, progress: bool) -> int:
    flight = c.flight
    if c.sack_ok:
        if not (flight.sacked or flight.again):
            return 0
        news, wait = flight.detect(now, reordering_window(c))
        c.reorder_at = now + wait if wait > 0 else NEVER
        return news
    if c.phase is Phase.OPEN:
        if c.dup_acks < DUPLICATE_THRESHOLD:
            return 0
        return flight.lose(c.snd_una, min(c.snd_una + c.mss, c.snd_nxt))
    if progress and c.snd_una < c.recovery_point:
        # A partial acknowledgement: the next hole begins here (RFC 6582 3.2 step 3).
        c.dup_acks = 0
        return flight.lose(c.snd_una, min(c.snd_una + c.mss, c.snd_nxt))
    return 0


def on_reorder_timer(c: TcpSocket, now: float) -> None:
    """Segments given time for reordering have used it up."""
    c.reorder_at = NEVER
    in_flight = c.snd_nxt - c.snd_una
    news, wait = c.flight.detect(now, reordering_window(c))
    if wait > 0:
        c.reorder_at = now + wait
    if news and c.phase is Phase.OPEN:
        _enter_recovery(c, in_flight)


def _enter_recovery(c: TcpSocket, in_flight: int) -> None:
    c.loss_undo = c.cubic.snapshot()
    c.first_again = -1
    c.cubic.lost(in_flight)
    c.phase = Phase.RECOVERY
    c.recovery_point = c.snd_nxt
    # The first retransmission goes out whatever the pipe says (RFC 6675 section 5, step 4.3).
    c.extra = max(c.extra, c.mss)


def _leave_recovery(c: TcpSocket) -> None:
    c.phase = Phase.OPEN
    c.dup_acks = 0
    c.loss_undo = None
    if not c.flight.sacked and not c.flight.lost:
        c.flight.again = 0
        c.reorder_at = NEVER


def _undo_if_spurious(c: TcpSocket, tsecr: int) -> None:
    """The acknowledgement that ends the hole echoes a time before we sent it again: the original had arrived."""
    if c.first_again < 0 or c.loss_undo is None or (tsecr - c.first_again) & MASK < HALF:
        return
    c.cubic.restore(c.loss_undo)
    c.loss_undo = None
    c.phase = Phase.OPEN
    c.dup_acks = 0
    c.flight.forgive()
    c.flight.reordered = True


def on_too_big(c: TcpSocket, now: float) -> None:
    """A router says our packets are too large for it, and the size has been changed: send again what it dropped.

    No sign of congestion (RFC 8201 section 5.4), so the window stays.
    """
    c.flight.lose(c.snd_una, c.snd_nxt)
    c.flight.again += 1
    c.extra = max(c.extra, c.mss)
    c.rto_at = now + backed_off(c)
    c.host.make_ready(c)


def on_timeout(c: TcpSocket, now: float) -> None:
    """The retransmission timer: silence. Begin again from the oldest byte."""
    if is_in_vain(c, backed_off(c), now):
        c.die(StackError("timeout"))
        return
    c.timeouts += 1
    if c.phase is not Phase.LOSS:
        if c.phase is Phase.OPEN:
            c.loss_undo = c.cubic.snapshot()
        c.first_again = -1
        c.cubic.timed_out(c.snd_nxt - c.snd_una)
    else:
        c.cubic.window = c.cubic.mss
    c.phase = Phase.LOSS
    c.recovery_point = c.snd_nxt
    c.dup_acks = 0
    c.flight.expire(now, reordering_window(c) if c.sack_ok else -NEVER)
    c.probe_end = -1
    c.probe_at = c.reorder_at = NEVER
    c.retries += 1
    c.extra = max(c.extra, c.mss)
    c.rto_at = now + backed_off(c)


def is_in_vain(c: TcpSocket, delay: float, now: float) -> bool:
    """A wait of `delay` seconds brought nothing: whether it is time to give up.

    The waits are added up, not the clock: a laptop that slept for hours and needs half a minute to find its network has
    not been silent for hours. A peer that answers, but has its window closed, is waited for however long.
    """
    was_answered = not c.snd_wnd and c.last_heard >= c.waits_since
    c.waits_since = now
    c.silence = 0.0 if was_answered else c.silence + delay
    return c.silence >= c.host.settings.give_up


def backed_off(c: TcpSocket) -> float:
    """The retransmission timeout after `retries` doublings."""
    if not c.retries:
        return c.rtt.rto
    return min(c.rtt.rto * (1 << min(c.retries, 10)), c.host.settings.max_rto)


def on_probe_timer(c: TcpSocket, now: float) -> None:
    """The tail went unanswered: send one segment to provoke an acknowledgement (RFC 8985 section 7.3)."""
    c.probe_at = NEVER
    if c.snd_nxt == c.snd_una or c.probe_end >= 0:
        return
    c.extra = c.mss
    window_left = c.snd_una + c.snd_wnd - c.snd_nxt
    c.probe_fresh = c.queue.end > c.snd_nxt and window_left >= min(c.mss, c.queue.end - c.snd_nxt)
    if not c.probe_fresh:
        c.first_again = -1
        c.flight.lose(max(c.snd_una, c.snd_nxt - c.mss), c.snd_nxt)
    c.probe_end = c.snd_nxt
    c.rto_at = now + backed_off(c)


def _judge_probe(c: TcpSocket, ack: int, tsecr: int, bare: bool) -> None:
    """An acknowledgement after a tail loss probe: did the probe repair a loss nobody else noticed (RFC 8985 7.4.2)?

    `bare`: it says nothing new.
    """
    if ack < c.probe_end:
        return
    repaired = False
    if not c.probe_fresh and c.phase is Phase.OPEN and c.first_again >= 0:
        if tsecr >= 0:
            repaired = (tsecr - c.first_again) & MASK < HALF
        elif ack == c.probe_end and not bare:
            return  # without timestamps only what comes next tells: a duplicate, if both copies arrived
        else:
            repaired = not bare
    c.probe_end = -1
    if repaired:
        c.cubic.lost(c.snd_nxt - c.snd_una + c.mss)


def restart(c: TcpSocket, now: float) -> None:
    """Progress was made: both timers run anew (RFC 6298 5.3), or stop when nothing is outstanding."""
    if c.snd_nxt == c.snd_una:
        c.rto_at = c.probe_at = NEVER
        return
    c.rto_at = now + backed_off(c)
    _arm_probe(c, now)


def after_send(c: TcpSocket, now: float) -> None:
    """Something with sequence numbers went out."""
    c.last_sent = now
    if c.rto_at == NEVER:
        c.rto_at = now + backed_off(c)
    _arm_probe(c, now)


def _arm_probe(c: TcpSocket, now: float) -> None:
    if c.phase is not Phase.OPEN or not c.sack_ok or c.flight.sacked or c.flight.lost or c.probe_end >= 0:
        c.probe_at = NEVER
        return
    smoothed = c.rtt.smoothed
    if smoothed == 0.0:
        c.probe_at = NEVER
        return
    delay = 2 * smoothed
    if c.snd_nxt - c.snd_una <= c.mss:
        delay += _LONE_SEGMENT_DELAY
    if delay < _MIN_PROBE_DELAY:
        delay = _MIN_PROBE_DELAY
    at = now + delay
    c.probe_at = at if at < c.rto_at else NEVER
