"""Server side of gRPC over HTTP/2, for unary calls: bytes in, bytes out.

Built on the sans-I/O `h2`; no sockets here. gRPC adds little: a five-byte prefix before each message, and trailers that
carry the status.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum

import h2.config
import h2.connection
import h2.events
import h2.exceptions
import h2.settings

from coder.base.errors import CoderError

MAX_MESSAGE = 256 * 1024 * 1024
"""Limit of a message in bytes; terraform itself accepts 256 MiB from a provider."""
_WINDOW = 8 * 1024 * 1024


class Status(IntEnum):
    """gRPC status codes in use."""

    OK = 0
    INTERNAL = 13
    UNIMPLEMENTED = 12


class GrpcError(CoderError):
    """The call ends with a status instead of a message."""

    def __init__(self, status: Status, message: str) -> None:
        super().__init__("grpc", message)
        self.status = status


UnaryHandler = Callable[[str, bytes], bytes]
"""Handler: (path such as `/tfplugin5.Provider/GetSchema`, request) -> response. Raises GrpcError."""


_CONFIG = h2.config.H2Configuration(
    client_side=False,
    # The peer is the terraform we started; validating its header blocks costs more than answering it.
    validate_inbound_headers=False,
    normalize_inbound_headers=False,
    validate_outbound_headers=False,
    normalize_outbound_headers=False,
)


@dataclass(slots=True)
class _Call:
    path: str
    body: bytearray = field(default_factory=bytearray)
    unsent: memoryview | None = None
    status: Status = Status.OK
    message: str = ""


class GrpcServer:
    """Connection of one client: pass received bytes in, send the output of `take_output`."""

    def __init__(self, handler: UnaryHandler) -> None:
        self._handler = handler
        self._calls: dict[int, _Call] = {}
        self._h2 = h2.connection.H2Connection(_CONFIG)
        # The only peer is local: flow control towards us would only cost round trips.
        self._h2.local_settings = h2.settings.Settings(
            client=False,
            initial_values={
                h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: _WINDOW,
                h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: 1000,
            },
        )
        self._h2.initiate_connection()
        self._h2.increment_flow_control_window(_WINDOW)
        self.closed = False

    def take_output(self) -> bytes:
        return bytes(self._h2.data_to_send())

    def receive_untrusted(self, data: bytes) -> None:
        """Process received bytes and answer complete requests. Raises CoderError `grpc_protocol`."""
        try:
            events = self._h2.receive_data(data)
        except h2.exceptions.ProtocolError as problem:
            self.closed = True
            raise CoderError("grpc_protocol", "the HTTP/2 peer broke the protocol") from problem
        for event in events:
            self._on_event(event)

    def _on_event(self, event: h2.events.Event) -> None:
        if isinstance(event, h2.events.RequestReceived):
            headers = {_text(name): _text(value) for name, value in event.headers}
            self._calls[event.stream_id] = _Call(headers.get(":path", ""))
        elif isinstance(event, h2.events.DataReceived):
            self._on_data(event)
        elif isinstance(event, h2.events.StreamEnded):
            self._answer(event.stream_id)
        elif isinstance(event, h2.events.StreamReset):
            self._calls.pop(event.stream_id, None)
        elif isinstance(event, h2.events.WindowUpdated | h2.events.RemoteSettingsChanged):
            for stream_id in list(self._calls):
                self._push(stream_id)
        elif isinstance(event, h2.events.ConnectionTerminated):
            self.closed = True

    def _on_data(self, event: h2.events.DataReceived) -> None:
        self._h2.acknowledge_received_data(event.flow_controlled_length or 0, event.stream_id)
        call = self._calls.get(event.stream_id)
        if call is None:
            return
        if len(call.body) + len(event.data or b"") > MAX_MESSAGE:
            self._calls.pop(event.stream_id)
            self._h2.reset_stream(event.stream_id)
            return
        call.body += event.data or b""

    def _answer(self, stream_id: int) -> None:
        call = self._calls.get(stream_id)
        if call is None:
            return
        try:
            response = self._handler(call.path, _unframe(bytes(call.body)))
        except GrpcError as problem:
            call.status, call.message = problem.status, problem.message
            response = b""
        call.unsent = memoryview(_frame(response) if call.status is Status.OK else b"")
        self._h2.send_headers(stream_id, [(":status", "200"), ("content-type", "application/grpc")])
        self._push(stream_id)

    def _push(self, stream_id: int) -> None:
        """Send as much of a response as the peer's window allows, then the trailers."""
        call = self._calls.get(stream_id)
        if call is None or call.unsent is None:
            return
        while len(call.unsent):
            room = min(self._h2.local_flow_control_window(stream_id), self._h2.max_outbound_frame_size)
            if room <= 0:
                return
            self._h2.send_data(stream_id, bytes(call.unsent[:room]))
            call.unsent = call.unsent[room:]
        trailers = [("grpc-status", str(int(call.status)))]
        if call.message:
            trailers.append(("grpc-message", _percent(call.message)))
        self._h2.send_headers(stream_id, trailers, end_stream=True)
        del self._calls[stream_id]


def _text(value: bytes | str) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _frame(message: bytes) -> bytes:
    return struct.pack(">BI", 0, len(message)) + message


def _unframe(body: bytes) -> bytes:
    if len(body) < 5 or body[0] != 0 or struct.unpack(">I", body[1:5])[0] != len(body) - 5:
        raise GrpcError(Status.INTERNAL, "malformed request")
    return body[5:]


def _percent(text: str) -> str:
    # grpc-message is percent-encoded UTF-8 (gRPC over HTTP/2, section on status messages)
    return "".join(chr(b) if 0x20 <= b < 0x7F and b != 0x25 else f"%{b:02X}" for b in text.encode())
