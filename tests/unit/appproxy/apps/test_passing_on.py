"""Parts of HTTP that an application and a browser agree on without the proxy: expectations, interim responses,
trailers, and the exact target."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID, uuid4

import h11
import pytest
import trio
import trio.testing

from coder.appproxy.apps import proxy_request
from coder.appproxy.apps.app_proxy import AppProxy
from coder.appproxy.apps.app_tickets import Ticket
from coder.appproxy.apps.authorizer import AppAdmission, AppProxySettings
from coder.appproxy.apps.upstream import AppPool
from coder.coderd.config.settings import ServerConfig
from coder.domain.apps.app_addresses import AppRequest
from coder.domain.foundation.zero import ZERO_TIME

POST = b"POST %s HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class AppStream(trio.abc.Stream):
    """Stream to an application as the overlay's, on one in memory."""

    unacknowledged = 0

    def __init__(self, inside: trio.abc.Stream) -> None:
        self._inside = inside

    def abort(self) -> None:
        """Nothing is in flight."""

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self._inside.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._inside.wait_send_all_might_not_block()

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        return await self._inside.receive_some(max_bytes)

    async def aclose(self) -> None:
        await self._inside.aclose()


class Authorizer:
    """Admits every visitor."""

    def __init__(self, pool: AppPool) -> None:
        self.pool, self.stopping = pool, trio.Event()
        self.settings = AppProxySettings.of(ServerConfig(), dashboard_url="http://x", own_url="http://x")

    async def read_ticket(self, _tokens: object, _request: AppRequest) -> None:
        return None

    async def admit(self, request: AppRequest, *_: object) -> AppAdmission:
        ticket = Ticket(request, uuid4(), UUID(int=1), "http://localhost:8080", UUID(int=2))
        return AppAdmission(ticket, "token", ZERO_TIME)

    def stay(self, *_: object) -> Any:
        return trio.CancelScope()


class Exchange:
    """Browser and application with the proxy between them."""

    def __init__(self, browser: trio.abc.Stream, app: trio.abc.Stream) -> None:
        self.browser, self.app = browser, app

    async def sees(self, stream: trio.abc.Stream, end: bytes) -> bytes:
        """Return what arrives at one side, up to `end`."""
        data = b""
        with trio.fail_after(60):
            while not data.endswith(end):
                piece = await stream.receive_some()
                assert piece, data
                data += piece
        return data


@asynccontextmanager
async def exchange(request: bytes) -> AsyncIterator[Exchange]:
    """Send the beginning of a request for a path application during the block."""
    browser, server = trio.testing.memory_stream_pair()
    app, upstream = trio.testing.memory_stream_pair()

    async def dial(_agent: object, _port: int) -> AppStream:
        return AppStream(upstream)

    pool = AppPool(cast("Any", SimpleNamespace(agent_dialer=SimpleNamespace(dial=dial))))
    proxy = AppProxy(cast("Any", Authorizer(pool)))
    parser = h11.Connection(h11.SERVER)
    parser.receive_data(request)
    head = parser.next_event()
    assert isinstance(head, h11.Request)
    trailing = request.partition(b"\r\n\r\n")[2]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_serve, proxy, head, server, trailing)
        yield Exchange(browser, app)
        nursery.cancel_scope.cancel()


async def _serve(proxy: AppProxy, head: h11.Request, stream: trio.abc.Stream, trailing: bytes) -> None:
    proxied = proxy_request.ProxyRequest(head, stream, trailing, remote_ip="127.0.0.1", scheme="http", ours=())
    await proxy._serve(proxied, None)


PATH = b"/@u/w.main/apps/web"


# ---- Expect


