"""Two ends of a WebSocket over an in-memory stream, and over a real loopback server."""

from __future__ import annotations

import h11
import pytest
import trio
import trio.testing

from coder.base.secret import Secret
from coder.net.dial import DialPolicy
from coder.net.errors import HttpError, NetError
from coder.net.http1 import HttpClient
from coder.net.websocket import WebSocketStream, accept_key, connect_websocket


def pair(**options: object) -> tuple[WebSocketStream, WebSocketStream]:
    left, right = trio.testing.memory_stream_pair()
    return WebSocketStream(left, client=True), WebSocketStream(right, client=False, **options)  # type: ignore[arg-type]


def test_accept_key_of_rfc_example() -> None:
    assert accept_key("dGhlIHNhbXBsZSBub25jZQ==") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="


async def test_bytes_flow_until_close() -> None:
    client, server = pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(client.send_all, b"a" * 100_000)
        received = b""
        while len(received) < 100_000:
            received += await server.receive_some(4096)
    assert received == b"a" * 100_000
    async with trio.open_nursery() as nursery:
        nursery.start_soon(client.close, 1000, "")
        assert await server.receive_some() == b""
    assert server.close_code == 1000


async def test_other_close_codes_break_stream() -> None:
    client, server = pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(server.close, 1011, "no")
        with pytest.raises(trio.BrokenResourceError, match="1011 no"):
            await client.receive_some()


async def test_lost_transport_breaks_stream() -> None:
    left, right = trio.testing.memory_stream_pair()
    client = WebSocketStream(left, client=True)
    await right.aclose()
    with pytest.raises(trio.BrokenResourceError):
        await client.receive_some()


async def test_text_rejected_in_binary_mode() -> None:
    client, server = pair(binary_only=True)
    await client.send_message("text")
    with pytest.raises(trio.BrokenResourceError):
        await server.receive_some()
    assert server.close_code == 1003


async def test_oversized_message_is_rejected() -> None:
    client, server = pair(max_message=10)
    await client.send_message(b"x" * 11)
    with pytest.raises(trio.BrokenResourceError):
        await server.receive_some()
    assert server.close_code == 1009


async def test_endless_message_flows_through_stream() -> None:
    """Nothing of it is buffered until an end that may never come."""
    left, right = trio.testing.memory_stream_pair()
    receiver = WebSocketStream(right, client=False)
    head, piece = b"\x02\xfe\x10\x00" + bytes(4), bytes(4096)
    for _ in range(3):
        await left.send_all(head + piece)
        assert await receiver.receive_some() == piece
        head = b"\x00" + head[1:]
    assert not receiver._partial


async def test_ping_answered_while_peer_reads(autojump_clock: trio.testing.MockClock) -> None:
    client, server = pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(client.receive_message)
        nursery.start_soon(server.receive_message)
        assert await server.ping(5)
        nursery.cancel_scope.cancel()
    assert not await server.ping(5)


async def test_pong_during_own_suspension_counts(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process finds the answer and its expired deadline at once."""
    left, right = trio.testing.memory_stream_pair()
    client, server = WebSocketStream(left, client=True), WebSocketStream(right, client=False)
    answer = right.send_all

    async def answer_then_suspend(data: bytes) -> None:
        await answer(data)
        autojump_clock.jump(60)

    monkeypatch.setattr(right, "send_all", answer_then_suspend)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(client.receive_message)
        nursery.start_soon(server.receive_message)
        assert await client.ping(5)
        assert trio.current_time() == pytest.approx(60)
        nursery.cancel_scope.cancel()


async def _serve_once(stream: trio.SocketStream) -> None:
    """Serve one connection with h11: /ok, /missing, /token, and a WebSocket echo at /ws."""
    connection = h11.Connection(h11.SERVER)
    async with stream:
        while True:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                connection.receive_data(await stream.receive_some())
                continue
            if isinstance(event, h11.ConnectionClosed):
                return
            if not isinstance(event, h11.Request):
                if isinstance(event, h11.EndOfMessage):
                    connection.start_next_cycle()
                continue
            headers = dict(event.headers)
            if event.target == b"/ws":
                key = headers[b"sec-websocket-key"].decode()
                answer = [
                    ("Upgrade", "websocket"),
                    ("Connection", "Upgrade"),
                    ("Sec-WebSocket-Accept", accept_key(key)),
                ]
                head = connection.send(h11.InformationalResponse(status_code=101, headers=answer))
                assert head
                await stream.send_all(head)
                ws = WebSocketStream(stream, client=False, initial=connection.trailing_data[0])
                while data := await ws.receive_some():
                    await ws.send_all(data)
                return
            status, body = 200, b'{"token":"' + headers.get(b"coder-session-token", b"") + b'"}'
            if event.target == b"/missing":
                status, body = 404, b'{"message":"gone","validations":[{"field":"x","detail":"bad"}]}'
            out = connection.send(h11.Response(status_code=status, headers=[("Content-Length", str(len(body)))]))
            out = (
                (out or b"")
                + (connection.send(h11.Data(data=body)) or b"")
                + (connection.send(h11.EndOfMessage()) or b"")
            )
            await stream.send_all(out)


async def test_requests_on_real_socket() -> None:
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, _serve_once, 0)
        port = listeners[0].socket.getsockname()[1]
        policy = DialPolicy(f"http://127.0.0.1:{port}", token=Secret("t0k"))
        async with HttpClient(policy) as client:
            assert (await client.request("GET", "/ok")).json() == {"token": "t0k"}
            with pytest.raises(HttpError) as caught:
                await client.request("GET", "/missing")
            assert caught.value.status == 404
            assert str(caught.value) == "gone; x: bad"
        ws = await connect_websocket(policy, "/ws")
        await ws.send_all(b"hello")
        assert await ws.receive_some() == b"hello"
        await ws.aclose()
        with pytest.raises(HttpError):
            await connect_websocket(policy, "/missing")
        nursery.cancel_scope.cancel()


async def test_unreachable_server_raises_one_error() -> None:
    with pytest.raises(NetError) as caught:
        await HttpClient(DialPolicy("http://127.0.0.1:1")).request("GET", "/")
    assert caught.value.code == "unreachable"
