"""Segments that arrive at a connection.

Lives here: header prediction over runs of packets, and the careful way for everything else.
Does not live here: finding the connection (interface.py), what acknowledgements mean for sending (recovery.py).
Obeys: RFC 9293 section 3.10.7 in its order, RFC 7323 sections 4 and 5 (timestamps, PAWS), RFC 5961 (blind attacks),
RFC 2883 (duplicate SACK).
"""

from __future__ import annotations

from struct import Struct

from coder.mesh.core.stack import handshake, recovery
from coder.mesh.core.stack.connection import HALF, MASK, NEVER, TcpSocket
from coder.mesh.core.stack.errors import StackError
from coder.mesh.core.stack.settings import DUPLICATE_THRESHOLD
from coder.mesh.core.stack.states import RECEIVING, SYNCHRONIZED, Fact, State
from coder.mesh.core.wire import ip, tcp
from coder.mesh.core.wire.tcp import Segment

_PREDICTED = Struct("!IIHH4xIII")
"""Sequence, acknowledgement, offset and flags, window, (checksum, urgent), option word, timestamp, echo."""
_AT = ip.HEADER_SIZE + 4
_HEADER = ip.HEADER_SIZE + tcp.HEADER_SIZE + 12
_BITS_DATA = 0x8018
_BITS_ACK = 0x8010
_PSH = 0x0008
_OPTION_WORD = int.from_bytes(tcp.ESTABLISHED_OPTIONS, "big")
_EMPTY_TCP = b"\x00\x20\x06"
"""Length 32, next header TCP: a segment with timestamps and nothing in it."""
_WORTH_PREDICTING = 512
"""Ours: payloads from which a run of equals is likely; smaller ones are copied together (reassembly.py)."""
_PAWS_AGE = 24 * 86400.0
_MAX_CHALLENGES = 10
_MAX_PIECES = 4096
"""Ours: segments held out of order per connection; a peer sending one-byte segments must not fill the memory."""


def on_run(c: TcpSocket, packets: list[bytes], index: int, now: float) -> int:
    """Take a run of predicted packets beginning at packets[index]; returns the index of the first one not taken.

    Predicted are segments in order, as long as the last careful one, and bare acknowledgements. The receive hot path.
    """
    if c.state is not State.ESTABLISHED or not c.ts_ok or c.fin_at >= 0:
        return index
    packet = packets[index]
    if len(packet) == c.run_size and packet[4:44] == c.run_prefix and not c.rx.waiting:
        return _data_run(c, packets, index, now)
    if c.flight.again or c.flight.sacked or c.dup_acks or c.probe_end >= 0:
        return index
    if packet[4:7] == _EMPTY_TCP:
        return _ack_run(c, packets, index, now)
    return index + _one(c, packet, now)


