"""The handshake: SYNs and their options.

Lives here: option negotiation in both roles, simultaneous open included.
Does not live here: which SYN is answered at all (listening.py, stack/demux.py).
Obeys: RFC 9293 sections 3.5 and 3.10.7.3, RFC 7323 sections 2 and 3, RFC 2018 section 2.
"""

from __future__ import annotations

from coder.mesh.core.stack.errors import StackError
from coder.mesh.core.stack.settings import SAME_STACK_PACKET
from coder.mesh.core.stack.tcp.connection import TcpSocket
from coder.mesh.core.stack.tcp.states import TcpEvent, TcpState
from coder.mesh.core.stack.tcp.timers import NEVER
from coder.mesh.core.wire import tcp
from coder.mesh.core.wire.tcp import Options, Segment

# The largest window a header can carry unscaled (RFC 7323 section 2.2).
_SCALE_STEP = 0xFFFF


def scale_for(buffer: int) -> int:
    """Return the window scale that lets a whole buffer be advertised."""
    scale = 0
    while _SCALE_STEP << scale < buffer and scale < tcp.MAX_WINDOW_SCALE:
        scale += 1
    return scale


def begin_connect(c: TcpSocket, now: float) -> None:
    """Start an active open."""
    # The SYN fixes the scale (RFC 7323 section 2.2), so it is chosen for the largest possible buffer, not for the
    # current window.
    c.agreed.offer(scale_for(c.host.settings.receive_buffer))
    c.adopt()
    _begin(c, now)
    c.transition(TcpEvent.CONNECT_CALLED)


def begin_accept(c: TcpSocket, syn: Segment, now: float) -> None:
    """Start a passive open: answer a SYN."""
    c.open_passively()
    read_offer(c, syn, now)
    # RFC 7323 section 2.2: with a scale in one SYN alone the ends would disagree about windows.
    if syn.options.window_scale is not None:  # RFC 7323 2.2: our option only in answer to theirs
        c.agreed.scale_receiving(scale_for(c.host.settings.receive_buffer))
    _begin(c, now)
    c.transition(TcpEvent.SYN_ACCEPTED)


def _begin(c: TcpSocket, now: float) -> None:
    # The sequence number first: an acknowledgement of the SYN is acceptable from now on, whenever the packet goes out.
    c.sender.send_syn()
    c.receiver.start_clock(now)
    c.timers.send_syn(-NEVER)  # due whatever the clock says
    c.update_mss()
    c.host.mark_ready(c)


def read_offer(c: TcpSocket, syn: Segment, now: float) -> None:
    """Record the peer's sequence number and options from its SYN or SYN-ACK."""
    options = syn.options
    c.agreed.settle(
        timestamps=options.timestamps is not None,
        sack=options.sack_permitted,
        snd_scale=options.window_scale,
        mss=options.mss,
        packet=options.same_stack or 0,
    )
    c.receiver.begin(syn, now)
    c.sender.begin(syn.seq, syn.window)  # its window is never scaled (RFC 7323 2.2)
    # Before the first packet is built: templates depend on what both sides accept.
    c.choose_checksums()
    c.recovery.begin(c.builder.mss)


def established(c: TcpSocket, now: float) -> None:
    """Complete the handshake: our SYN is acknowledged and the peer's is known."""
    c.sender.established()
    c.recovery.established(now)
    c.timers.send_syn(NEVER)
    c.transition(TcpEvent.HANDSHAKE_DONE)
    # Silence counts from here: a SYN has retransmissions of its own.
    if c.timers.keepalive:
        c.timers.start_keepalive(now + c.timers.keepalive[0])


def syn_packet(c: TcpSocket, now: float) -> bytes | None:
    """Return the SYN or SYN-ACK due now, or None; arm its retransmission."""
    if c.timers.syn_at > now:
        return None
    settings, agreed, retries = c.host.settings, c.agreed, c.recovery.rtt.retries
    # RFC 9293 section 3.8.3 (R2): the application gets a timeout.
    if retries > settings.syn_retries:
        c.fail(StackError("timeout"))
        return None
    is_active = c.state is TcpState.SYN_SENT
    may_scale = is_active or agreed.snd_scale or agreed.rcv_scale
    # In a SYN-ACK only to a peer that offered it: a foreign stack gets no option that it did not send first.
    is_offered = settings.skip_checksums and (is_active or agreed.peer_packet)
    options = Options(
        # RFC 9293 section 3.7.1 requires it in every SYN: without it the peer would send 536 bytes at a time.
        mss=c.host.routes.own_mss,
        window_scale=agreed.rcv_scale if may_scale else None,
        sack_permitted=agreed.sack,
        timestamps=(c.builder.clock(now), c.receiver.ts_recent) if agreed.timestamps else None,
        same_stack=SAME_STACK_PACKET if is_offered else None,
    ).encode()
    packet = c.builder.syn(c.sender.iss, tcp.SYN if is_active else tcp.SYN | tcp.ACK, options)
    c.recovery.sent_syn(now)
    c.sender.count(1)
    # RFC 6298 2.1 and 5.5: one second, then doubled. RFC 9293 3.8.3 asks for three minutes of retries. Implementations
    # use about a minute, because a user waits.
    c.timers.send_syn(now + settings.first_rto * (1 << retries))
    return packet


def resend_syn(c: TcpSocket, now: float) -> None:
    """Retransmit the SYN after its timer expired."""
    c.recovery.on_syn_timeout()
    c.timers.send_syn(now)
