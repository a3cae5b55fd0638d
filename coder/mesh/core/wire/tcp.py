"""TCP segments: bytes <-> values, options included.

Lives here: the layout of header and options.
Does not live here: the meaning of a segment (stack/), and the hot path's own packing of full segments
(stack/tcp/segments.py, stack/tcp/tcp_input.py): a value per segment would cost more than the rest of the loop.
Obeys: RFC 9293 section 3.1, RFC 7323 (window scale, timestamps), RFC 2018 (SACK), RFC 6994 (experimental options).
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from coder.mesh.core.errors import WireError

# In the order of their bits, the lowest first (RFC 9293 section 3.1, figure 1).
FIN, SYN, RST, PSH, ACK, URG, ECE, CWR = (1 << bit for bit in range(8))
HEADER_SIZE = 20
MAX_OPTIONS = 40
SEQUENCE_MASK = 0xFFFFFFFF

KIND_END = 0
KIND_NOP = 1
KIND_MSS = 2
KIND_WINDOW_SCALE = 3
KIND_SACK_PERMITTED = 4
KIND_SACK = 5
KIND_TIMESTAMPS = 8
# RFC 6994: two kinds are shared by all experiments, which differ by sixteen bits behind the length.
KIND_EXPERIMENT = 253
SAME_STACK_ID = 0x436D
"""Our experiment identifier (RFC 6994), sent in SYNs only. A sender of this option does not verify inner checksums (the
tunnel has authenticated every byte) and accepts inner packets up to the size it carries. Other stacks ignore unknown
options."""

# RFC 7323 section 2.3: a window of more than 2**30 could not be distinguished from an old one in a space of 2**32.
MAX_WINDOW_SCALE = 14
# RFC 2018 section 3: forty bytes of options hold four, or three together with timestamps.
MAX_SACK_BLOCKS = 4

_HEADER = Struct("!HHIIBBHHH")
_TIMESTAMPS = Struct("!II")
_BLOCK = Struct("!II")
_SHORT = Struct("!H")
_SAME_STACK = Struct("!HH")

ESTABLISHED_OPTIONS = b"\x01\x01\x08\x0a"
"""NOP, NOP, then kind and length of timestamps: the alignment of every stack, which header prediction compares."""


@dataclass(frozen=True, slots=True)
class Options:
    """Known options; unknown ones are skipped."""

    mss: int | None = None
    window_scale: int | None = None
    sack_permitted: bool = False
    timestamps: tuple[int, int] | None = None
    "(value, echo reply)."
    sack: tuple[tuple[int, int], ...] = ()
    "Blocks [left, right), 32-bit sequence numbers, the most recent first."
    same_stack: int | None = None
    "The largest inner packet a node with the same stack accepts; see SAME_STACK_ID."

    def encode(self) -> bytes:
        """Return the options padded to a multiple of four, with NOPs in front of aligned ones."""
        out = b""
        if self.mss is not None:
            out += bytes((KIND_MSS, 4)) + _SHORT.pack(self.mss)
        if self.sack_permitted:
            # Two bytes that pad the ten of timestamps; alone, two NOPs do (RFC 7323 appendix A).
            out += bytes((KIND_SACK_PERMITTED, 2)) if self.timestamps else bytes((1, 1, KIND_SACK_PERMITTED, 2))
        if self.timestamps is not None:
            out += b"" if self.sack_permitted else b"\x01\x01"
            out += bytes((KIND_TIMESTAMPS, 10)) + _TIMESTAMPS.pack(*self.timestamps)
        if self.window_scale is not None:
            out += bytes((KIND_NOP, KIND_WINDOW_SCALE, 3, self.window_scale))
        if self.same_stack is not None:
            out += b"\x01\x01" + bytes((KIND_EXPERIMENT, 6)) + _SAME_STACK.pack(SAME_STACK_ID, self.same_stack)
        if self.sack:
            # Four bytes of NOPs, kind and length around eight for each block.
            blocks = self.sack[: (MAX_OPTIONS - len(out) - 4) // 8]
            out += bytes((KIND_NOP, KIND_NOP, KIND_SACK, 2 + 8 * len(blocks)))
            out += b"".join(_BLOCK.pack(*block) for block in blocks)
        return out


@dataclass(frozen=True, slots=True)
class Segment:
    """A TCP segment."""

    source_port: int
    port: int
    "Destination port."
    seq: int
    ack: int
    flags: int
    window: int
    "Window field of the header, not scaled."
    options: Options = Options()
    payload: bytes | memoryview = b""
    urgent: int = 0
    checksum: int = 0

    def encode(self, checksum: int = 0) -> bytes:
        """Return the segment with the given checksum field."""
        options = self.options.encode()
        head = _HEADER.pack(
            self.source_port,
            self.port,
            self.seq & SEQUENCE_MASK,
            self.ack & SEQUENCE_MASK,
            # Words in the upper half of a byte: divided by four, shifted by four.
            (HEADER_SIZE + len(options)) << 2,
            self.flags,
            self.window,
            checksum,
            self.urgent,
        )
        return head + options + self.payload

    @property
    def length(self) -> int:
        """Return the sequence numbers it takes: payload, SYN and FIN (RFC 9293: SEG.LEN)."""
        # RFC 9293 section 3.4: both occupy a sequence number, to be acknowledged and retransmitted like data.
        return len(self.payload) + (self.flags & SYN != 0) + (self.flags & FIN != 0)


def parse_untrusted(data: bytes, start: int = 0, end: int | None = None) -> Segment:
    """Parse the segment in data[start:end]. Raises WireError when the header or an option exceeds it.

    The payload is a view.
    """
    stop = len(data) if end is None else end
    if stop - start < HEADER_SIZE:
        raise WireError("short_segment")
    source_port, port, seq, ack, offset, flags, window, checksum, urgent = _HEADER.unpack_from(data, start)
    # In words, in the upper half of the byte; the lower half is reserved and ignored (RFC 9293 section 3.1).
    size = (offset >> 4) * 4
    if size < HEADER_SIZE or start + size > stop:
        raise WireError("bad_data_offset")
    options = parse_options_untrusted(data[start + HEADER_SIZE : start + size]) if size > HEADER_SIZE else _NONE
    # The tunnel's padding lies behind `end`, which the IP header gives.
    payload = memoryview(data)[start + size : stop]
    return Segment(source_port, port, seq, ack, flags, window, options, payload, urgent, checksum)


_NONE = Options()


def parse_options_untrusted(data: bytes) -> Options:
    """Return the known options.

    Raises WireError when one runs over the end or has the wrong length (RFC 9293 3.1 allows us to drop it).
    """
    # The options of all segments of an established connection: worth a comparison in front of the loop. RFC 7323
    # appendix A: the layout of every stack; any other order is as valid and goes through the loop.
    if len(data) == 12 and data.startswith(ESTABLISHED_OPTIONS):
        return Options(timestamps=_TIMESTAMPS.unpack_from(data, 4))
    values: dict[int, bytes] = {}
    at = 0
    while at < len(data):
        kind = data[at]
        if kind == KIND_END:
            break
        if kind == KIND_NOP:
            at += 1
            continue
        # A length below two would never advance: RFC 9293 section 3.1 requires refusing it, and a loop here would hang.
        size = data[at + 1] if at + 1 < len(data) else 0
        if size < 2 or at + size > len(data):
            raise WireError("bad_option")
        # The first of a kind counts; RFC 9293 does not say which, and a second would be an attempt at ambiguity.
        values.setdefault(kind, data[at + 2 : at + size])
        at += size
    return _read_options(values)


def _read_options(values: dict[int, bytes]) -> Options:
    def sized(kind: int, size: int) -> bytes | None:
        value = values.get(kind)
        return value if value is not None and len(value) == size else None

    mss = sized(KIND_MSS, 2)
    scale = sized(KIND_WINDOW_SCALE, 1)
    times = sized(KIND_TIMESTAMPS, 8)
    same_stack = sized(KIND_EXPERIMENT, 4)
    # A length that is no whole number of blocks: RFC 2018 section 3 has none such, so the option is ignored.
    sack = values.get(KIND_SACK, b"")
    pair = _SAME_STACK.unpack(same_stack) if same_stack else (0, 0)
    return Options(
        mss=_SHORT.unpack(mss)[0] if mss else None,
        window_scale=min(scale[0], MAX_WINDOW_SCALE) if scale else None,  # RFC 7323 2.3: larger means 14
        sack_permitted=sized(KIND_SACK_PERMITTED, 0) is not None,
        timestamps=_TIMESTAMPS.unpack(times) if times else None,
        sack=tuple(_BLOCK.iter_unpack(sack)) if len(sack) % 8 == 0 else (),
        same_stack=pair[1] if pair[0] == SAME_STACK_ID else None,
    )
