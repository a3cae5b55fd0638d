"""Requests without a body: a response of one piece needs no watch of the browser, every other one has it."""

from __future__ import annotations

import h11
import pytest
import trio
import trio.testing

from coder.appproxy.apps.forwarding import UNWATCHED
from tests.unit.appproxy.apps.test_passing_on import OK, PATH, Exchange, exchange

GET = b"GET %s/ HTTP/1.1\r\nHost: x\r\n\r\n" % PATH


async def _answered(x: Exchange, pieces: list[bytes], pause: float) -> bytes:
    await x.sees(x.app, b"\r\n\r\n")
    for piece in pieces:
        await trio.sleep(pause)
        await x.app.send_all(piece)
    return await x.sees(x.browser, b"ok")


@pytest.mark.parametrize("pause", [0.0, 0.9 * UNWATCHED, 3 * UNWATCHED])
@pytest.mark.parametrize("size", [1, 7, 20, len(OK)])
async def test_response_arrives_in_any_pieces(size: int, pause: float, autojump_clock: trio.testing.MockClock) -> None:
    async with exchange(GET) as x:
        pieces = [OK[start : start + size] for start in range(0, len(OK), size)]
        answer = await _answered(x, pieces, pause)
        assert answer.startswith(b"HTTP/1.1 200 OK\r\n") and b"content-length: 2\r\n" in answer.lower()
        assert answer.partition(b"\r\n\r\n")[2] == b"ok"


async def test_chunked_response_arrives_whole(autojump_clock: trio.testing.MockClock) -> None:
    async with exchange(GET) as x:
        head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\no\r\n"
        await x.sees(x.app, b"\r\n\r\n")
        await x.app.send_all(head)
        await x.sees(x.browser, b"o\r\n")
        await x.app.send_all(b"1\r\nk\r\n0\r\n\r\n")
        assert (await x.sees(x.browser, b"0\r\n\r\n")).startswith(b"1\r\nk\r\n")


@pytest.mark.parametrize("begun", [b"", OK[:30], OK[:-1]])
async def test_browser_that_leaves_ends_late_response(begun: bytes, autojump_clock: trio.testing.MockClock) -> None:
    async with exchange(GET) as x:
        await x.sees(x.app, b"\r\n\r\n")
        if begun:
            await x.app.send_all(begun)
        await trio.sleep(2 * UNWATCHED)
        await trio.aclose_forcefully(x.browser)
        with trio.fail_after(60):
            assert await x.app.receive_some() == b""


@pytest.mark.parametrize("pause", [0.0, 3 * UNWATCHED])
@pytest.mark.parametrize("answer", [b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", b""])
async def test_invalid_response_has_a_page(answer: bytes, pause: float, autojump_clock: trio.testing.MockClock) -> None:
    async with exchange(GET) as x:
        await x.sees(x.app, b"\r\n\r\n")
        await trio.sleep(pause)
        if answer:
            await x.app.send_all(answer)
        else:
            await x.app.aclose()
        assert (await x.sees(x.browser, b"</html>")).startswith(b"HTTP/1.1 502 Bad Gateway\r\n")


async def test_invalid_body_ends_the_response(autojump_clock: trio.testing.MockClock) -> None:
    with pytest.RaisesGroup(h11.RemoteProtocolError, flatten_subgroups=True):
        async with exchange(GET) as x:
            await x.sees(x.app, b"\r\n\r\n")
            await x.app.send_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\no\r\nzz\r\n")
            await x.sees(x.browser, b"never")
