"""The yamux state machine alone: openings, credit, endings, refusals."""

from __future__ import annotations

import pytest

from coder.rpc import yamux
from coder.rpc.yamux import Flag, FrameType, Yamux, YamuxError, YamuxFrame, encode_frame


def exchange(sender: Yamux, receiver: Yamux) -> list[yamux.Event]:
    return receiver.receive_untrusted(sender.take_output(1 << 24))


def pair() -> tuple[Yamux, Yamux, int]:
    client, server = Yamux(client=True), Yamux(client=False)
    stream = client.open_stream()
    assert exchange(client, server) == [yamux.StreamOpened(stream)]
    server.accept(stream)
    assert exchange(server, client) == [yamux.StreamAccepted(stream)]
    return client, server, stream


def test_stream_ids_by_role() -> None:
    client, server = Yamux(client=True), Yamux(client=False)
    assert [client.open_stream() for _ in range(3)] == [1, 3, 5]
    assert [server.open_stream() for _ in range(3)] == [2, 4, 6]
    assert client.take_output(12) == bytes.fromhex("000100010000000100000000")


def test_credit_returns_at_half_window() -> None:
    client, server, stream = pair()
    sent = 0
    while size := client.send(stream, memoryview(bytes(yamux.MAX_FRAME_BODY))):
        sent += size
    assert sent == yamux.INITIAL_WINDOW
    events = exchange(client, server)
    assert sum(len(e.data) for e in events if isinstance(e, yamux.DataReceived)) == yamux.INITIAL_WINDOW
    server.consumed(stream, yamux.INITIAL_WINDOW // 2 - 1)
    assert server.output_size == 0
    server.consumed(stream, 1)
    assert exchange(server, client) == [yamux.WindowOpened(stream)]
    assert client.credit(stream) == yamux.INITIAL_WINDOW // 2


def test_window_overrun_is_protocol_error() -> None:
    _, server, stream = pair()
    body = bytes(yamux.INITIAL_WINDOW)
    server.receive_untrusted(encode_frame(YamuxFrame(FrameType.DATA, Flag(0), stream, len(body), body)))
    with pytest.raises(YamuxError, match="overran its window"):
        server.receive_untrusted(encode_frame(YamuxFrame(FrameType.DATA, Flag(0), stream, 1, b"x")))


def test_half_closes_end_stream() -> None:
    client, server, stream = pair()
    client.close_sending(stream)
    client.close_sending(stream)
    assert exchange(client, server) == [yamux.YamuxSendingEnded(stream)]
    assert server.send(stream, memoryview(b"still open")) == 10
    server.close_sending(stream)
    assert exchange(server, client) == [yamux.DataReceived(stream, b"still open"), yamux.YamuxSendingEnded(stream)]
    assert not client.is_live(stream)
    assert not server.is_live(stream)


def test_second_fin_is_protocol_error() -> None:
    _, server, stream = pair()
    fin = encode_frame(YamuxFrame(FrameType.WINDOW_UPDATE, Flag.FIN, stream, 0))
    server.receive_untrusted(fin)
    with pytest.raises(YamuxError):
        server.receive_untrusted(fin)


def test_reopened_id_is_protocol_error() -> None:
    _, server, stream = pair()
    with pytest.raises(YamuxError, match="opened twice"):
        server.receive_untrusted(encode_frame(YamuxFrame(FrameType.WINDOW_UPDATE, Flag.SYN, stream, 0)))


def test_unknown_stream_frames_are_dropped() -> None:
    server = Yamux(client=False)
    assert server.receive_untrusted(encode_frame(YamuxFrame(FrameType.DATA, Flag.FIN, 9, 3, b"abc"))) == []


def test_backlog_overflow_is_reset() -> None:
    server = Yamux(client=False)
    for number in range(yamux.BACKLOG):
        server.receive_untrusted(encode_frame(YamuxFrame(FrameType.WINDOW_UPDATE, Flag.SYN, 2 * number + 1, 0)))
    late = 2 * yamux.BACKLOG + 1
    assert server.receive_untrusted(encode_frame(YamuxFrame(FrameType.WINDOW_UPDATE, Flag.SYN, late, 0))) == []
    assert server.take_output(100) == encode_frame(YamuxFrame(FrameType.WINDOW_UPDATE, Flag.RST, late, 0))


def test_unacknowledged_streams_are_limited() -> None:
    client = Yamux(client=True)
    for _ in range(yamux.BACKLOG):
        assert client.may_open
        client.open_stream()
    assert not client.may_open


def test_reset_and_late_data() -> None:
    client, server, stream = pair()
    client.reset(stream)
    assert exchange(client, server) == [yamux.StreamReset(stream)]
    with pytest.raises(ValueError, match="closed for sending"):
        server.send(stream, memoryview(b"x"))


def test_pings_echo_their_number() -> None:
    client, server = Yamux(client=True), Yamux(client=False)
    number = client.ping()
    assert exchange(client, server) == []
    assert exchange(server, client) == [yamux.YamuxPingAnswered(number)]


def test_go_away() -> None:
    client, server, _ = pair()
    server.go_away(yamux.GoAwayCode.NORMAL)
    assert exchange(server, client) == [yamux.GoAwayReceived(0)]
    assert not client.may_open
    server.go_away(yamux.GoAwayCode.INTERNAL_ERROR)
    with pytest.raises(YamuxError, match="code 2"):
        exchange(server, client)
