"""The gRPC server with h2's own client: calls, flow control, errors, foreign bytes."""

from __future__ import annotations

import struct

import h2.config
import h2.connection
import h2.events
import pytest

from coder.base.errors import CoderError
from coder.provisionerd.terraform.provider.grpc import GrpcError, GrpcServer, Status


class Client:
    """Client of a server object, with a small window on request."""

    def __init__(self, server: GrpcServer) -> None:
        self.server = server
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
        self.h2.initiate_connection()
        self.bodies: dict[int, bytearray] = {}
        self.trailers: dict[int, dict[str, str]] = {}

    def call(self, path: str, message: bytes) -> int:
        stream = self.h2.get_next_available_stream_id()
        headers = [(":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "x"), ("te", "trailers")]
        self.h2.send_headers(stream, headers)
        data = struct.pack(">BI", 0, len(message)) + message
        for start in range(0, len(data), 16384):
            self.h2.send_data(stream, data[start : start + 16384])
        self.h2.end_stream(stream)
        return stream

    def pump(self, *, acknowledge: bool = True) -> None:
        for _ in range(1000):
            out = self.h2.data_to_send()
            if out:
                self.server.receive_untrusted(out)
            back = self.server.take_output()
            if not out and not back:
                return
            for event in self.h2.receive_data(back):
                self._take(event, acknowledge)

    def _take(self, event: h2.events.Event, acknowledge: bool) -> None:
        if isinstance(event, h2.events.DataReceived):
            self.bodies.setdefault(event.stream_id, bytearray()).extend(event.data)
            if acknowledge:
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, h2.events.TrailersReceived):
            self.trailers[event.stream_id] = {_text(name): _text(value) for name, value in event.headers}


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _echo(path: str, body: bytes) -> bytes:
    if path == "/bad":
        raise GrpcError(Status.INTERNAL, "it broke: 100% ünlucky")
    return path.encode() + b":" + body


def test_concurrent_calls() -> None:
    client = Client(GrpcServer(_echo))
    first, second = client.call("/a", b"1"), client.call("/b", b"2")
    client.pump()
    assert bytes(client.bodies[first]) == b"\x00\x00\x00\x00\x04/a:1"
    assert bytes(client.bodies[second][5:]) == b"/b:2"
    assert client.trailers[first] == {"grpc-status": "0"}


def test_large_response_waits_for_window() -> None:
    client = Client(GrpcServer(lambda _path, _body: b"x" * 200_000))
    stream = client.call("/a", b"")
    client.pump(acknowledge=False)
    assert len(client.bodies[stream]) == 65535
    assert stream not in client.trailers
    client.h2.acknowledge_received_data(65535, stream)
    client.pump()
    assert len(client.bodies[stream]) == 200_005
    assert client.trailers[stream] == {"grpc-status": "0"}


def test_error_becomes_a_status() -> None:
    client = Client(GrpcServer(_echo))
    stream = client.call("/bad", b"")
    client.pump()
    assert client.trailers[stream] == {"grpc-status": "13", "grpc-message": "it broke: 100%25 %C3%BCnlucky"}


def test_foreign_bytes_raise_one_error() -> None:
    server = GrpcServer(_echo)
    with pytest.raises(CoderError, match="broke the protocol"):
        server.receive_untrusted(b"GET / HTTP/1.1\r\n\r\n")
    assert server.closed