def _data_run(c: TcpSocket, packets: list[bytes], index: int, now: float) -> int:
    prefix = c.run_prefix
    total = c.run_size
    rx = c.rx
    size = (prefix[0] << 8 | prefix[1]) - 32
    stop = min(len(packets), index + (c.rcv_adv - rx.next) // size)
    end = _HEADER + size
    whole = end == total
    expected = rx.next & MASK
    una = c.snd_una & MASK
    recent = c.ts_recent
    stamp = first_stamp = -1
    window = 0
    append = rx.parts.append
    unpack = _PREDICTED.unpack_from
    begin = index
    while index < stop:
        packet = packets[index]
        if len(packet) != total or packet[4:44] != prefix:
            break
        seq, ack, bits, window_now, word, tsval, _ = unpack(packet, _AT)
        if seq != expected or ack != una or bits | _PSH != _BITS_DATA or word != _OPTION_WORD:
            break
        if tsval != stamp:
            if (tsval - recent) & MASK >= HALF:
                break
            stamp = tsval
            if first_stamp < 0:
                first_stamp = tsval
        window = window_now
        append(memoryview(packet)[_HEADER:] if whole else memoryview(packet)[_HEADER:end])
        expected = (expected + size) & MASK
        index += 1
    count = index - begin
    if count:
        if c.last_ack_sent == rx.next:  # RFC 7323 4.3: only the segment the last acknowledgement waited for
            c.ts_recent = first_stamp
            c.ts_recent_at = now
        rx.next += count * size
        rx.unread += count * size
        _update_window(c, window << c.snd_scale)
        c.last_heard = now
        c.segments_in += count
        _data_arrived(c, count, count * size, now)
    return index


def _ack_run(c: TcpSocket, packets: list[bytes], index: int, now: float) -> int:
    """Bare acknowledgements of new data: only the last of a run needs looking at."""
    expected = c.rx.next & MASK
    una = c.snd_una & MASK
    outstanding = c.snd_nxt - c.snd_una
    key = c.key
    best = 0
    window = -1
    echo = taken_echo = -1
    stamp = c.ts_recent
    begin = index
    for packet in packets[index:]:
        if packet[4:7] != _EMPTY_TCP or packet[8:44] != key or len(packet) < _HEADER:
            break
        seq, ack, bits, window_now, word, tsval, echo = _PREDICTED.unpack_from(packet, _AT)
        gain = (ack - una) & MASK
        if seq != expected or bits != _BITS_ACK or word != _OPTION_WORD or not best < gain <= outstanding:
            break
        if (tsval - stamp) & MASK >= HALF:
            break
        stamp = tsval
        best = gain
        window = window_now
        taken_echo = echo
        index += 1
    if index > begin:
        if c.last_ack_sent == c.rx.next:
            c.ts_recent = stamp
            c.ts_recent_at = now
        c.last_heard = now
        c.segments_in += index - begin
        _acknowledged(c, c.snd_una + best, (), taken_echo, now)
        _update_window(c, window << c.snd_scale)
        c.snd_wl1 = c.rx.next
        c.snd_wl2 = c.snd_una
        c.host.make_ready(c)
    return index


def _one(c: TcpSocket, packet: bytes, now: float) -> bool:
    """A single segment in order that may acknowledge something as well; False when it needs the careful way.

    What interactive and two-way traffic consists of; the careful way costs three times as much.
    """
    end = ip.HEADER_SIZE + (packet[4] << 8 | packet[5])
    if end > len(packet) or end <= _HEADER or packet[6] != ip.PROTOCOL_TCP:
        return False
    rx = c.rx
    seq, ack, bits, window, word, tsval, tsecr = _PREDICTED.unpack_from(packet, _AT)
    gain = (ack - c.snd_una) & MASK
    if seq != rx.next & MASK or bits | _PSH != _BITS_DATA or word != _OPTION_WORD or rx.waiting:
        return False
    size = end - _HEADER
    if gain > c.snd_nxt - c.snd_una or (tsval - c.ts_recent) & MASK >= HALF or size > c.rcv_adv - rx.next:
        return False
    if c.last_ack_sent == rx.next:
        c.ts_recent = tsval
        c.ts_recent_at = now
    c.last_heard = now
    c.segments_in += 1
    if gain:
        if c.snd_una + gain != c.snd_nxt or not recovery.on_full_ack(c, now):
            _acknowledged(c, c.snd_una + gain, (), tsecr, now)
        elif c.awaits_writable:
            c.awaits_writable = False
            c.host.make_touched(c)
    _update_window(c, window << c.snd_scale)
    c.snd_wl1 = rx.next
    c.snd_wl2 = c.snd_una
    if rx.parts or size >= _WORTH_PREDICTING:
        rx.deliver(memoryview(packet)[_HEADER:end])
    else:
        rx.parts.append(packet[_HEADER:end])
        rx.next += size
        rx.unread += size
    _data_arrived(c, 1, size, now)
    if size >= _WORTH_PREDICTING:
        c.run_prefix = packet[4:44]
        c.run_size = len(packet)
    return True


def _update_window(c: TcpSocket, window: int) -> None:
    c.snd_wnd = window
    if window > c.max_wnd:
        c.max_wnd = window
    if window and c.persist_at != NEVER:
        c.persist_at = NEVER
        c.persist_count = 0
        c.host.make_ready(c)


def _data_arrived(c: TcpSocket, segments: int, size: int, now: float) -> None:
    """In-order data became readable: tell the application, decide about the acknowledgement (RFC 9293 3.8.6.3)."""
    c.received += size
    c.segments_unacked += segments
    if c.discards:
        c.send_reset()
        c.die(StackError("aborted"))
        return
    if c.quick_acks > 0:
        c.quick_acks -= segments
        c.acks_owed = max(c.acks_owed, 1)
    elif c.segments_unacked >= 2:
        c.acks_owed = max(c.acks_owed, 1)
    elif c.ack_at == NEVER:
        c.ack_at = now + c.host.settings.delayed_ack
    host = c.host
    if c.acks_owed or c.queue.end != c.snd_nxt or c.write_closed or c.flight.lost:
        host.make_ready(c)
    else:
        host.note_deadline(c)
    host.make_touched(c)


def _acknowledged(
    c: TcpSocket, ack: int, blocks: recovery.Blocks, echo: int, now: float, duplicate: bool = False
) -> None:
    recovery.on_ack(c, ack, blocks, echo, now, duplicate)
    if c.awaits_writable and 2 * len(c.queue) <= c.send_limit:
        c.awaits_writable = False
        c.host.make_touched(c)
    if c.fin_sent and ack > c.queue.end and c.state in (State.FIN_WAIT_1, State.CLOSING, State.LAST_ACK):
        c.take(Fact.FIN_ACKED)
        _finish_acked(c, now)


def _finish_acked(c: TcpSocket, now: float) -> None:
    if c.state is State.TIME_WAIT:
        _begin_quiet_time(c, now)
    elif c.state is State.FIN_WAIT_2 and c.discards:
        c.quiet_at = now + c.host.settings.quiet_time


def _begin_quiet_time(c: TcpSocket, now: float) -> None:
    c.quiet_at = now + c.host.settings.quiet_time
    c.rto_at = c.probe_at = c.reorder_at = c.persist_at = c.keepalive_at = NEVER


# The careful way


def on_segment(c: TcpSocket, packet: bytes, segment: Segment, now: float) -> None:
    """Any segment of this connection, by the book."""
    c.segments_in += 1
    c.host.make_ready(c)
    if c.state is State.SYN_SENT:
        _in_syn_sent(c, segment, now)
        return
    seq = c.rx.next + ((segment.seq - c.rx.next + HALF) & MASK) - HALF
    times = segment.options.timestamps
    if c.ts_ok and times is not None and not segment.flags & tcp.RST and _is_old(c, times[0], now):
        c.acks_owed = max(c.acks_owed, 1)
        return
    if not _acceptable(c, seq, segment):
        _refuse(c, seq, segment, now)
        return
    if segment.flags & tcp.RST:
        _on_reset(c, seq, now)
        return
    if segment.flags & tcp.SYN:
        # RFC 5961 section 4: whatever its number; a restarted peer will answer our acknowledgement with a RST.
        _challenge(c, now)
        return
    if not segment.flags & tcp.ACK:
        return
    c.last_heard = now
    if times is not None and c.ts_ok and seq <= c.last_ack_sent:  # newer, or ours is out of date (RFC 7323 5.5)
        c.ts_recent = times[0]
        c.ts_recent_at = now
    if not _take_ack(c, seq, segment, now) or c.state is State.CLOSED:
        return
    if segment.payload or segment.flags & tcp.FIN:
        _take_payload(c, seq, segment, now)
        _learn_prediction(c, packet, segment)


def _is_old(c: TcpSocket, tsval: int, now: float) -> bool:
    """PAWS (RFC 7323 5.3); a timestamp of ours older than 24 days proves nothing."""
    return (tsval - c.ts_recent) & MASK >= HALF and now - c.ts_recent_at < _PAWS_AGE


def _acceptable(c: TcpSocket, seq: int, segment: Segment) -> bool:
    """Whether any of the segment lies in the window; an empty one may stand at its edge (RFC 9293 3.10.7.4)."""
    end = seq + segment.length
    right = max(c.rcv_adv, c.rx.next)
    if segment.length == 0:
        return c.rx.next <= seq <= right
    return end > c.rx.next and seq <= right


def _refuse(c: TcpSocket, seq: int, segment: Segment, now: float) -> None:
    """Outside the window: old data, a keepalive probe, or an attack. All get an acknowledgement, but a RST."""
    if segment.flags & tcp.RST:
        return
    if c.state is State.SYN_RECEIVED and segment.flags & tcp.SYN and segment.seq == c.irs & MASK:
        if segment.flags & tcp.ACK and not c.passive:
            _take_ack(c, seq, segment, now)  # both opened at once (RFC 9293 figure 8)
            c.acks_owed = 1
        else:
            c.syn_at = now  # our SYN-ACK was lost
        return
    if segment.flags & tcp.SYN:
        _challenge(c, now)
        return
    if segment.flags & tcp.ACK and c.state in SYNCHRONIZED:
        c.last_heard = now
    if segment.payload and seq < c.rx.next and c.sack_ok:
        c.dsack = (seq, min(seq + len(segment.payload), c.rx.next))
    if c.state is State.TIME_WAIT and segment.flags & tcp.FIN:
        _begin_quiet_time(c, now)
    c.acks_owed = max(c.acks_owed, 1)


def _on_reset(c: TcpSocket, seq: int, now: float) -> None:
    """RFC 5961 section 3: only the exact number resets; others in the window are challenged."""
    if seq != c.rx.next:
        _challenge(c, now)
        return
    if c.state in (State.TIME_WAIT, State.LAST_ACK, State.CLOSING):
        c.die(None)
    else:
        c.die(StackError("refused" if c.state is State.SYN_RECEIVED and not c.passive else "reset"))


def _challenge(c: TcpSocket, now: float) -> None:
    """Acknowledge what we have, at most ten times a second (RFC 5961 section 7)."""
    if now - c.challenges_at >= 1.0:
        c.challenges_at = now
        c.challenges = 0
    c.challenges += 1
    if c.challenges <= _MAX_CHALLENGES:
        c.acks_owed = max(c.acks_owed, 1)


def _in_syn_sent(c: TcpSocket, segment: Segment, now: float) -> None:
    flags = segment.flags
    acked = bool(flags & tcp.ACK)
    if acked and segment.ack != (c.iss + 1) & MASK:
        if not flags & tcp.RST:
            c.host.send_control(c.remote, stray_reset(c.local, c.remote, segment))
        return
    if flags & tcp.RST:
        if acked:
            c.die(StackError("refused"))
        return
    if not flags & tcp.SYN:
        return
    handshake.read_offer(c, segment, now)
    if acked:
        handshake.established(c, now)
        c.snd_wl2 = c.snd_una
        c.acks_owed = 1
        if segment.payload:
            _take_payload(c, segment.seq + 1, segment, now)
    else:
        c.take(Fact.SYN_ACCEPTED)
        c.syn_at = now


def _take_ack(c: TcpSocket, seq: int, segment: Segment, now: float) -> bool:
    """Steps five of RFC 9293 3.10.7.4; False when the segment is to be dropped."""
    ack = c.snd_una + ((segment.ack - c.snd_una + HALF) & MASK) - HALF
    if c.state is State.SYN_RECEIVED:
        if ack != c.iss + 1:
            c.host.send_control(c.remote, stray_reset(c.local, c.remote, segment))
            return False
        handshake.established(c, now)
        _update_window(c, segment.window << c.snd_scale)
        c.snd_wl1, c.snd_wl2 = seq, ack
        return True
    if ack > c.snd_nxt or ack < c.snd_una - c.max_wnd:
        _challenge(c, now)  # RFC 5961 section 5
        return False
    if c.state is State.TIME_WAIT:
        if segment.flags & tcp.FIN:
            _begin_quiet_time(c, now)
        return True
    times = segment.options.timestamps
    echo = times[1] if times is not None and c.ts_ok else -1
    window = segment.window << c.snd_scale
    if ack >= c.snd_una:
        duplicate = ack == c.snd_una and not segment.length and window == c.snd_wnd
        if ack > c.snd_una or segment.options.sack or (duplicate and c.snd_nxt > c.snd_una):
            blocks = segment.options.sack if c.sack_ok else ()
            _acknowledged(c, ack, blocks, echo, now, duplicate)
        if seq > c.snd_wl1 or (seq == c.snd_wl1 and ack >= c.snd_wl2):
            _update_window(c, window)
            c.snd_wl1, c.snd_wl2 = seq, ack
    return True


def _take_payload(c: TcpSocket, seq: int, segment: Segment, now: float) -> None:
    if c.state not in RECEIVING:
        return
    rx = c.rx
    payload: memoryview | bytes = segment.payload
    right = c.rcv_adv
    finishes = bool(segment.flags & tcp.FIN)
    if seq + len(payload) > right:
        payload = payload[: max(right - seq, 0)]
        finishes = False
        c.acks_owed = max(c.acks_owed, 1)  # a window probe wants to hear the window
    end = seq + len(payload)
    if finishes and c.fin_at < 0:
        c.fin_at = end
    size = 0
    if payload:
        before = rx.next
        if seq > before and rx.pieces >= _MAX_PIECES:
            return
        if seq < before and c.sack_ok:
            c.dsack = (seq, min(end, before))
        filled = rx.waiting
        size = rx.insert(seq, payload)
        if seq > before or filled:
            # A hole opened, is still there, or closed: the sender must know at once, once per segment (RFC 5681 4.2).
            c.acks_owed = min(c.acks_owed + 1, DUPLICATE_THRESHOLD)
        if size:
            _data_arrived(c, 1, size, now)
    if c.fin_at >= 0 and rx.next == c.fin_at and c.state in RECEIVING:
        _finish_arrived(c, now)


def _finish_arrived(c: TcpSocket, now: float) -> None:
    c.rx.next += 1
    c.rcv_adv = max(c.rcv_adv, c.rx.next)
    c.acks_owed = max(c.acks_owed, 1)
    c.take(Fact.FIN_ARRIVED)
    if c.state is State.TIME_WAIT:
        _begin_quiet_time(c, now)


def _learn_prediction(c: TcpSocket, packet: bytes, segment: Segment) -> None:
    """Expect more segments like this one."""
    if (
        len(segment.payload) >= _WORTH_PREDICTING
        and segment.options.timestamps is not None
        and not segment.options.sack
    ):
        prefix = packet[4:44]
        if (prefix[0] << 8 | prefix[1]) == len(segment.payload) + 32:
            c.run_prefix = prefix
            c.run_size = len(packet)


def stray_reset(local: bytes, remote: bytes, segment: Segment) -> bytes:
    """The RST for a segment that belongs to no connection (RFC 9293 3.10.7.1)."""
    if segment.flags & tcp.ACK:
        answer = Segment(segment.port, segment.source_port, segment.ack, 0, tcp.RST, 0)
    else:
        ack = segment.seq + segment.length
        answer = Segment(segment.port, segment.source_port, 0, ack, tcp.RST | tcp.ACK, 0)
    check = ip.checksum(ip.PROTOCOL_TCP, local, remote, answer.encode())
    body = answer.encode(check)
    return ip.header(ip.PROTOCOL_TCP, local, remote, len(body)) + body
