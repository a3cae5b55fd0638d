"""dRPC: calls on one byte stream, sans I/O (docs/protocol/rpc.md#drpc).

Contains frames, packets, their order, the states of one call on either side. Call names, waiting and protobuf are
elsewhere. `PacketReader` splits bytes into packets, `IncomingCall` keeps the state and numbers the packets we send.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass

MAX_PACKET = 4 * 1024 * 1024
"Largest packet either side accepts; beyond it the peer reports `data overflow` and ends the transport."
MAX_FRAME_DATA = 64 * 1024
"Bytes of a frame; a longer packet is split."

_DONE = 0x01
_CONTROL = 0x80


class PacketKind(enum.IntEnum):
    INVOKE = 1
    MESSAGE = 2
    ERROR = 3
    CANCEL = 4
    CLOSE = 5
    CLOSE_SEND = 6
    INVOKE_METADATA = 7


class DrpcError(Exception):
    """The peer broke the framing; the transport is over."""


@dataclass(frozen=True, slots=True)
class DrpcPacket:
    kind: PacketKind
    stream: int
    message: int
    data: bytes


def encode_packet(packet: DrpcPacket) -> bytes:
    """Encode a packet as frames of at most 64 KiB, only the last marked done."""
    out = bytearray()
    data = packet.data
    for offset in range(0, max(len(data), 1), MAX_FRAME_DATA):
        part = data[offset : offset + MAX_FRAME_DATA]
        done = _DONE if offset + MAX_FRAME_DATA >= len(data) else 0
        out.append(packet.kind << 1 | done)
        out += _varint(packet.stream) + _varint(packet.message) + _varint(len(part))
        out += part
    return bytes(out)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _read_varint(buffer: bytearray, offset: int) -> tuple[int, int] | None:
    """Return (value, offset behind it), or None when more bytes are needed."""
    value = 0
    for shift in range(10):
        if offset >= len(buffer):
            return None
        byte = buffer[offset]
        offset += 1
        value |= (byte & 0x7F) << (7 * shift)
        if byte < 0x80:
            if value >= 1 << 64:
                break
            return value, offset
    raise DrpcError("varint longer than 64 bits")


@dataclass(frozen=True, slots=True)
class _Frame:
    kind: int
    stream: int
    message: int
    data: bytes
    done: bool
    control: bool


class PacketReader:
    """Splits bytes into frames and joins frames to packets, enforcing the order of ids."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._current: tuple[int, int] = (1, 1)
        self._finished = False
        self._kind = 0
        self._control = False
        self._data = bytearray()

    @property
    def buffered(self) -> int:
        """Bytes of incomplete frames and packets."""
        return len(self._buffer) + len(self._data)

    def receive_untrusted(self, data: bytes) -> Iterator[DrpcPacket]:
        """Yield the packets completed by `data`. Raises DrpcError when the framing is broken."""
        self._buffer += data
        while (frame := self._next_frame()) is not None:
            packet = self._join(frame)
            if packet is not None:
                yield packet

    def _next_frame(self) -> _Frame | None:
        buffer = self._buffer
        if len(buffer) < 4:
            return None
        numbers: list[int] = []
        offset = 1
        for _ in range(3):
            read = _read_varint(buffer, offset)
            if read is None:
                return None
            number, offset = read
            numbers.append(number)
        stream, message, size = numbers
        if size > MAX_PACKET:
            raise DrpcError("data overflow")
        if len(buffer) < offset + size:
            return None
        control = buffer[0]
        data = bytes(buffer[offset : offset + size])
        del buffer[: offset + size]
        return _Frame(control >> 1 & 0x3F, stream, message, data, bool(control & _DONE), bool(control & _CONTROL))

    def _join(self, frame: _Frame) -> DrpcPacket | None:
        ids = (frame.stream, frame.message)
        if 0 in ids:
            raise DrpcError("ids start at 1")
        if ids < self._current or (ids == self._current and self._finished):
            raise DrpcError("ids must not go back")
        if ids > self._current or not self._kind:
            # A higher id discards an unfinished packet.
            self._current, self._kind, self._control, self._finished = ids, frame.kind, False, False
            self._data.clear()
        elif frame.kind != self._kind:
            raise DrpcError("packet kind changed inside a packet")
        self._data += frame.data
        self._control |= frame.control
        if len(self._data) > MAX_PACKET:
            raise DrpcError("data overflow")
        if not frame.done:
            return None
        data, control = bytes(self._data), self._control
        self._data.clear()
        self._finished = True
        return self._packet(frame.kind, ids, data, control=control)

    @staticmethod
    def _packet(kind: int, ids: tuple[int, int], data: bytes, *, control: bool) -> DrpcPacket | None:
        if control and kind != PacketKind.CANCEL:
            return None  # unknown control packets are for later versions of the protocol
        if not PacketKind.INVOKE <= kind <= PacketKind.INVOKE_METADATA:
            raise DrpcError(f"unknown packet kind {kind}")
        return DrpcPacket(PacketKind(kind), ids[0], ids[1], data)


