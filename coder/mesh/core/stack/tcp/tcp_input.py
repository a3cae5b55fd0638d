"""Segment input: acknowledgements, readable data and events of the application.

Lives here: header prediction over runs of packets (the fast path), and the slow path for everything else.
Does not live here: finding the connection (stack/demux.py), the state of the parts (receiver.py, recovery.py,
sender.py).
Obeys: RFC 9293 section 3.10.7 in its order, RFC 7323 sections 4 and 5 (timestamps, PAWS), RFC 5961 (blind attacks).
"""

from __future__ import annotations

from struct import Struct

from coder.mesh.core.stack.errors import StackError
from coder.mesh.core.stack.tcp import handshake
from coder.mesh.core.stack.tcp.connection import TcpSocket
from coder.mesh.core.stack.tcp.loss_detection import Blocks
from coder.mesh.core.stack.tcp.sequence import HALF, MASK, nearest
from coder.mesh.core.stack.tcp.states import RECEIVING, SYNCHRONIZED, TcpEvent, TcpState
from coder.mesh.core.wire import ip, tcp
from coder.mesh.core.wire.tcp import Segment

_PREDICTED = Struct("!IIHH4xIII")
"""Sequence, acknowledgement, offset and flags, window, (checksum, urgent), option word, timestamp, echo."""
_AT = ip.HEADER_SIZE + 4
_HEADER = ip.HEADER_SIZE + tcp.HEADER_SIZE + 12
# Eight words of header (with timestamps), then the flags: PSH and ACK, ACK alone.
_BITS_DATA = 0x8018
_BITS_ACK = 0x8010
_PSH = 0x0008
_OPTION_WORD = int.from_bytes(tcp.ESTABLISHED_OPTIONS, "big")
_EMPTY_TCP = b"\x00\x20\x06"
"""Length 32, next header TCP: a segment with timestamps and nothing in it."""

# The fast path: RFC 9293 3.10.7.4 for an in-order segment of an established connection. Van Jacobson's header
# prediction, over a run of packets at a time.


def on_run(c: TcpSocket, packets: list[bytes], index: int, now: float) -> int:
    """Process a run of predicted packets from packets[index] on; return the index of the first packet not processed.

    Predicted are in-order segments as long as the last one of the slow path, and bare acknowledgements. The receive hot
    path.
    """
    receiver = c.receiver
    if c.state is not TcpState.ESTABLISHED or not c.agreed.timestamps or receiver.fin_seq >= 0:
        return index
    packet = packets[index]
    # A hole means blocks to report and acknowledgements to repeat: the fast path does neither.
    if len(packet) == receiver.run_size and packet[4:44] == receiver.run_prefix and not receiver.rx.waiting:
        return _data_run(c, packets, index, now)
    # Loss recovery then needs each acknowledgement, in order.
    if not c.recovery.is_orderly:
        return index
    if packet[4:7] == _EMPTY_TCP:
        return _ack_run(c, packets, index, now)
    return index + _single_segment(c, packet, now)


