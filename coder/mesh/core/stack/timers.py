"""What a connection does when one of its deadlines has come.

Lives here: the dispatch, zero-window probes and keepalives. Does not live here: loss timers' meaning (recovery.py).
Obeys: RFC 9293 sections 3.8.4 (keepalive) and 3.8.6.1 (zero window), RFC 6298, RFC 8985.
"""

from __future__ import annotations

from coder.mesh.core.stack import emission, handshake, recovery
from coder.mesh.core.stack.connection import NEVER, TcpSocket
from coder.mesh.core.stack.errors import StackError
from coder.mesh.core.stack.states import Fact, State


def on_timer(c: TcpSocket, now: float) -> None:
    """Run every timer that is due."""
    c.host.make_ready(c)
    if c.syn_at <= now:
        handshake.resend_syn(c, now)
    if c.ack_at <= now:
        c.ack_at = NEVER
        c.acks_owed = max(c.acks_owed, 1)
    if c.reorder_at <= now:
        recovery.on_reorder_timer(c, now)
    if c.rto_at <= now:
        if c.snd_nxt > c.snd_una:
            recovery.on_timeout(c, now)
        else:
            c.rto_at = NEVER
    if c.probe_at <= now:
        recovery.on_probe_timer(c, now)
    if c.persist_at <= now:
        _probe_window(c, now)
    if c.keepalive_at <= now:
        _probe_life(c, now)
    if c.quiet_at <= now and c.state is not State.CLOSED:
        if c.state in (State.TIME_WAIT, State.FIN_WAIT_2):
            c.take(Fact.QUIET_TIME_OVER)
        c.quiet_at = NEVER


def watch_window(c: TcpSocket, now: float) -> None:
    """Called when a connection has sent what it may: arm the persist timer if only the peer's window holds it back."""
    if not emission.stalled_by_window(c):
        c.persist_at = NEVER
        c.persist_count = 0
    elif c.persist_at == NEVER:
        c.persist_at = now + _persist_delay(c)


def _persist_delay(c: TcpSocket) -> float:
    return min(c.rtt.rto * (1 << min(c.persist_count, 10)), c.host.settings.max_rto)


def _probe_window(c: TcpSocket, now: float) -> None:
    if recovery.is_in_vain(c, _persist_delay(c), now):
        c.die(StackError("timeout"))
        return
    c.persist_count += 1
    c.persist_at = now + _persist_delay(c)
    c.host.send_control(c.remote, emission.probe_packet(c, now))


def _probe_life(c: TcpSocket, now: float) -> None:
    if c.keepalive is None or not c.connected:
        c.keepalive_at = NEVER
        return
    idle, interval, probes = c.keepalive
    if c.last_heard >= c.keepalive_sent:  # the hot path only notes when it heard something
        c.keepalive_probes = 0
        if now < c.last_heard + idle:
            c.keepalive_at = c.last_heard + idle
            return
    elif c.keepalive_probes >= probes:
        c.send_reset()
        c.die(StackError("timeout"))
        return
    c.keepalive_probes += 1
    c.keepalive_sent = now
    c.keepalive_at = now + interval
    if c.snd_nxt == c.snd_una:  # data under way is a probe already
        c.host.send_control(c.remote, emission.probe_packet(c, now))
