"""Expired timers of a connection.

Lives here: the dispatch, zero-window probes and keepalives.
Does not live here: the deadlines (timers.py), the reaction to a loss timer (recovery.py).
Obeys: RFC 9293 sections 3.8.4 (keepalive) and 3.8.6.1 (zero window), RFC 6298 section 5, RFC 8985.
"""

from __future__ import annotations

from coder.mesh.core.stack.errors import StackError
from coder.mesh.core.stack.tcp import handshake, tcp_output
from coder.mesh.core.stack.tcp.connection import TcpSocket
from coder.mesh.core.stack.tcp.states import TcpEvent, TcpState
from coder.mesh.core.stack.tcp.timers import NEVER


def on_timer(c: TcpSocket, now: float) -> None:
    """Run every timer that is due."""
    timers = c.timers
    c.host.mark_ready(c)
    # Any order would be correct; a comment gives the reason where the order matters.
    if timers.syn_at <= now:
        handshake.resend_syn(c, now)
    if timers.ack_at <= now:
        # Off first: the next output checks `acks_pending`, and may be data that carries the acknowledgement.
        timers.delay_ack(NEVER)
        c.receiver.request_ack()
    # Before the retransmission timer: a loss found by RACK costs three tenths of the window, a timeout all of it.
    if timers.reorder_at <= now:
        c.recovery.on_reorder_timer(now)
    if timers.rto_at <= now:
        # Everything was acknowledged between the deadline and now: with nothing outstanding the timer stops (RFC 6298
        # section 5, rule 5.2).
        if not c.sender.in_flight:
            timers.set_retransmission(NEVER, timers.probe_at)
        elif not c.recovery.on_timeout(now, c.receiver.last_heard):
            _give_up(c)
    if timers.probe_at <= now:
        c.recovery.on_probe_timer(now)
    if timers.persist_at <= now:
        _probe_window(c, now)
    if timers.keepalive_at <= now:
        _probe_life(c, now)
    if timers.time_wait_at <= now and c.state is not TcpState.CLOSED:
        # FIN-WAIT-2 has no timer in RFC 9293. Kernels end it after a minute when the application has closed, as the
        # peer may never send its FIN.
        if c.state in (TcpState.TIME_WAIT, TcpState.FIN_WAIT_2):
            c.transition(TcpEvent.TIME_WAIT_OVER)
        timers.set_time_wait(NEVER)


def _give_up(c: TcpSocket) -> None:
    """Close the connection: the peer was silent for too long."""
    # After a close by the application the peer may be alive and only not reading: it has to learn that the rest will
    # not come. While the application is still there, the silence was long enough for the peer to be dead.
    if c.receiver.discards:
        c.send_reset()
    c.fail(StackError("timeout"))


def _probe_window(c: TcpSocket, now: float) -> None:
    """Probe the peer's closed window."""
    rtt, timers = c.recovery.rtt, c.timers
    # RFC 9293 section 3.8.6.1 forbids giving up while the peer answers probes, however long its window stays closed;
    # only silence counts.
    heard = -1.0 if c.sender.snd_wnd else c.receiver.last_heard
    if rtt.should_give_up(rtt.persist_delay(timers.persist_count), now, heard):
        _give_up(c)
        return
    # Repeated until it is answered, as an acknowledgement that opens a window is not retransmitted (RFC 9293
    # section 3.8.6.1).
    timers.repeat_persist(now + rtt.persist_delay(timers.persist_count + 1))
    c.host.send_control(c.remote, tcp_output.probe_packet(c, now))


def _probe_life(c: TcpSocket, now: float) -> None:
    """Send a keepalive probe to a silent peer; give up on a peer that does not answer probes."""
    timers = c.timers
    # Only after the handshake: a SYN has its own limit.
    if timers.keepalive is None or not c.connected:
        timers.start_keepalive(NEVER)
        return
    idle, interval, probes = timers.keepalive
    heard = c.receiver.last_heard
    if heard >= timers.keepalive_sent:  # the hot path only records when it heard something
        timers.keepalive_answered()
        if now < heard + idle:
            timers.start_keepalive(heard + idle)
            return
    elif timers.keepalive_probes >= probes:
        # RFC 9293 section 3.8.4 leaves the end to the implementation; the reset frees a peer that was only unable to
        # answer.
        c.send_reset()
        c.fail(StackError("timeout"))
        return
    timers.keepalive_probed(now, interval)
    # RFC 9293 section 3.8.4: only where no sent data is outstanding.
    if not c.sender.in_flight:  # data in flight is a probe already
        c.host.send_control(c.remote, tcp_output.probe_packet(c, now))


def on_path_change(c: TcpSocket, now: float) -> None:
    """Handle a new path: retransmit immediately what a dead path lost."""
    timers, recovery = c.timers, c.recovery
    # The minimum of a faster path would make the reordering window (RFC 8985 section 6.2, step 4) and the burst limit
    # too small for a slower one.
    recovery.rtt.forget_minimum()
    if timers.syn_at > now and c.state in (TcpState.SYN_SENT, TcpState.SYN_RECEIVED):
        timers.send_syn(now)
    # Data in flight provokes an answer; without any there is nothing to retransmit.
    elif c.sender.in_flight and not recovery.path_changed(now, c.receiver.last_heard):
        _give_up(c)
        return
    if timers.persist_at != NEVER:
        timers.start_persist(now)
    c.host.mark_ready(c)
