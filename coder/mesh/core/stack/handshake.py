"""SYNs: what they offer, what is agreed.

Lives here: option negotiation in both roles, simultaneous open included.
Does not live here: which SYN is answered at all (listening.py, interface.py).
Obeys: RFC 9293 sections 3.5 and 3.10.7.3, RFC 7323 sections 2 and 3, RFC 2018 section 2.
"""

from __future__ import annotations

from coder.mesh.core.stack import emission
from coder.mesh.core.stack.congestion import Cubic
from coder.mesh.core.stack.connection import NEVER, TcpSocket
from coder.mesh.core.stack.errors import StackError
from coder.mesh.core.stack.reassembly import Reassembly
from coder.mesh.core.stack.settings import NEIGHBOUR_PACKET
from coder.mesh.core.stack.states import Fact, State
from coder.mesh.core.wire import tcp
from coder.mesh.core.wire.tcp import Options, Segment

_SCALE_STEP = 0xFFFF


def scale_for(buffer: int) -> int:
    """The window scale that lets a whole buffer be advertised."""
    scale = 0
    while _SCALE_STEP << scale < buffer and scale < tcp.MAX_WINDOW_SCALE:
        scale += 1
    return scale


def begin_connect(c: TcpSocket, now: float) -> None:
    """Active open."""
    c.ts_ok = c.sack_ok = True
    c.rcv_scale = scale_for(c.rcv_wnd)
    c.adopted = True
    _prepare(c, now)
    c.take(Fact.CONNECT_CALLED)


def begin_accept(c: TcpSocket, syn: Segment, now: float) -> None:
    """Passive open: answer a SYN."""
    c.passive = True
    read_offer(c, syn, now)
    c.rcv_scale = scale_for(c.rcv_wnd) if syn.options.window_scale is not None else 0
    _prepare(c, now)
    c.take(Fact.SYN_ACCEPTED)


def _prepare(c: TcpSocket, now: float) -> None:
    c.snd_nxt = c.iss + 1
    c.last_progress = c.last_heard = now
    c.syn_at = -NEVER
    emission.retune(c, c.host.segment_limit(c))
    c.host.make_ready(c)


def read_offer(c: TcpSocket, syn: Segment, now: float) -> None:
    """Learn the peer's sequence number and options from its SYN or SYN-ACK."""
    options = syn.options
    c.irs = syn.seq
    c.rx = Reassembly(syn.seq + 1)
    c.rcv_adv = syn.seq + 1
    c.last_ack_sent = syn.seq + 1
    c.ts_ok = options.timestamps is not None
    if options.timestamps is not None:
        c.ts_recent = options.timestamps[0]
        c.ts_recent_at = now
    c.sack_ok = options.sack_permitted
    if options.window_scale is None:
        c.rcv_scale = c.snd_scale = 0
    else:
        c.snd_scale = options.window_scale
    if options.mss is not None:
        c.peer_mss = max(options.mss, 64)
    c.peer_packet = options.neighbour or 0
    neighbourly = c.host.settings.skip_checksums and options.neighbour is not None
    c.skip_checksums = neighbourly or c.host.without_checksums(c.remote)
    c.snd_wnd = c.max_wnd = syn.window  # never scaled in a SYN (RFC 7323 2.2)
    c.snd_wl1 = syn.seq
    c.snd_wl2 = c.snd_una
    c.last_heard = now
    emission.retune(c, c.host.segment_limit(c))
    c.cubic = Cubic(c.mss)  # the initial window counts in true segments


def established(c: TcpSocket, now: float) -> None:
    """Our SYN is acknowledged and the peer's is known."""
    c.snd_una = c.iss + 1
    if c.retries == 0 and c.last_sent:
        c.rtt.sample(max(now - c.last_sent, 1e-6), now)
    else:
        c.cubic.window = min(c.cubic.window, 3 * c.mss)  # RFC 6298 5.7, RFC 5681 3.1: a SYN was lost
    c.retries = 0
    c.syn_at = NEVER
    c.recovery_point = c.snd_una
    c.last_progress = now
    c.take(Fact.HANDSHAKE_DONE)
    if c.keepalive:
        c.keepalive_at = now + c.keepalive[0]


def syn_packet(c: TcpSocket, now: float) -> bytes | None:
    """The SYN or SYN-ACK due now, or None; arms its retransmission."""
    if c.syn_at > now:
        return None
    if c.retries > c.host.settings.syn_retries:
        c.die(StackError("timeout"))
        return None
    active = c.state is State.SYN_SENT
    options = Options(
        mss=c.host.own_limit(c.remote),
        window_scale=c.rcv_scale if active or c.snd_scale or c.rcv_scale else None,
        sack_permitted=c.sack_ok,
        timestamps=(c.clock(now), c.ts_recent) if c.ts_ok else None,
        neighbour=NEIGHBOUR_PACKET if c.host.settings.skip_checksums and (active or c.peer_packet) else None,
    ).encode()
    flags = tcp.SYN if active else tcp.SYN | tcp.ACK
    scale, c.rcv_scale = c.rcv_scale, 0
    packet = emission.segment(c, c.iss, flags, b"", now, options)
    c.rcv_scale = scale
    c.last_sent = now
    c.segments_out += 1
    c.syn_at = now + c.host.settings.first_rto * (1 << c.retries)
    return packet


def resend_syn(c: TcpSocket, now: float) -> None:
    """The SYN's timer ran out."""
    c.retries += 1
    c.timeouts += 1
    c.syn_at = now