# ---- one call


@dataclass(frozen=True, slots=True)
class Invoked:
    """A call begins (server side). It cancels an earlier unfinished call on the same transport."""

    name: str


@dataclass(frozen=True, slots=True)
class MessageReceived:
    data: bytes


@dataclass(frozen=True, slots=True)
class SendingEnded:
    """The peer sends no more messages; ours still reach it."""


@dataclass(frozen=True, slots=True)
class Closed:
    """The peer ended the call in both directions (Close, or a soft cancel)."""


@dataclass(frozen=True, slots=True)
class CallFailed:
    code: int
    text: str


Event = Invoked | MessageReceived | SendingEnded | Closed | CallFailed


class IncomingCall:
    """State of the calls on one transport, one after another. `take_output` returns the output."""

    def __init__(self) -> None:
        self._reader = PacketReader()
        self._output = bytearray()
        self._stream = 0
        self._message = 0
        self.sending_ended = False
        "Whether we sent CloseSend, Close or Error."
        self.receiving_ended = False
        "Whether the peer's CloseSend, Close or Error arrived."
        self.finished = False
        "Whether sending is over for good."

    @property
    def buffered(self) -> int:
        """Bytes of incomplete messages."""
        return self._reader.buffered

    def take_output(self) -> bytes:
        data = bytes(self._output)
        self._output.clear()
        return data

    # ---- operations

    def invoke(self, name: str) -> None:
        """Begin a call (caller side)."""
        self._begin(self._stream + 1)
        self._send(PacketKind.INVOKE, name.encode())

    def send_message(self, data: bytes) -> None:
        """Send a message. Raises ValueError for a message over 4 MiB or after the end of sending."""
        if len(data) > MAX_PACKET:
            raise ValueError(f"payload was too big: {len(data)} > {MAX_PACKET}")
        if self.sending_ended:
            raise ValueError("the call is closed for sending")
        self._send(PacketKind.MESSAGE, data)

    def close_send(self) -> None:
        if not self.sending_ended:
            self._send(PacketKind.CLOSE_SEND, b"")
            self.sending_ended = True
            self.finished = self.receiving_ended

    def close(self) -> None:
        """End the call in both directions."""
        if not self.finished:
            self._send(PacketKind.CLOSE, b"")
            self.sending_ended = self.finished = True

    def close_answered(self) -> None:
        """Send the Close that follows a caller's single response, whatever the state (docs/protocol/rpc.md#calls)."""
        self._send(PacketKind.CLOSE, b"")
        self.sending_ended = self.finished = True

    def fail(self, code: int, text: str) -> None:
        if not self.finished:
            self._send(PacketKind.ERROR, code.to_bytes(8, "big") + text.encode())
            self.sending_ended = self.finished = True

    # ---- bytes from the peer

    def receive_untrusted(self, data: bytes) -> Iterator[Event]:
        """Yield the events of `data` for the running call. Raises DrpcError when the framing is broken."""
        for packet in self._reader.receive_untrusted(data):
            event = self._receive_packet(packet)
            if event is not None:
                yield event

    def _receive_packet(self, packet: DrpcPacket) -> Event | None:
        if packet.kind is PacketKind.INVOKE:
            if packet.stream <= self._stream:
                raise DrpcError("invoke on a stream in use")
            self._begin(packet.stream)
            try:
                return Invoked(packet.data.decode())
            except UnicodeDecodeError:
                raise DrpcError("the call's name is not UTF-8") from None
        if packet.stream != self._stream or packet.kind is PacketKind.INVOKE_METADATA:
            return None  # left over from an earlier call, or tracing data, which is not used
        if self.receiving_ended and packet.kind not in {PacketKind.CLOSE, PacketKind.ERROR, PacketKind.CANCEL}:
            return None
        if packet.kind is PacketKind.MESSAGE:
            return MessageReceived(packet.data)
        self.receiving_ended = True
        if packet.kind is PacketKind.CLOSE_SEND:
            self.finished = self.sending_ended
            return SendingEnded()
        self.sending_ended = self.finished = True
        if packet.kind is PacketKind.ERROR:
            return _failure(packet.data)
        return Closed()

    # ---- internals

    def _begin(self, stream: int) -> None:
        self._stream, self._message = stream, 0
        self.sending_ended = self.receiving_ended = self.finished = False

    def _send(self, kind: PacketKind, data: bytes) -> None:
        self._message += 1
        self._output += encode_packet(DrpcPacket(kind, self._stream, self._message, data))


def _failure(data: bytes) -> CallFailed:
    if len(data) < 8:
        return CallFailed(0, data.decode(errors="replace"))
    return CallFailed(int.from_bytes(data[:8], "big"), data[8:].decode(errors="replace"))
