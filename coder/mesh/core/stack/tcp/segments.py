"""Packet building for a connection: bulk data straight into the superbuffer, everything else as bytes.

Lives here: headers, timestamps, checksums, the transmit hot loop.
Does not live here: what is sent and when (tcp_output.py), the general codec (wire/tcp.py).
Obeys: RFC 9293 section 3.1, RFC 7323 section 3 (timestamps), RFC 2018 section 3 (blocks).

One struct call writes header and payload of a full segment into its slot: 0.3 us. Work per batch may cost a
microsecond; work per packet may not.
"""

from __future__ import annotations

from struct import Struct

from coder.mesh.core.stack.tcp.agreement import FIRST_MSS, Agreement
from coder.mesh.core.stack.tcp.receiver import Receiver
from coder.mesh.core.stack.tcp.sendqueue import SendQueue
from coder.mesh.core.stack.tcp.sequence import MASK
from coder.mesh.core.wire import ip, tcp
from coder.mesh.core.wire.batch import HEADER, TxBuf, padded

_BARE = Struct("!IBBHHH")
_STAMPED = Struct("!IBBHHHIII")
"""Acknowledgement, offset, flags, window, checksum, urgent; option word, timestamp, echo."""
_SMALL_SEGMENT = Struct("!4sH38sIIHHIIII")
"""A whole header: version, payload size, the rest up to the ports; from the sequence number on as above."""
_BITS_SMALL = 0x8018
"""Eight words of header, PSH and ACK."""
_PAIR = Struct("!II")
_OPTION_WORD = int.from_bytes(tcp.ESTABLISHED_OPTIONS, "big")
_MAX_BLOCKS_STAMPED = 3
"""RFC 2018 section 3: forty bytes of options hold three blocks together with timestamps, four without."""
_ACK = tcp.ACK


