"""yamux: many byte streams in one connection, sans I/O (docs/protocol/rpc.md#yamux).

Contains frames, stream states, credit, the opening handshake. Timers, sockets and waiting are in rpc/mux.py. Pass
received bytes to `Yamux.receive_untrusted`, send bytes from `Yamux.take_output`; the events report what happened.
"""

from __future__ import annotations

import enum
import struct
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

_HEADER = struct.Struct(">BBHII")
HEADER_SIZE = _HEADER.size

INITIAL_WINDOW = 256 * 1024
"Credit of each direction of a new stream, and the largest window (DefaultConfig)."
BACKLOG = 256
"Streams opened by one side and not yet acknowledged by the other."
MAX_ANSWERS = 1024
"Pongs and resets (ours) queued for a peer; a peer that requests more without reading would fill memory."
MAX_FRAME_BODY = 64 * 1024
"""Bytes of a frame's body (ours): the protocol allows a whole window. Smaller frames share the connection and stay
within every message size limit."""


class FrameType(enum.IntEnum):
    DATA = 0
    WINDOW_UPDATE = 1
    PING = 2
    GO_AWAY = 3


class Flag(enum.IntFlag):
    SYN = 1
    ACK = 2
    FIN = 4
    RST = 8


_TYPES = tuple(FrameType)
_FLAGS = tuple(map(Flag, range(16)))
"By number: making a flag, and operations on it, cost more than the rest of a frame."
_SYN, _ACK, _FIN, _RST = map(int, Flag)


class GoAwayCode(enum.IntEnum):
    NORMAL = 0
    PROTOCOL_ERROR = 1
    INTERNAL_ERROR = 2


class YamuxError(Exception):
    """The peer broke the protocol; the session is over. `code` is for GoAway."""

    def __init__(self, text: str, code: GoAwayCode = GoAwayCode.PROTOCOL_ERROR) -> None:
        super().__init__(text)
        self.code = code


@dataclass(frozen=True, slots=True)
class YamuxFrame:
    type: FrameType
    flags: Flag
    stream: int
    length: int
    "Data: size of the body. WindowUpdate: added credit. Ping: its id. GoAway: its code."
    body: bytes = b""


def encode_frame(frame: YamuxFrame) -> bytes:
    return _HEADER.pack(0, frame.type, frame.flags, frame.stream, frame.length) + frame.body