def _data_run(c: TcpSocket, packets: list[bytes], index: int, now: float) -> int:
    """Process consecutive full segments that acknowledge nothing new."""
    receiver = c.receiver
    prefix = receiver.run_prefix
    total = receiver.run_size
    rx = receiver.rx
    # IPv6 counts everything behind its own header: 32 bytes of TCP with timestamps, then data.
    size = (prefix[0] << 8 | prefix[1]) - 32
    # Never beyond the advertised window: the slow path cuts there.
    stop = min(len(packets), index + (receiver.rcv_adv - rx.next) // size)
    end = _HEADER + size
    whole = end == total
    expected = rx.next & MASK
    # In 32 bits, as on the wire: equality needs no absolute number.
    una = c.sender.snd_una & MASK
    recent = receiver.ts_recent
    stamp = first_stamp = -1
    window = 0
    append = rx.parts.append
    unpack = _PREDICTED.unpack_from
    begin = index
    while index < stop:
        packet = packets[index]
        # From the payload's length to the ports: one comparison checks connection, protocol and length.
        if len(packet) != total or packet[4:44] != prefix:
            break
        seq, ack, bits, window_now, word, tsval, _ = unpack(packet, _AT)
        # PSH has no effect on a reader that gets all there is anyway, and must not end a run. Any other flag ends it.
        if seq != expected or ack != una or bits | _PSH != _BITS_DATA or word != _OPTION_WORD:
            break
        if tsval != stamp:
            # PAWS, RFC 7323 section 5.2, once for each new stamp: within a batch most are equal.
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
        # RFC 7323 4.3: the first segment's timestamp is echoed, so that the peer's sample includes our delay.
        receiver.record_in_order(count, first_stamp, now)
        # RFC 9293 3.10.7.4: a window is newer by its segment's number (`Sender.is_newer_window`, whose second half
        # holds for every acknowledgement of SND.UNA). An acknowledgement sent later may have overtaken this data.
        last = rx.next + (count - 1) * size
        if last >= c.sender.snd_wl1:
            _update_window(c, window, last, c.sender.snd_una)
        receiver.received_run(count, count * size, now)
        _data_arrived(c)
    return index


def _ack_run(c: TcpSocket, packets: list[bytes], index: int, now: float) -> int:
    """Process bare acknowledgements of new data: only the last of a run needs processing."""
    receiver = c.receiver
    sender = c.sender
    expected = receiver.rx.next & MASK
    una = sender.snd_una & MASK
    # More than this would acknowledge data never sent: the slow path challenges it (RFC 5961 section 5.2).
    outstanding = sender.snd_nxt - sender.snd_una
    key = c.key
    # Progress of the run, counted from SND.UNA: differences survive the wrap of the numbers.
    best = 0
    window = -1
    echo = taken_echo = -1
    stamp = receiver.ts_recent
    begin = index
    for packet in packets[index:]:
        if packet[4:7] != _EMPTY_TCP or packet[8:44] != key or len(packet) < _HEADER:
            break
        seq, ack, bits, window_now, word, tsval, echo = _PREDICTED.unpack_from(packet, _AT)
        gain = (ack - una) & MASK
        # Each has to acknowledge more than the one before. An equal one may be a duplicate that counts towards a loss,
        # and a smaller one was overtaken: both need the slow path.
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
        receiver.record_in_order(index - begin, stamp, now)
        _acknowledged(c, sender.snd_una + best, (), taken_echo, now)
        if receiver.rx.next >= sender.snd_wl1:  # as in `_data_run`
            _update_window(c, window, receiver.rx.next, sender.snd_una)
        c.host.mark_ready(c)
    return index


def _single_segment(c: TcpSocket, packet: bytes, now: float) -> bool:
    """Process a single in-order segment that may also acknowledge data; False when it needs the slow path.

    Interactive and two-way traffic consists of such segments; the slow path costs three times as much.
    """
    end = ip.HEADER_SIZE + (packet[4] << 8 | packet[5])
    # The sender states its length; the tunnel's padding follows it.
    if end > len(packet) or end <= _HEADER or packet[6] != ip.PROTOCOL_TCP:
        return False
    receiver = c.receiver
    sender = c.sender
    rx = receiver.rx
    seq, ack, bits, window, word, tsval, tsecr = _PREDICTED.unpack_from(packet, _AT)
    una = sender.snd_una
    gain = (ack - una) & MASK
    if seq != rx.next & MASK or bits | _PSH != _BITS_DATA or word != _OPTION_WORD or rx.waiting:
        return False
    outstanding = sender.snd_nxt - una
    if gain > outstanding or (tsval - receiver.ts_recent) & MASK >= HALF or end - _HEADER > receiver.rcv_adv - rx.next:
        return False
    receiver.record_in_order(1, tsval, now)
    if gain:
        una += gain
        # All of it: the answer to a request.
        if gain != outstanding or not c.recovery.on_full_ack(now):
            _acknowledged(c, una, (), tsecr, now)
        elif sender.awaits_writable:
            sender.await_writable(False)
            c.host.mark_touched(c)
    if rx.next >= sender.snd_wl1:  # as in `_data_run`
        _update_window(c, window, rx.next, una)
    receiver.receive_segment(packet, _HEADER, end, now)
    _data_arrived(c)
    return True


# The slow path


def on_segment(c: TcpSocket, packet: bytes, segment: Segment, now: float) -> None:
    """Process any segment of this connection: the steps of RFC 9293 3.10.7.4 in their order."""
    receiver = c.receiver
    receiver.count()
    c.host.mark_ready(c)
    if c.state is TcpState.SYN_SENT:
        _in_syn_sent(c, segment, now)
        return
    # First, sequence numbers; RFC 7323 5.3 puts PAWS before them.
    seq = nearest(receiver.rx.next, segment.seq)
    times = segment.options.timestamps if c.agreed.timestamps else None
    # RFC 7323 section 5.3, R1: not for a RST, as its sender may have forgotten the connection and its stamps.
    if times is not None and not segment.flags & tcp.RST and receiver.fails_paws(times[0], now):
        receiver.request_ack()
        return
    if not receiver.is_acceptable(seq, segment):
        _reject_unacceptable(c, seq, segment, now)
        return
    # Second, RST.
    if segment.flags & tcp.RST:
        _on_reset(c, seq, now)
        return
    # Third would be security labels, which are not in use. Fourth, SYN; RFC 5961 section 4: whatever its number. A
    # restarted peer will answer our acknowledgement with a RST.
    if segment.flags & tcp.SYN:
        receiver.challenge(now)
        return
    # Fifth, the acknowledgement. RFC 9293 section 3.10.7.4: a segment without one is dropped, which is why nothing of
    # it was applied so far.
    if not segment.flags & tcp.ACK:
        return
    receiver.heard(now)
    if times is not None:
        receiver.update_ts_recent(seq, times[0], now)
    if not _take_ack(c, seq, segment, now) or c.state is TcpState.CLOSED:
        return
    # Sixth, urgent data, is ignored: no current application uses it. RFC 9293 section 3.8.5 keeps the urgent pointer
    # for old programs and asks new ones not to use it; its data is delivered in line. Seventh and eighth, text and FIN.
    if segment.payload or segment.flags & tcp.FIN:
        _take_payload(c, seq, segment, now)
        receiver.predict(packet, segment)


def _in_syn_sent(c: TcpSocket, segment: Segment, now: float) -> None:
    """Process a segment in SYN-SENT (RFC 9293 3.10.7.3)."""
    flags = segment.flags
    acked = bool(flags & tcp.ACK)
    # Half-open: the other end has a connection that we do not have. The reset makes it forget that, and our
    # retransmitted SYN then finds it ready (RFC 9293 section 3.5.1).
    if acked and segment.ack != (c.sender.iss + 1) & MASK:
        if not flags & tcp.RST:
            c.host.send_control(c.remote, stray_reset(c.local, c.remote, segment))
        return
    if flags & tcp.RST:
        if acked:
            c.fail(StackError("refused"))
        return
    if not flags & tcp.SYN:
        return
    # RFC 9293 section 3.10.7.3, its fourth step: a SYN, as an answer to ours or in a simultaneous open.
    handshake.read_offer(c, segment, now)
    if acked:
        handshake.established(c, now)
        c.sender.begin(segment.seq, segment.window)  # again, with the acknowledgement that counts now
        c.receiver.request_ack()
        if segment.payload:
            _take_payload(c, segment.seq + 1, segment, now)
    else:
        c.transition(TcpEvent.SYN_ACCEPTED)  # simultaneous open (RFC 9293 figure 8)
        c.timers.send_syn(now)


def _reject_unacceptable(c: TcpSocket, seq: int, segment: Segment, now: float) -> None:
    """Reject a segment outside the window: old data, a keepalive probe, or an attack.

    All get an acknowledgement, except a RST.
    """
    receiver = c.receiver
    if segment.flags & tcp.RST:
        return
    if c.state is TcpState.SYN_RECEIVED and segment.flags & tcp.SYN and segment.seq == receiver.irs & MASK:
        if segment.flags & tcp.ACK and not c.passive:
            _take_ack(c, seq, segment, now)  # simultaneous open (RFC 9293 figure 8)
            receiver.request_ack()
        else:
            c.timers.send_syn(now)  # our SYN-ACK was lost
        return
    if segment.flags & tcp.SYN:
        receiver.challenge(now)
        return
    # A peer's probe keeps the connection alive; a forged number in a SYN or RST must not.
    if segment.flags & tcp.ACK and c.state in SYNCHRONIZED:
        receiver.heard(now)
    # Our acknowledgement was lost, or the peer timed out too early: a D-SACK (RFC 2883) reports which.
    receiver.on_duplicate_data(seq, len(segment.payload))
    if c.state is TcpState.TIME_WAIT and segment.flags & tcp.FIN:
        c.begin_time_wait(now)  # the peer missed our last acknowledgement: repeat it and restart the wait
    receiver.request_ack()


def _on_reset(c: TcpSocket, seq: int, now: float) -> None:
    """Process a RST. RFC 5961 section 3: only the exact number resets; others in the window are challenged."""
    # Otherwise any number in the window would end the connection: an attacker needs one guess in 2**32 instead of one
    # in a thousand, with a window of 4 MiB. A genuine peer repeats its RST with the number of our challenge.
    if seq != c.receiver.rx.next:
        c.receiver.challenge(now)
        return
    # Both sides had finished: the reset discards nothing, and is no error for an application that closed.
    if c.state in (TcpState.TIME_WAIT, TcpState.LAST_ACK, TcpState.CLOSING):
        c.fail(None)
    else:
        c.fail(StackError("refused" if c.state is TcpState.SYN_RECEIVED and not c.passive else "reset"))


def _take_ack(c: TcpSocket, seq: int, segment: Segment, now: float) -> bool:
    """Process the acknowledgement: step five of RFC 9293 3.10.7.4. Returns False when the segment is to be dropped."""
    sender = c.sender
    ack = nearest(sender.snd_una, segment.ack)
    if c.state is TcpState.SYN_RECEIVED:
        # RFC 9293 section 3.10.7.4: it acknowledges data never sent.
        if ack != sender.iss + 1:
            c.host.send_control(c.remote, stray_reset(c.local, c.remote, segment))
            return False
        handshake.established(c, now)
        _update_window(c, segment.window, seq, ack)
        return True
    # RFC 5961 section 5.2. The challenge shows a genuine peer our state, and an attacker nothing.
    if not sender.is_acceptable_ack(ack):
        c.receiver.challenge(now)
        return False
    if c.state is TcpState.TIME_WAIT:
        if segment.flags & tcp.FIN:
            c.begin_time_wait(now)
        return True
    # RFC 9293 section 3.10.7.4: a duplicate is ignored, the segment is not.
    if ack < sender.snd_una:
        return True  # late, but its data may be new
    # RFC 5681 section 2 has five conditions for a duplicate acknowledgement; the fifth, that something is outstanding:
    duplicate = ack == sender.snd_una and not segment.length and _scaled(c, segment.window) == sender.snd_wnd
    if ack > sender.snd_una or segment.options.sack or (duplicate and sender.in_flight):
        times = segment.options.timestamps
        echo = times[1] if times is not None and c.agreed.timestamps else -1
        blocks = segment.options.sack if c.agreed.sack else ()
        _acknowledged(c, ack, blocks, echo, now, duplicate)
    # Section 3.10.7.4, SND.WL1 and SND.WL2: reordered segments must not bring back an old window.
    if sender.is_newer_window(seq, ack):
        _update_window(c, segment.window, seq, ack)
    return True


def _take_payload(c: TcpSocket, seq: int, segment: Segment, now: float) -> None:
    """Process the text and the FIN: steps seven and eight."""
    # A peer sends no data after its FIN; RFC 9293 ignores the text.
    if c.state not in RECEIVING:
        return
    receiver = c.receiver
    payload: memoryview | bytes = segment.payload
    end = seq + len(payload)
    if end > receiver.rcv_adv:
        # A probe of our window (RFC 9293 section 3.8.6.1), or a peer that ignores the window.
        payload = receiver.trim_to_window(seq, payload)  # a FIN behind the removed bytes is removed, too
    elif segment.flags & tcp.FIN:
        receiver.set_fin(end)
    if payload and receiver.receive(seq, payload, now):
        _data_arrived(c)
    # A FIN that arrives early waits in `fin_seq` for the hole to close.
    if receiver.fin_seq >= 0 and receiver.rx.next == receiver.fin_seq and c.state in RECEIVING:
        receiver.receive_fin()
        c.transition(TcpEvent.FIN_ARRIVED)
        if c.state is TcpState.TIME_WAIT:
            c.begin_time_wait(now)


# Common to both paths


def _acknowledged(c: TcpSocket, ack: int, blocks: Blocks, echo: int, now: float, duplicate: bool = False) -> None:
    """Process the acknowledgement of everything below `ack`, and the SACK blocks."""
    c.recovery.on_ack(ack, blocks, echo, now, duplicate)
    sender = c.sender
    # At half, not at the first free byte: a wake-up of the writer should be worth its cost.
    if sender.awaits_writable and 2 * len(sender.queue) <= c.send_limit:
        sender.await_writable(False)
        c.host.mark_touched(c)
    if (
        sender.fin_sent
        and ack > sender.queue.end
        and c.state in (TcpState.FIN_WAIT_1, TcpState.CLOSING, TcpState.LAST_ACK)
    ):
        c.transition(TcpEvent.FIN_ACKED)
        _wait_for_fin(c, now)


def _wait_for_fin(c: TcpSocket, now: float) -> None:
    """Wait for a repeated FIN of the peer after ours was acknowledged; once the application closed, for its first
    FIN."""
    if c.state is TcpState.TIME_WAIT:
        c.begin_time_wait(now)
    elif c.state is TcpState.FIN_WAIT_2 and c.receiver.discards:
        c.timers.set_time_wait(now + c.host.settings.time_wait)


def _scaled(c: TcpSocket, window: int) -> int:
    return window << c.agreed.snd_scale


def _update_window(c: TcpSocket, window: int, seq: int, ack: int) -> None:
    """Update the window; `window` as in the header."""
    if c.sender.update_window(window << c.agreed.snd_scale, seq, ack):
        c.host.mark_ready(c)


def _data_arrived(c: TcpSocket) -> None:
    """Notify the application of in-order data, and see whether an acknowledgement is due."""
    receiver = c.receiver
    if receiver.discards:
        c.send_reset()
        # RFC 2525 section 2.17: without a reset the peer would continue to send data without a reader.
        c.fail(StackError("aborted"))
        return
    sender = c.sender
    host = c.host
    if receiver.acks_pending or sender.queue.end != sender.snd_nxt or sender.write_closed or c.recovery.scoreboard.lost:
        host.mark_ready(c)
    else:
        host.note_deadline(c)
    host.mark_touched(c)


def stray_reset(local: bytes, remote: bytes, segment: Segment) -> bytes:
    """Return the RST for a segment without a connection (RFC 9293 3.10.7.1)."""
    if segment.flags & tcp.ACK:
        # The number is the one that the segment acknowledges: its sender accepts exactly that (RFC 5961 section 3.2).
        answer = Segment(segment.port, segment.source_port, segment.ack, 0, tcp.RST, 0)
    else:
        # A SYN does not state an expected number: the reset's acknowledgement proves that it saw the SYN.
        ack = segment.seq + segment.length
        answer = Segment(segment.port, segment.source_port, 0, ack, tcp.RST | tcp.ACK, 0)
    check = ip.checksum(ip.PROTOCOL_TCP, local, remote, answer.encode())
    body = answer.encode(check)
    return ip.header(ip.PROTOCOL_TCP, local, remote, len(body)) + body
