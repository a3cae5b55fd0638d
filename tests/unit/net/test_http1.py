"""A server that accepts a request and answers late or never, and the client's timeouts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from coder.net import http1
from coder.net.errors import NetError
from coder.net.http1 import REQUEST_TIMEOUT, HttpClient
from coder.net.policy import DialPolicy

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"


@asynccontextmanager
async def client_of(monkeypatch: pytest.MonkeyPatch, *parts: tuple[float, bytes]) -> AsyncIterator[HttpClient]:
    """Return a client of a server that sends each part after so many seconds."""
    async with trio.open_nursery() as nursery:

        async def answer(far: trio.abc.Stream) -> None:
            for delay, part in parts:
                await trio.sleep(delay)
                await far.send_all(part)
            await trio.sleep_forever()

        async def dial_server(_: DialPolicy, **_options: object) -> trio.abc.Stream:
            near, far = trio.testing.memory_stream_pair()
            nursery.start_soon(answer, far)
            return near

        monkeypatch.setattr(http1, "connect", dial_server)
        async with HttpClient(DialPolicy("http://x")) as client:
            yield client
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("limit", [None, 5.0])
@pytest.mark.parametrize("parts", [(), ((0, b"HTTP/1.1 200 OK\r\n"),), ((0, b"HTTP/1.1 100 Continue\r\n\r\n"),)])
async def test_head_has_timeout(
    limit: float | None,
    parts: tuple[tuple[float, bytes], ...],
    monkeypatch: pytest.MonkeyPatch,
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with client_of(monkeypatch, *parts) as client:
        began = trio.current_time()
        request = client.stream("GET", "/") if limit is None else client.stream("GET", "/", head_timeout=limit)
        with pytest.raises(NetError, match="was not answered within"):
            async with request:
                pytest.fail("there is no head")
        assert trio.current_time() - began == pytest.approx(limit or REQUEST_TIMEOUT)


async def test_body_has_its_readers_time(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    async with client_of(monkeypatch, (1, HEAD), (1000, b"o"), (1000, b"k")) as client:
        async with client.stream("GET", "/", head_timeout=2) as answer:
            assert b"".join([chunk async for chunk in answer.chunks()]) == b"ok"
        with pytest.raises(NetError, match="within 100 s"):
            await client.request("GET", "/", timeout=100)


async def test_request_may_exceed_head_timeout(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    async with client_of(monkeypatch, (10 * REQUEST_TIMEOUT, HEAD + b"ok")) as client:
        assert (await client.request("GET", "/", timeout=20 * REQUEST_TIMEOUT)).body == b"ok"


async def test_early_answer_is_read() -> None:
    """The server closes during the body, which breaks the sending; its answer is readable."""

    async def refuse(stream: trio.SocketStream) -> None:
        async with stream:
            await stream.receive_some()
            await stream.send_all(b"HTTP/1.1 413 \r\nConnection: close\r\nContent-Length: 5\r\n\r\nlarge")

    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, refuse, [listener])
        url = f"http://127.0.0.1:{listener.socket.getsockname()[1]}"
        async with http1.HttpClient(DialPolicy(url, proxies={})) as client:
            answer = await client.request("POST", "/", body=bytes(30 << 20), expect=(413,))
        assert answer.body == b"large"
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def closing_server() -> AsyncIterator[tuple[HttpClient, list[str]]]:
    """Yield a client of a server that answers one request of each connection and closes it during the next; and the
    methods that arrived."""
    arrived: list[str] = []

    async def answer(stream: trio.SocketStream) -> None:
        async with stream:
            for number in range(2):
                data = await stream.receive_some()
                if not data:
                    return
                arrived.append(bytes(data).split()[0].decode())
                if number == 0:
                    await stream.send_all(HEAD + b"ok")

    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, answer, [listener])
        url = f"http://127.0.0.1:{listener.socket.getsockname()[1]}"
        async with HttpClient(DialPolicy(url, proxies={})) as client:
            yield client, arrived
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
async def test_idempotent_request_is_repeated(method: str) -> None:
    async with closing_server() as (client, arrived):
        await client.request("GET", "/")
        assert (await client.request(method, "/")).body == b"ok"
        assert arrived == ["GET", method, method]


@pytest.mark.parametrize("method", ["POST", "PATCH"])
async def test_unanswered_post_is_not_repeated(method: str) -> None:
    """The server may have processed it (RFC 9110 section 9.2.2)."""
    async with closing_server() as (client, arrived):
        await client.request("GET", "/")
        with pytest.raises(NetError, match="did not answer"):
            await client.request(method, "/", body=b"x")
        assert arrived == ["GET", method]
        assert (await client.request(method, "/", body=b"x")).body == b"ok"


async def test_post_avoids_closed_connection() -> None:
    async with closing_server() as (client, arrived):
        await client.request("GET", "/")
        (kept,) = client._idle
        assert isinstance(kept.stream, trio.SocketStream)
        await kept.stream.send_eof()  # the server closes its side, too
        await trio.lowlevel.wait_readable(kept.stream.socket)
        assert (await client.request("POST", "/")).body == b"ok"
        assert arrived == ["GET", "POST"]


async def test_rest_of_an_answer_answers_no_request() -> None:
    """A broken server sends more than its answer: the next request has to reach it, by a fresh connection."""
    arrived: list[str] = []

    async def answer(stream: trio.SocketStream) -> None:
        async with stream:
            while data := await stream.receive_some():
                arrived.append(bytes(data).split()[0].decode())
                await stream.send_all(HEAD + b"ok" + HEAD + b"no")

    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, answer, [listener])
        url = f"http://127.0.0.1:{listener.socket.getsockname()[1]}"
        async with HttpClient(DialPolicy(url, proxies={})) as client:
            for method in ("GET", "POST", "GET"):
                assert (await client.request(method, "/")).body == b"ok"
        nursery.cancel_scope.cancel()
    assert arrived == ["GET", "POST", "GET"]