class YamuxFrameReader:
    """Splits a byte stream into frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def receive_untrusted(self, data: bytes) -> Iterator[YamuxFrame]:
        """Yield the frames completed by `data`. Raises YamuxError for an unknown version or type or an oversized
        body."""
        self._buffer += data
        offset = 0
        try:
            while len(self._buffer) - offset >= HEADER_SIZE:
                version, kind, flags, stream, length = _HEADER.unpack_from(self._buffer, offset)
                if version != 0 or kind > FrameType.GO_AWAY:
                    raise YamuxError(f"unknown frame: version {version}, type {kind}")
                size = length if kind == FrameType.DATA else 0
                if size > INITIAL_WINDOW:
                    raise YamuxError(f"data frame of {size} bytes exceeds every window")
                end = offset + HEADER_SIZE + size
                if len(self._buffer) < end:
                    break
                body = bytes(self._buffer[offset + HEADER_SIZE : end])
                offset = end
                yield YamuxFrame(_TYPES[kind], _FLAGS[flags & 0xF], stream, length, body)
        finally:
            del self._buffer[:offset]


# ---- events


@dataclass(frozen=True, slots=True)
class StreamOpened:
    """The peer opened a stream; answer with `accept` or `reset`."""

    stream: int


@dataclass(frozen=True, slots=True)
class StreamAccepted:
    """The peer acknowledged a stream of ours."""

    stream: int


@dataclass(frozen=True, slots=True)
class DataReceived:
    stream: int
    data: bytes


@dataclass(frozen=True, slots=True)
class WindowOpened:
    """The peer gave credit; a blocked sender may continue."""

    stream: int


@dataclass(frozen=True, slots=True)
class YamuxSendingEnded:
    """The peer half-closed the stream."""

    stream: int


@dataclass(frozen=True, slots=True)
class StreamReset:
    stream: int


@dataclass(frozen=True, slots=True)
class YamuxPingAnswered:
    id: int


@dataclass(frozen=True, slots=True)
class GoAwayReceived:
    """We may open no further streams; live ones continue when the code is NORMAL."""

    code: int


Event = (
    StreamOpened
    | StreamAccepted
    | DataReceived
    | WindowOpened
    | YamuxSendingEnded
    | StreamReset
    | YamuxPingAnswered
    | GoAwayReceived
)


class YamuxState(enum.Enum):
    OPEN = "open"
    LOCAL_CLOSED = "local closed"
    REMOTE_CLOSED = "remote closed"
    CLOSED = "closed"


class _Fin(enum.Enum):
    SENT = "fin sent"
    RECEIVED = "fin received"


_NEXT_STATE: dict[tuple[YamuxState, _Fin], YamuxState] = {
    (YamuxState.OPEN, _Fin.SENT): YamuxState.LOCAL_CLOSED,
    (YamuxState.OPEN, _Fin.RECEIVED): YamuxState.REMOTE_CLOSED,
    (YamuxState.LOCAL_CLOSED, _Fin.RECEIVED): YamuxState.CLOSED,
    (YamuxState.REMOTE_CLOSED, _Fin.SENT): YamuxState.CLOSED,
}


@dataclass(slots=True)
class _Stream:
    id: int
    ours: bool
    acknowledged: bool = False
    state: YamuxState = YamuxState.OPEN
    send_credit: int = INITIAL_WINDOW
    receive_window: int = INITIAL_WINDOW
    unread: int = field(default=0)
    "Bytes delivered to the application and not yet consumed."


class Yamux:
    """End of a session. `client` is the side that dialled (odd stream ids)."""

    def __init__(self, *, client: bool) -> None:
        self._next_id = 1 if client else 2
        self._next_ping = 0
        self._reader = YamuxFrameReader()
        self._streams: dict[int, _Stream] = {}
        self._unaccepted: set[int] = set()
        self._unacknowledged: set[int] = set()
        self._output: deque[tuple[bytes, bool]] = deque()
        "Frames, and whether each is an answer."
        self._output_size = self._answers = 0
        self.queued = 0
        "Frames queued for the peer so far."
        self.frames = 0
        "Frames received so far: a driver counts its work by them."
        self._peer_gone_away = False

    # ---- state for the driver

    def take_output(self, limit: int) -> bytes:
        """Return the next bytes for the connection: whole frames, about `limit` bytes (one frame at least); b"" when
        empty."""
        chunk = bytearray()
        while self._output and (not chunk or len(chunk) + len(self._output[0][0]) <= limit):
            data, is_answer = self._output.popleft()
            chunk += data
            self._answers -= is_answer
        self._output_size -= len(chunk)
        return bytes(chunk)

    @property
    def output_size(self) -> int:
        return self._output_size

    @property
    def may_open(self) -> bool:
        """False while 256 of our streams wait for their acknowledgement (a driver waits for StreamAccepted)."""
        return len(self._unacknowledged) < BACKLOG and not self._peer_gone_away

    @property
    def gone_away(self) -> bool:
        return self._peer_gone_away

    def is_live(self, stream: int) -> bool:
        return stream in self._streams

    def is_ours(self, stream: int) -> bool:
        """Return whether this side opened the (live) stream."""
        live_stream = self._streams.get(stream)
        return live_stream is not None and live_stream.ours

    def credit(self, stream: int) -> int:
        """Return the bytes the peer accepts now; 0 for an ended stream."""
        live_stream = self._streams.get(stream)
        return live_stream.send_credit if live_stream else 0

    # ---- operations

    def open_stream(self) -> int:
        """Open a stream; data may follow immediately."""
        stream = _Stream(self._next_id, ours=True)
        self._next_id += 2
        self._streams[stream.id] = stream
        self._unacknowledged.add(stream.id)
        self._emit(YamuxFrame(FrameType.WINDOW_UPDATE, Flag.SYN, stream.id, 0))
        return stream.id

    def accept(self, stream: int) -> None:
        """Acknowledge a stream the peer opened. Promptly: after 75 s without it the peer ends the session."""
        live_stream = self._streams.get(stream)
        if live_stream and not live_stream.acknowledged:
            live_stream.acknowledged = True
            self._unaccepted.discard(stream)
            self._emit(YamuxFrame(FrameType.WINDOW_UPDATE, Flag.ACK, stream, 0))

    def send(self, stream: int, data: memoryview) -> int:
        """Queue as much of `data` as credit allows (one frame at most); return the size."""
        live_stream = self._sendable(stream)
        size = min(len(data), live_stream.send_credit, MAX_FRAME_BODY)
        if size:
            live_stream.send_credit -= size
            self._emit(YamuxFrame(FrameType.DATA, _FLAGS[0], stream, size, bytes(data[:size])))
        return size

    def consumed(self, stream: int, size: int) -> bool:
        """Record that the application took `size` bytes; credit is returned when half a window is owed. Return whether
        it was."""
        live_stream = self._streams.get(stream)
        if not live_stream:
            return False
        live_stream.unread -= size
        delta = (INITIAL_WINDOW - live_stream.unread) - live_stream.receive_window
        if delta >= INITIAL_WINDOW // 2:
            live_stream.receive_window += delta
            self._emit(YamuxFrame(FrameType.WINDOW_UPDATE, _FLAGS[0], stream, delta))
            return True
        return False

    def close_sending(self, stream: int) -> None:
        """Half-close the stream; does nothing when that was done before."""
        live_stream = self._streams.get(stream)
        if live_stream and (live_stream.state, _Fin.SENT) in _NEXT_STATE:
            self._emit(YamuxFrame(FrameType.WINDOW_UPDATE, Flag.FIN, stream, 0))
            self._move(live_stream, _Fin.SENT)

    def reset(self, stream: int) -> None:
        """Abort a stream in both directions."""
        if stream in self._streams:
            self._answer(YamuxFrame(FrameType.WINDOW_UPDATE, Flag.RST, stream, 0))
            self._forget(stream)

    def ping(self) -> int:
        """Send a ping; PingAnswered will carry the returned id."""
        self._next_ping = (self._next_ping + 1) & 0xFFFFFFFF
        self._emit(YamuxFrame(FrameType.PING, Flag.SYN, 0, self._next_ping))
        return self._next_ping

    def go_away(self, code: GoAwayCode) -> None:
        self._emit(YamuxFrame(FrameType.GO_AWAY, Flag(0), 0, code))

    # ---- bytes from the peer

    def receive_untrusted(self, data: bytes) -> list[Event]:
        """Return the events of `data`. Raises YamuxError when the session cannot continue."""
        events: list[Event] = []
        for frame in self._reader.receive_untrusted(data):
            self._receive_frame(frame, events)
        return events

    def _receive_frame(self, frame: YamuxFrame, events: list[Event]) -> None:
        self.frames += 1
        flags = int(frame.flags)
        if self._answers > MAX_ANSWERS:
            raise YamuxError("the peer sends requests without reading the answers")
        if frame.type is FrameType.PING:
            if flags & _SYN:
                self._answer(YamuxFrame(FrameType.PING, Flag.ACK, 0, frame.length))
            else:
                events.append(YamuxPingAnswered(frame.length))
            return
        if frame.type is FrameType.GO_AWAY:
            self._peer_gone_away = True
            if frame.length != GoAwayCode.NORMAL:
                raise YamuxError(f"the peer ended the session with code {frame.length}", GoAwayCode.NORMAL)
            events.append(GoAwayReceived(frame.length))
            return
        if flags & _SYN and not self._receive_open(frame.stream, events):
            return
        stream = self._streams.get(frame.stream)
        if stream is None:
            return  # late frames of an ended stream are read and dropped
        if flags & _ACK:
            self._receive_acknowledgement(stream, events)
        if frame.type is FrameType.DATA:
            self._receive_data(stream, frame.body, events)
        else:
            stream.send_credit += frame.length
            if frame.length:
                events.append(WindowOpened(stream.id))
        if flags & _FIN:
            self._move(stream, _Fin.RECEIVED)
            events.append(YamuxSendingEnded(stream.id))
        if flags & _RST:
            self._forget(stream.id)
            events.append(StreamReset(stream.id))

    def _receive_open(self, stream: int, events: list[Event]) -> bool:
        if stream == 0 or stream in self._streams:
            raise YamuxError(f"stream {stream} was opened twice")
        if len(self._unaccepted) >= BACKLOG:
            self._answer(YamuxFrame(FrameType.WINDOW_UPDATE, Flag.RST, stream, 0))
            return False
        self._streams[stream] = _Stream(stream, ours=False)
        self._unaccepted.add(stream)
        events.append(StreamOpened(stream))
        return True

    def _receive_acknowledgement(self, stream: _Stream, events: list[Event]) -> None:
        if stream.ours and not stream.acknowledged:
            stream.acknowledged = True
            self._unacknowledged.discard(stream.id)
            events.append(StreamAccepted(stream.id))

    def _receive_data(self, stream: _Stream, body: bytes, events: list[Event]) -> None:
        if len(body) > stream.receive_window:
            raise YamuxError(f"stream {stream.id} overran its window")
        stream.receive_window -= len(body)
        stream.unread += len(body)
        if body:
            events.append(DataReceived(stream.id, body))

    # ---- internals

    def _sendable(self, stream: int) -> _Stream:
        live_stream = self._streams.get(stream)
        if live_stream is None or live_stream.state not in {YamuxState.OPEN, YamuxState.REMOTE_CLOSED}:
            raise ValueError(f"stream {stream} is closed for sending")
        return live_stream

    def _move(self, stream: _Stream, fin: _Fin) -> None:
        next_state = _NEXT_STATE.get((stream.state, fin))
        if next_state is None:
            raise YamuxError(f"{fin.value} on stream {stream.id} which is {stream.state.value}")
        stream.state = next_state
        if next_state is YamuxState.CLOSED:
            self._forget(stream.id)

    def _forget(self, stream: int) -> None:
        self._streams.pop(stream, None)
        self._unaccepted.discard(stream)
        self._unacknowledged.discard(stream)

    def _answer(self, frame: YamuxFrame) -> None:
        self._answers += 1
        self._emit(frame, is_answer=True)

    def _emit(self, frame: YamuxFrame, *, is_answer: bool = False) -> None:
        data = encode_frame(frame)
        self._output.append((data, is_answer))
        self.queued += 1
        self._output_size += len(data)
