"""Segment output: from the data that may be sent to packets in the superbuffer.

Lives here: the order (lost data, new data, acknowledgements), the amount, FIN. `_resend_lost` retransmits lost data,
which loss_detection.py marked.
Does not live here: building segments (segments.py), the window and the scoreboard (recovery.py), SYNs (handshake.py).
Obeys: RFC 9293 sections 3.8.6 (windows, silly window avoidance) and 3.10.2; RFC 5681 section 4.2.
"""

from __future__ import annotations

from coder.mesh.core.stack.tcp.connection import TcpSocket
from coder.mesh.core.stack.tcp.recovery import Phase
from coder.mesh.core.stack.tcp.states import SENDING, SYNCHRONIZED, TcpEvent, TcpState
from coder.mesh.core.stack.tcp.timers import NEVER
from coder.mesh.core.wire import tcp
from coder.mesh.core.wire.batch import HEADER, Batch, TxBuf

_SMALL_LIMIT = 1024
"""Ours: bytes; far below every tunnel's MTU, so that such a packet needs no size check."""
_ACK = tcp.ACK


def small_segment(c: TcpSocket, now: float) -> bytes | None:
    """Return the packet when one small segment is all that is queued and no limit is near; else None.

    Every keystroke and every small request. As a single packet it costs half of a batch of one.
    """
    sender = c.sender
    queue = sender.queue
    start = sender.snd_nxt
    left = queue.end - start
    # A pending FIN, blocks to report, a window under probe: each needs the slow path, and is rare in interactive use.
    if not 0 < left <= _SMALL_LIMIT or c.state is not TcpState.ESTABLISHED or sender.write_closed:
        return None
    receiver = c.receiver
    builder = c.builder
    if not builder.is_plain or left > builder.mss or receiver.rx.waiting or receiver.dsack is not None:
        return None
    if c.timers.persist_at != NEVER or not c.recovery.may_send_small(left, now):
        return None
    packet = builder.small_segment(start, queue.slice(start, left), now)
    end = start + left
    sender.sent(end, 1)
    receiver.acknowledged()
    c.recovery.sent_small(start, end, now)
    return packet


def emit(c: TcpSocket, txbuf: TxBuf, now: float) -> Batch | None:
    """Fill the superbuffer with what may be sent now: lost data first, then new data. None: nothing is left."""
    if c.state not in SYNCHRONIZED or c.state is TcpState.TIME_WAIT:
        return None
    # The oldest hole first: the peer can deliver nothing behind it.
    if c.recovery.scoreboard.lost:
        batch = _resend_lost(c, txbuf, now)
        if batch is not None or c.recovery.scoreboard.lost:
            return batch  # RFC 6675 section 4, NextSeg: lost data (rule 1) before new data (rule 2)
    return _emit_new(c, txbuf, now)


def _resend_lost(c: TcpSocket, txbuf: TxBuf, now: float) -> Batch | None:
    """Retransmit lost ranges as far as the window allows; segments are cut to the current size."""
    sender, recovery, builder = c.sender, c.recovery, c.builder
    layout = txbuf.layout(builder.slot)
    # Lost data obeys the window as well (RFC 6675 section 5, step C): `pipe` no longer counts it.
    room = recovery.room()
    count = 0
    offset = HEADER
    size = layout.size
    # The first short segment ends the batch: all slots but the last have the same size (wire/batch.py).
    while count < layout.slots and room > 0 and size == layout.size:
        taken = recovery.next_lost(builder.mss, now)
        if taken is None:
            break
        start, end = taken
        flags = _ACK
        # The FIN's number lies behind the last byte; a range that reaches it carries the flag again.
        if sender.fin_sent and end > sender.queue.end:
            flags |= tcp.FIN
        data = sender.queue.slice(start, min(end, sender.queue.end) - start)
        size = builder.write(txbuf, offset, builder.segment(start, flags, data, now))
        offset += layout.stride
        room -= end - start
        count += 1
    if not count:
        return None
    sender.count(count)
    recovery.on_retransmit(now)
    _carried_ack(c)
    return Batch(c.remote, count, layout.size if count > 1 else size, size)


def _emit_new(c: TcpSocket, txbuf: TxBuf, now: float) -> Batch | None:
    sender = c.sender
    left = sender.queue.end - sender.snd_nxt
    finish = sender.write_closed and not sender.fin_sent and c.state in SENDING
    if left <= 0 and not finish:
        return None
    # Only a pause of our own counts as idle: while data is in flight acknowledgements keep the window valid.
    if sender.snd_nxt == sender.snd_una and left > 0:
        c.recovery.restart_idle_window(now)
    size = _allowance(c, left)
    if size < left:
        finish = False
        if size == 0:
            return None
    # Data with room for it carries the FIN: one segment less, and the peer learns of the end with the last byte.
    elif finish and sender.snd_una + sender.snd_wnd <= sender.snd_nxt + left:
        finish = False  # the FIN waits for room like a byte (RFC 9293 3.4: it occupies a number)
        if left == 0:
            return None
    return _fill(c, txbuf, size, finish, now)


