"""Building what a connection sends: bulk data straight into the superbuffer, everything else as packets.

Lives here: the transmit hot path, acknowledgements, window advertisement, resets.
Does not live here: how much may be sent (congestion.py, recovery.py), the handshake's options (handshake.py).
Obeys: RFC 9293 sections 3.8.6 (windows, silly window avoidance) and 3.10.2; RFC 7323 section 3 (timestamps); RFC 2018.

One struct call writes header and payload of a full segment into its slot: 0.3 us. Whatever happens once per batch may
cost a microsecond; what happens per packet may not.
"""

from __future__ import annotations

from struct import Struct

from coder.mesh.core.stack import recovery
from coder.mesh.core.stack.connection import MASK, NEVER, Phase, TcpSocket
from coder.mesh.core.stack.states import SENDING, SYNCHRONIZED, Fact, State
from coder.mesh.core.wire import ip, tcp
from coder.mesh.core.wire.batch import HEADER, Batch, TxBuf, padded

_BARE = Struct("!IBBHHH")
_STAMPED = Struct("!IBBHHHIII")
"""Acknowledgement, offset, flags, window, checksum, urgent; option word, timestamp, echo."""
_LONE = Struct("!4sH38sIIHHIIII")
"""A whole header: version, payload size, the rest up to the ports; from the sequence number on as above."""
_BITS_LONE = 0x8018
"""Eight words of header, PSH and ACK."""
_LONE_LIMIT = 1024
"""Ours: bytes; far below every tunnel's MTU, so that such a packet needs no thought about its size."""
_PAIR = Struct("!II")
_OPTION_WORD = int.from_bytes(tcp.ESTABLISHED_OPTIONS, "big")
_MAX_BLOCKS_STAMPED = 3
_ACK = tcp.ACK
_MAX_WINDOW = 0xFFFF


def retune(c: TcpSocket, limit: int) -> None:
    """Set templates for segments of at most `limit` bytes behind the fixed TCP header (options and payload)."""
    options = 12 if c.ts_ok else 0
    mss = max(limit - options, 8) & ~1  # even, so that the checksum of a full payload needs no shift
    c.mss = mss
    c.cubic.resize(mss)
    size = tcp.HEADER_SIZE + options + mss
    ports = c.local_port.to_bytes(2, "big") + c.remote_port.to_bytes(2, "big")
    c.head = ip.header(ip.PROTOCOL_TCP, c.local, c.remote, size) + ports
    c.slot = padded(ip.HEADER_SIZE + size, limit + ip.HEADER_SIZE + tcp.HEADER_SIZE)
    fill = c.slot - ip.HEADER_SIZE - size
    if c.skip_checksums:
        c.full = Struct(f"!44sI{12 + options}s{mss}s{fill}x")
    else:
        c.full = Struct(f"!44sI8sH{2 + options}s{mss}s{fill}x")
    c.pseudo = ip.ones_sum(c.local + c.remote + ports) + ip.PROTOCOL_TCP


def emit(c: TcpSocket, txbuf: TxBuf, now: float) -> Batch | None:
    """Fill the superbuffer with what may be sent now: lost data first, then new. None: nothing (left)."""
    if c.state not in SYNCHRONIZED or c.state is State.TIME_WAIT:
        return None
    if c.flight.lost:
        batch = _emit_lost(c, txbuf, now)
        if batch is not None or c.flight.lost:
            return batch
    return _emit_new(c, txbuf, now)