class SegmentBuilder:
    """Builds the segments of a connection.

    Every segment carries an acknowledgement, a window and, where negotiated, an echo; the receiver supplies them.
    """

    __slots__ = (
        "_agreed",
        "_full",
        "_head",
        "_local",
        "_ports",
        "_pseudo",
        "_receiver",
        "_remote",
        "_ts_offset",
        "is_plain",
        "mss",
        "skip_checksums",
        "slot",
    )

    def __init__(
        self, local: bytes, remote: bytes, ports: bytes, ts_offset: int, agreed: Agreement, receiver: Receiver
    ) -> None:
        """Set the constant parts.

        `ports`: ours and the peer's as in a header; `ts_offset`: secret (RFC 7323 section 7).
        """
        self._local = local
        self._remote = remote
        self._ports = ports
        # One per connection: equal clocks of different connections would show that they belong to the same machine.
        self._ts_offset = ts_offset
        self._agreed = agreed
        self._receiver = receiver
        self.mss = FIRST_MSS
        "Payload bytes of a full segment."
        self.slot = 0
        "Padded bytes of a full packet."
        self.skip_checksums = False
        self.is_plain = False
        "Whether the shortest form of building a segment is possible: timestamps, no checksum."
        self._head = b""
        self._full = Struct("")
        self._pseudo = 0

    def set_skip_checksums(self, checksums: bool) -> None:
        """Set whether checksums are left out; takes effect with `update_mss`."""
        self.skip_checksums = checksums

    def update_mss(self, limit: int) -> None:
        """Set the templates for segments of at most `limit` bytes behind the fixed TCP header (options and payload)."""
        self.is_plain = self.skip_checksums and self._agreed.timestamps
        # RFC 6691: options are part of the segment's limit; the announced MSS does not include them.
        options = 12 if self._agreed.timestamps else 0
        mss = max(limit - options, 8) & ~1  # even, so that the checksum of a full payload needs no shift
        self.mss = mss
        size = tcp.HEADER_SIZE + options + mss
        # Everything in front of the sequence number, 44 bytes: it changes with the size of segments only.
        self._head = ip.header(ip.PROTOCOL_TCP, self._local, self._remote, size) + self._ports
        self.slot = padded(ip.HEADER_SIZE + size, limit + ip.HEADER_SIZE + tcp.HEADER_SIZE)
        # Padding is written with the packet: a slot still holds the batch before, and the peer must not see its bytes.
        fill = self.slot - ip.HEADER_SIZE - size
        if self.skip_checksums:
            self._full = Struct(f"!44sI{12 + options}s{mss}s{fill}x")
        else:
            self._full = Struct(f"!44sI8sH{2 + options}s{mss}s{fill}x")
        # The constant part, summed once; ports are included although they belong to the header, as they never change
        # either.
        self._pseudo = ip.ones_sum(self._local + self._remote + self._ports) + ip.PROTOCOL_TCP

    # Our clock

    def clock(self, now: float) -> int:
        """Return our timestamp value: milliseconds, the finest RFC 7323 5.4 allows, with a secret offset."""
        return (int(now * 1000) + self._ts_offset) & MASK

    def sent_time(self, echoed: int, now: float) -> float:
        """Return when an echoed timestamp was sent, rounded up to the next millisecond."""
        # The difference survives the wrap after 49 days, as long as the echo is younger than that.
        age = (self.clock(now) - echoed) & MASK
        return (int(now * 1000) - age + 1) / 1000

    # Segments

    def small_segment(self, seq: int, data: bytes, now: float) -> bytes:
        """Return a small segment with PSH, when `is_plain`: every keystroke and every small request."""
        receiver = self._receiver
        head = self._head
        return (
            _SMALL_SEGMENT.pack(
                head,
                len(data) + 32,
                head[6:],
                seq & MASK,
                receiver.rx.next & MASK,
                _BITS_SMALL,
                receiver.advertise(),
                0,
                _OPTION_WORD,
                (int(now * 1000) + self._ts_offset) & MASK,
                receiver.ts_recent,
            )
            + data
        )

    def fill(self, buf: bytearray, stride: int, queue: SendQueue, seq: int, count: int, now: float) -> int:
        """Write `count` full segments from `seq` into consecutive slots; return the next slot's offset.

        The hot loop.
        """
        mss = self.mss
        head = self._head
        pack_into = self._full.pack_into
        chunk, base = queue.at(seq)
        last = len(chunk) - mss
        first = seq - base
        offset = HEADER
        # Once for the batch: acknowledgement, window and stamp are the same for all segments of one moment.
        post = self._post(_ACK, now)
        if self.skip_checksums:
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
        # The same with a checksum: its constant part once, the payload as one large number modulo 0xFFFF, which is the
        # one's complement sum of its 16-bit words and five times as fast as adding them. The checksum lies between, at
        # 16 bytes into the header, eight behind the sequence number.
        before, behind = post[:8], post[10:]
        # 8: sequence number and ports, which with `post` are the header; the length of the pseudo header counts all.
        constant = self._pseudo + len(post) + 8 + mss + ip.ones_sum(post)
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

    def write(self, txbuf: TxBuf, offset: int, packet: bytes) -> int:
        """Put a packet into a slot with its padding; return the padded size."""
        size = padded(len(packet), self.slot)
        txbuf.buf[offset : offset + size] = packet.ljust(size, b"\0")
        return size

    def segment(self, seq: int, flags: int, data: bytes, now: float) -> bytes:
        """Return a whole packet of an established connection."""
        return self._finish(seq, self._post(flags, now), data)

    def acknowledgement(self, seq: int, now: float) -> bytes:
        """Return a packet without data, with the blocks the receiver has to report."""
        receiver = self._receiver
        stamped = self._agreed.timestamps
        # Two NOPs in front align the blocks to words (RFC 7323 appendix A).
        blocks = receiver.blocks(_MAX_BLOCKS_STAMPED if stamped else tcp.MAX_SACK_BLOCKS)
        if not blocks:
            return self.segment(seq, _ACK, b"", now)
        stamp = tcp.ESTABLISHED_OPTIONS + _PAIR.pack(self.clock(now), receiver.ts_recent) if stamped else b""
        listed = b"".join(_PAIR.pack(left & MASK, right & MASK) for left, right in blocks)
        options = stamp + bytes((tcp.KIND_NOP, tcp.KIND_NOP, tcp.KIND_SACK, 2 + len(listed))) + listed
        return self._with_options(seq, _ACK, options, receiver.advertise())

    def syn(self, seq: int, flags: int, options: bytes) -> bytes:
        """Return a SYN or SYN-ACK."""
        return self._with_options(seq, flags, options, self._receiver.advertise_unscaled())

    def reset(self, seq: int) -> bytes:
        """Return a RST without timestamps, which RFC 7323 3.2 allows in RSTs alone; its window has no meaning."""
        post = _BARE.pack(self._receiver.rx.next & MASK, 0x50, tcp.RST | tcp.ACK, 0, 0, 0)
        return self._finish(seq, post, b"")

    def _with_options(self, seq: int, flags: int, options: bytes, window: int) -> bytes:
        ack = self._receiver.rx.next & MASK
        post = _BARE.pack(ack, (tcp.HEADER_SIZE + len(options)) << 2, flags, window, 0, 0)
        return self._finish(seq, post + options, b"")

    def _post(self, flags: int, now: float) -> bytes:
        """Return everything behind the sequence number, with a zero for the checksum."""
        receiver = self._receiver
        ack = receiver.rx.next & MASK
        if self._agreed.timestamps:
            window = receiver.advertise()
            return _STAMPED.pack(ack, 0x80, flags, window, 0, 0, _OPTION_WORD, self.clock(now), receiver.ts_recent)
        return _BARE.pack(ack, 0x50, flags, receiver.advertise(), 0, 0)

    def _finish(self, seq: int, post: bytes, data: bytes) -> bytes:
        body = (seq & MASK).to_bytes(4, "big") + post + data
        size = 4 + len(body)
        # Only the length differs from the template.
        head = self._head[:4] + size.to_bytes(2, "big") + self._head[6:]
        if self.skip_checksums:
            return head + body
        # RFC 9293 section 3.1: the length in the pseudo header is that of header and data.
        check = 0xFFFF - (self._pseudo + size + ip.ones_sum(body)) % 0xFFFF
        # Sixteen bytes into the TCP header, less the four of the ports, which are in `head`.
        return head + body[:12] + check.to_bytes(2, "big") + body[14:]