def _allowance(c: TcpSocket, left: int) -> int:
    """Return how many of the `left` queued bytes may be sent now; whole segments unless it is all."""
    sender = c.sender
    recovery = c.recovery
    peer_room = sender.snd_una + sender.snd_wnd - sender.snd_nxt
    own_room = recovery.room()
    # RFC 9438 section 5.8: a window that the application does not fill must not grow, or it would say nothing about the
    # path.
    recovery.note_cwnd_limited(left if left < peer_room else peer_room)
    room = own_room if own_room < peer_room else peer_room
    # No Nagle (RFC 9293 section 3.7.4 lets the application switch it off): the traffic is shells and forwarded
    # connections, whose own ends have already done their batching.
    if room >= left:
        return left
    mss = c.builder.mss
    if room >= mss:
        return room - room % mss
    # A smaller segment is sent only when the peer's window is that small, never because our own is nearly used up
    # (RFC 9293 3.8.6.2.1: silly window syndrome).
    if peer_room <= own_room and room > 0 and sender.allows_small_segment(room):
        return room
    return 0


def _fill(c: TcpSocket, txbuf: TxBuf, size: int, finish: bool, now: float) -> Batch:
    """Write up to `size` new bytes as full segments and one last, maybe shorter, segment."""
    sender, builder = c.sender, c.builder
    mss = builder.mss
    layout = txbuf.layout(builder.slot)
    if size > layout.slots * mss:
        size = layout.slots * mss
        finish = False
    start = sender.snd_nxt
    seq = start
    # All full ones go by the hot loop, which writes no flags but ACK.
    full = size // mss
    # The rest is shorter, and last: slots are equal except for the last one (wire/batch.py).
    rest = size - full * mss
    if full and not rest and start + size == sender.queue.end:
        full -= 1  # the last one is written with PSH (RFC 9293 3.9.1.2: when nothing more is queued), and FIN
        rest = mss
    last = layout.size
    offset = HEADER
    if full:
        offset = builder.fill(txbuf.buf, layout.stride, sender.queue, seq, full, now)
        seq += full * mss
    if rest or finish:
        # RFC 9293 section 3.9.1.2: PSH with the last queued byte, so that a reader of another stack is woken.
        flags = _ACK | (tcp.PSH if rest else 0) | (tcp.FIN if finish else 0)
        last = builder.write(txbuf, offset, builder.segment(seq, flags, sender.queue.slice(seq, rest), now))
        seq += rest
    count = full + (1 if rest or finish else 0)
    if finish:
        seq += 1
        sender.sent_fin()
        c.transition(TcpEvent.FIN_SENT)
    sender.sent(seq, count)
    c.recovery.sent(start, seq, now)
    _carried_ack(c)
    return Batch(c.remote, count, layout.size if count > 1 else last, last)


def _carried_ack(c: TcpSocket) -> None:
    """Record the acknowledgement that data carries, unless there are blocks to report."""
    receiver = c.receiver
    # Full segments have no room for blocks, and a peer that waits for them repairs without information.
    if not receiver.rx.waiting and receiver.dsack is None:
        receiver.acknowledged()


def acknowledgements(c: TcpSocket, now: float) -> list[bytes]:
    """Return the pure acknowledgements owed, repeated for duplicates (RFC 5681 4.2: one per segment out of order)."""
    receiver = c.receiver
    owed = receiver.acks_pending
    if not owed:
        return []
    packet = c.builder.acknowledgement(c.sender.control_seq(), now)
    receiver.acknowledged()
    receiver.reported()
    c.sender.count(owed)
    # The same bytes: a duplicate has equal timestamps and blocks. No more than three (`Receiver.receive`).
    return [packet] * owed


def probe_packet(c: TcpSocket, now: float) -> bytes:
    """Return an empty segment below the window: the peer must answer it with an acknowledgement and its window.

    Used for keepalive and zero-window probes, as in Linux; the byte that RFC 9293 3.8.6.1 would send into a closed
    window could not be taken back.
    """
    # RFC 9293 section 3.8.4 describes such a segment for keepalive: outside the window, so it has to be answered.
    return c.builder.segment(c.sender.snd_una - 1, _ACK, b"", now)


def watch_window(c: TcpSocket, now: float) -> None:
    """Arm the persist timer if only the peer's window holds back data."""
    timers = c.timers
    if c.sender.is_stalled_by_window and c.state in SENDING and c.recovery.phase is Phase.OPEN:
        if timers.persist_at == NEVER:
            # RFC 9293 section 3.8.6.1: the first probe after a retransmission timeout, later ones further apart.
            timers.start_persist(now + c.recovery.rtt.persist_delay(timers.persist_count))
    # Data is in flight again, or nothing waits: an acknowledgement or the next write brings the window.
    elif timers.persist_at != NEVER or timers.persist_count:
        timers.stop_persist()