def lone(c: TcpSocket, now: float) -> bytes | None:
    """The packet, when one small segment is all a connection has to send and nothing needs thinking about; else None.

    Every keystroke and every small request. As a packet of its own it costs half of what a batch of one does.
    """
    start = c.snd_nxt
    queue = c.queue
    left = queue.end - start
    if not 0 < left <= _LONE_LIMIT or left > c.mss or c.state is not State.ESTABLISHED or c.write_closed:
        return None
    if c.phase is not Phase.OPEN or c.persist_at != NEVER:
        return None
    flight = c.flight
    rx = c.rx
    if not (c.skip_checksums and c.ts_ok) or flight.lost or flight.sacked or rx.waiting or c.dsack is not None:
        return None
    una = c.snd_una
    used = start - una
    cubic = c.cubic
    # With more under way the limits want a closer look; after a silence the window has to shrink.
    if used >= c.mss or used + left > c.snd_wnd or used + left > cubic.window or now - c.last_sent > c.rtt.rto:
        return None
    packet = _LONE.pack(
        c.head, left + 32, c.head[6:], start & MASK, rx.next & MASK, _BITS_LONE, _window_field(c), 0, _OPTION_WORD,
        c.clock(now), c.ts_recent,
    ) + queue.slice(start, left)  # fmt: skip
    c.limited = False
    c.extra = 0
    c.snd_nxt = start + left
    flight.sent(start, start + left, now)
    c.segments_out += 1
    acknowledged(c)
    recovery.after_send(c, now)
    return packet


def _emit_new(c: TcpSocket, txbuf: TxBuf, now: float) -> Batch | None:
    left = c.queue.end - c.snd_nxt
    finish = c.write_closed and not c.fin_sent and c.state in SENDING
    if left <= 0 and not finish:
        return None
    if c.snd_nxt == c.snd_una and now - c.last_sent > c.rtt.rto and left > 0:
        c.cubic.idle(int((now - c.last_sent) / c.rtt.rto))
    size = _allowance(c, left)
    if size < left:
        finish = False
        if size == 0:
            return None
    elif finish and c.snd_una + c.snd_wnd <= c.snd_nxt + left:
        finish = False  # the FIN waits for room like a byte
        if left == 0:
            return None
    c.extra = 0
    return _fill(c, txbuf, size, finish, now)


def _allowance(c: TcpSocket, left: int) -> int:
    """How many of the `left` queued bytes may go out now; whole segments unless it is all."""
    used = recovery.pipe(c)
    window = c.cubic.window
    cap = c.flight_cap()
    peer_room = c.snd_una + c.snd_wnd - c.snd_nxt
    own_room = max((window if window < cap else cap) - used, c.extra)
    c.limited = window <= cap and window - used < min(left, peer_room)
    room = own_room if own_room < peer_room else peer_room
    if room >= left:
        return left
    mss = c.mss
    if room >= mss:
        return room - room % mss
    # Less than a segment: only when the peer's window is that small for good, or stayed so for a while (RFC 9293
    # 3.8.6.2.1, cases 3 and 4), never because our own is nearly used up.
    if peer_room <= own_room and room > 0 and (room * 2 >= c.max_wnd or c.persist_count):
        return room
    return 0


def _fill(c: TcpSocket, txbuf: TxBuf, size: int, finish: bool, now: float) -> Batch:
    """Write up to `size` new bytes as full segments and one last, maybe shorter, segment."""
    mss = c.mss
    layout = txbuf.layout(c.slot)
    if size > layout.slots * mss:
        size = layout.slots * mss
        finish = False
    start = c.snd_nxt
    seq = start
    ends_queue = start + size == c.queue.end
    full = size // mss
    rest = size - full * mss
    if full and not rest and ends_queue:
        full -= 1  # the last one is written with PSH, and FIN
        rest = mss
    last = layout.size
    offset = HEADER
    if full:
        offset = _fill_full(c, txbuf.buf, layout.stride, full, now)
        seq += full * mss
    if rest or finish:
        flags = _ACK | (tcp.PSH if rest else 0) | (tcp.FIN if finish else 0)
        packet = segment(c, seq, flags, c.queue.slice(seq, rest), now)
        last = _write(txbuf, offset, packet, c.slot)
        seq += rest
    count = full + (1 if rest or finish else 0)
    if finish:
        seq += 1
        c.fin_sent = True
        c.take(Fact.FIN_SENT)
    c.snd_nxt = seq
    c.flight.sent(start, seq, now)
    _sent_data(c, count)
    recovery.after_send(c, now)
    return Batch(c.remote, count, layout.size if count > 1 else last, last)