async def test_application_decides_on_expectation() -> None:
    async with exchange(POST % (PATH + b"/up")) as x:
        head = await x.sees(x.app, b"\r\n\r\n")
        assert b"expect: 100-continue\r\n" in head.lower()
        await x.app.send_all(b"HTTP/1.1 100 Continue\r\n\r\n")
        assert await x.sees(x.browser, b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        await x.browser.send_all(b"body")
        assert await x.sees(x.app, b"body") == b"body"
        await x.app.send_all(OK)
        assert (await x.sees(x.browser, b"ok")).startswith(b"HTTP/1.1 200 OK\r\n")


async def test_application_refuses_body_early() -> None:
    async with exchange(POST % (PATH + b"/up")) as x:
        await x.sees(x.app, b"\r\n\r\n")
        await x.app.send_all(b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nno\n")
        answer = await x.sees(x.browser, b"no\n")
        assert answer.startswith(b"HTTP/1.1 413 Too Large\r\n") and b"connection: close\r\n" in answer.lower()


async def test_silent_application_gets_body(autojump_clock: object) -> None:
    async with exchange(POST % (PATH + b"/up")) as x:
        await x.sees(x.app, b"\r\n\r\n")
        assert await x.sees(x.browser, b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        await x.browser.send_all(b"body")
        await x.sees(x.app, b"body")
        await x.app.send_all(b"HTTP/1.1 100 Continue\r\n\r\n" + OK)
        assert (await x.sees(x.browser, b"ok")).startswith(b"HTTP/1.1 200 OK\r\n")


async def test_impatient_browser_sends_body() -> None:
    async with exchange(POST % (PATH + b"/up") + b"body") as x:
        assert (await x.sees(x.app, b"body")).endswith(b"\r\n\r\nbody")
        await x.app.send_all(b"HTTP/1.1 100 Continue\r\n\r\n" + OK)
        assert (await x.sees(x.browser, b"ok")).startswith(b"HTTP/1.1 200 OK\r\n")


async def test_unknown_expectation_is_dropped() -> None:
    async with exchange(b"GET %s/ HTTP/1.1\r\nHost: x\r\nExpect: tea\r\n\r\n" % PATH) as x:
        assert b"expect" not in (await x.sees(x.app, b"\r\n\r\n")).lower()


# ---- interim responses


async def test_early_hints_arrive_early() -> None:
    async with exchange(b"GET %s/ HTTP/1.1\r\nHost: x\r\n\r\n" % PATH) as x:
        await x.sees(x.app, b"\r\n\r\n")
        hints = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nSet-Cookie: coder_session_token=x\r\n\r\n"
        await x.app.send_all(hints)
        seen = await x.sees(x.browser, b"\r\n\r\n")
        assert seen == b"HTTP/1.1 103 Early Hints\r\nlink: </a.css>; rel=preload\r\n\r\n"
        await x.app.send_all(b"HTTP/1.1 102 Processing\r\n\r\n" + OK)
        assert (await x.sees(x.browser, b"ok")).startswith(b"HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\n")


async def test_http_1_0_gets_final_response_only() -> None:
    async with exchange(b"GET %s/ HTTP/1.0\r\nHost: x\r\n\r\n" % PATH) as x:
        await x.sees(x.app, b"\r\n\r\n")
        await x.app.send_all(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + OK)
        assert (await x.sees(x.browser, b"ok")).startswith(b"HTTP/1.1 200 OK\r\n")


async def test_unasked_continue_is_dropped() -> None:
    async with exchange(b"GET %s/ HTTP/1.1\r\nHost: x\r\n\r\n" % PATH) as x:
        await x.sees(x.app, b"\r\n\r\n")
        await x.app.send_all(b"HTTP/1.1 100 Continue\r\n\r\n" + OK)
        assert (await x.sees(x.browser, b"ok")).startswith(b"HTTP/1.1 200 OK\r\n")


# ---- trailers


async def test_trailers_are_announced() -> None:
    request = (
        b"POST %s/ HTTP/1.1\r\nHost: x\r\nTE: trailers\r\nTrailer: Sum\r\nTransfer-Encoding: chunked\r\n\r\n" % PATH
    )
    async with exchange(request + b"1\r\na\r\n0\r\nSum: 1\r\n\r\n") as x:
        asked = await x.sees(x.app, b"sum: 1\r\n\r\n")
        assert b"trailer: Sum\r\n" in asked and b"TE: trailers\r\n" in asked
        head = b"HTTP/1.1 200 OK\r\nTrailer: Grpc-Status\r\nTransfer-Encoding: chunked\r\n\r\n"
        await x.app.send_all(head + b"2\r\nok\r\n0\r\nGrpc-Status: 0\r\n\r\n")
        answer = await x.sees(x.browser, b"grpc-status: 0\r\n\r\n")
        assert b"trailer: Grpc-Status\r\n" in answer


async def test_response_of_known_length_has_no_trailer() -> None:
    async with exchange(b"GET %s/ HTTP/1.1\r\nHost: x\r\n\r\n" % PATH) as x:
        await x.sees(x.app, b"\r\n\r\n")
        await x.app.send_all(b"HTTP/1.1 200 OK\r\nTrailer: A\r\nContent-Length: 2\r\n\r\nok")
        assert b"trailer" not in (await x.sees(x.browser, b"ok")).lower()


# ---- target


@pytest.mark.parametrize(
    ("target", "arrives"),
    [
        (b"/q", b"/q"),
        (b"/q?", b"/q?"),
        (b"/q?a", b"/q?a"),
        (b"/q?a=b?c", b"/q?a=b?c"),
        (b"/q??", b"/q??"),
        (b"/?", b"/?"),
        (b"//x?", b"//x?"),
        (b"/%2e%2e/a%20b?%3f=+", b"/%2e%2e/a%20b?%3f=+"),
        (b"/q?coder_session_token=x", b"/q"),
        (b"/q?coder_session_token=x&a=1", b"/q?a=1"),
    ],
)
async def test_target_arrives_as_written(target: bytes, arrives: bytes) -> None:
    async with exchange(b"GET %s HTTP/1.1\r\nHost: x\r\n\r\n" % (PATH + target)) as x:
        assert (await x.sees(x.app, b"\r\n\r\n")).split(b" ")[1] == arrives


@pytest.mark.parametrize("query", [b"", b"?", b"?a=1"])
async def test_missing_slash_keeps_query(query: bytes) -> None:
    async with exchange(b"GET %s HTTP/1.1\r\nHost: x\r\n\r\n" % (PATH + query)) as x:
        answer = await x.sees(x.browser, b".\n\n")
        assert b"location: %s/%s\r\n" % (PATH, query) in answer