def _sent_data(c: TcpSocket, count: int) -> None:
    """Data carries the acknowledgement, unless there are blocks to report."""
    c.segments_out += count
    if not c.rx.waiting and c.dsack is None:
        acknowledged(c)


def acknowledged(c: TcpSocket) -> None:
    """An acknowledgement of everything so far is out."""
    c.acks_owed = 0
    c.segments_unacked = 0
    c.ack_at = NEVER
    c.last_ack_sent = c.rx.next


def _write(txbuf: TxBuf, offset: int, packet: bytes, slot: int) -> int:
    """Put a packet into a slot with its padding; returns the padded size."""
    size = padded(len(packet), slot)
    txbuf.buf[offset : offset + size] = packet.ljust(size, b"\0")
    return size


def _fill_full(c: TcpSocket, buf: bytearray, stride: int, count: int, now: float) -> int:
    """`count` full segments from SND.NXT into consecutive slots; returns the next slot's offset. The hot loop."""
    mss = c.mss
    seq = c.snd_nxt
    head = c.head
    queue = c.queue
    pack_into = c.full.pack_into
    chunk, base = queue.at(seq)
    last = len(chunk) - mss
    first = seq - base
    offset = HEADER
    post = _post(c, _ACK, now)
    if c.skip_checksums:
        for _ in range(count):
            if first <= last:
                data = chunk[first : first + mss]
            else:
                data = queue.slice(seq, mss)
                chunk, base = queue.at(seq + mss)
                last = len(chunk) - mss
                first = seq - base
            pack_into(buf, offset, head, seq & MASK, post, data)
            seq += mss
            first += mss
            offset += stride
        return offset
    before, behind = post[:8], post[10:]
    constant = c.pseudo + len(post) + 8 + mss + ip.ones_sum(post)
    for _ in range(count):
        if first <= last:
            data = chunk[first : first + mss]
        else:
            data = queue.slice(seq, mss)
            chunk, base = queue.at(seq + mss)
            last = len(chunk) - mss
            first = seq - base
        word = seq & MASK
        total = constant + (word >> 16) + (word & 0xFFFF) + int.from_bytes(data, "big")
        pack_into(buf, offset, head, word, before, 0xFFFF - total % 0xFFFF, behind, data)
        seq += mss
        first += mss
        offset += stride
    return offset


def _post(c: TcpSocket, flags: int, now: float) -> bytes:
    """Everything behind the sequence number, without SACK."""
    ack = _ack_number(c) & MASK
    if c.ts_ok:
        return _STAMPED.pack(ack, 0x80, flags, _window_field(c), 0, 0, _OPTION_WORD, c.clock(now), c.ts_recent)
    return _BARE.pack(ack, 0x50, flags, _window_field(c), 0, 0)


def _ack_number(c: TcpSocket) -> int:
    return c.rx.next


def _window_field(c: TcpSocket) -> int:
    """The window as advertised now; remembers its right edge."""
    window = c.receive_window() >> c.rcv_scale
    if window > _MAX_WINDOW:
        window = _MAX_WINDOW
    edge = c.rx.next + (window << c.rcv_scale)
    if edge > c.rcv_adv:
        c.rcv_adv = edge
    return window


def _emit_lost(c: TcpSocket, txbuf: TxBuf, now: float) -> Batch | None:
    """Send lost ranges again, as far as the window lets us; segments are cut to today's size."""
    mss = c.mss
    layout = txbuf.layout(c.slot)
    room = max(min(c.cubic.window, c.flight_cap()) - recovery.pipe(c), c.extra)
    edge = c.snd_una + c.snd_wnd
    count = 0
    offset = HEADER
    size = layout.size
    while count < layout.slots and room > 0 and size == layout.size:
        taken = c.flight.resend(mss, now, edge)
        if taken is None:
            break
        start, end = taken
        flags = _ACK
        if c.fin_sent and end > c.queue.end:
            flags |= tcp.FIN
        data = c.queue.slice(start, min(end, c.queue.end) - start)
        size = _write(txbuf, offset, segment(c, start, flags, data, now), c.slot)
        offset += layout.stride
        room -= end - start
        count += 1
        c.retransmitted += end - start
    if not count:
        return None
    c.extra = 0
    if c.first_again < 0:
        c.first_again = c.clock(now)
    _sent_data(c, count)
    recovery.after_send(c, now)
    return Batch(c.remote, count, layout.size if count > 1 else size, size)


def segment(c: TcpSocket, seq: int, flags: int, data: bytes, now: float, options: bytes = b"") -> bytes:
    """A whole packet. `options` replace the timestamps every segment has."""
    if options:
        post = (
            _BARE.pack(_ack_number(c) & MASK, (tcp.HEADER_SIZE + len(options)) << 2, flags, _window_field(c), 0, 0)
            + options
        )
    else:
        post = _post(c, flags, now)
    return _finish(c, seq, post, data)


def _finish(c: TcpSocket, seq: int, post: bytes, data: bytes) -> bytes:
    body = (seq & MASK).to_bytes(4, "big") + post + data
    size = 4 + len(body)
    head = c.head[:4] + size.to_bytes(2, "big") + c.head[6:]
    if c.skip_checksums:
        return head + body
    check = 0xFFFF - (c.pseudo + size + ip.ones_sum(body)) % 0xFFFF
    return head + body[:12] + check.to_bytes(2, "big") + body[14:]


def acknowledgements(c: TcpSocket, now: float) -> list[bytes]:
    """The pure acknowledgements owed, repeated where duplicates are (RFC 5681 4.2: one per segment out of order)."""
    owed = c.acks_owed
    if not owed:
        return []
    packet = segment(c, _acceptable_number(c), _ACK, b"", now, _sack_options(c, now))
    acknowledged(c)
    c.dsack = None
    c.segments_out += owed
    return [packet] * owed


def _acceptable_number(c: TcpSocket) -> int:
    """The sequence number of a segment without data that the peer will look at.

    Normally SND.NXT. A peer short of memory takes its window back (RFC 9293 3.8.6 warns of it; Linux does), and then
    drops what lies beyond the new edge, acknowledgements included: both directions would hang for good.
    """
    edge = c.snd_una + c.snd_wnd
    return c.snd_nxt if c.snd_nxt - edge < 1 << c.snd_scale else edge  # an edge is only as exact as its scale


def _sack_options(c: TcpSocket, now: float) -> bytes:
    if not c.sack_ok or not (c.rx.blocks or c.dsack):
        return b""
    room = _MAX_BLOCKS_STAMPED if c.ts_ok else tcp.MAX_SACK_BLOCKS
    blocks = ([c.dsack] if c.dsack else []) + c.rx.blocks
    blocks = blocks[:room]
    stamp = tcp.ESTABLISHED_OPTIONS + _PAIR.pack(c.clock(now), c.ts_recent) if c.ts_ok else b""
    listed = b"".join(_PAIR.pack(left & MASK, right & MASK) for left, right in blocks)
    return stamp + bytes((tcp.KIND_NOP, tcp.KIND_NOP, tcp.KIND_SACK, 2 + len(listed))) + listed


def probe_packet(c: TcpSocket, now: float) -> bytes:
    """An empty segment below the window: the peer must answer with an acknowledgement and its window (keepalive,
    zero window). Linux's way; the byte RFC 9293 3.8.6.1 would send into a closed window could not be taken back."""
    return segment(c, c.snd_una - 1, _ACK, b"", now)


def reset_packet(c: TcpSocket) -> bytes:
    """A RST at exactly SND.NXT, which RFC 5961 wants."""
    post = _BARE.pack(_ack_number(c) & MASK, 0x50, tcp.RST | tcp.ACK, 0, 0, 0)
    return _finish(c, _acceptable_number(c), post, b"")


def stalled_by_window(c: TcpSocket) -> bool:
    """Whether only the peer's window keeps data from going out, with nothing under way that could open it."""
    waiting = c.queue.end - c.snd_nxt > 0 or (c.write_closed and not c.fin_sent)
    return waiting and c.snd_nxt == c.snd_una and c.state in SENDING and c.phase is Phase.OPEN
