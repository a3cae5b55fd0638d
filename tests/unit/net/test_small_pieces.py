"""A body in pieces of one byte leaves others their turns, whoever reads it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, cast

import h11
import pytest
import trio
import trio.testing
from hypercorn.events import RawData

from coder.agent.network.http_api import MAX_BODY, _read_request
from coder.coderd.apps.proxy import _answer
from coder.coderd.apps.upstream import AppConnection
from coder.coderd.http.server.hypercorn_fixes import OneWriteH11, _OneFraming
from coder.coderd.services.agents.agent_containers import _upgrade
from coder.coderd.services.foundation.errors import BadGateway
from coder.net import http1
from coder.net.bounded_http import PIECES, BoundedHttp
from coder.net.stream_exchange import exchange

COUNT = 60 * PIECES
BODY = b"1\r\nx\r\n" * COUNT + b"0\r\n\r\n"
ANSWER = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + BODY
REQUEST = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + BODY


def peer_says(data: bytes) -> trio.StapledStream[Any, Any]:
    """All of it at the first question, as a socket whose buffer is full."""
    ours, _ = trio.testing.memory_stream_pair()
    ours.receive_stream.put_data(data)
    ours.receive_stream.put_eof()
    return ours


async def by_an_exchange() -> None:
    answer = await exchange(peer_says(ANSWER), "GET", "/")
    assert len(answer.body) == COUNT


async def by_the_refusal_of_an_upgrade() -> None:
    with pytest.raises(BadGateway):
        await _upgrade(peer_says(ANSWER))


async def by_the_client() -> None:
    connection = http1._Connection(peer_says(ANSWER))
    await connection.send(h11.Request(method="GET", target="/", headers=[("Host", "x")]))
    await connection.send(h11.EndOfMessage())
    answer = http1.StreamedResponse(connection, await connection.next_event())
    assert len([piece async for piece in answer.chunks()]) == COUNT


async def by_an_agent() -> None:
    request = await _read_request(BoundedHttp(h11.SERVER), peer_says(REQUEST), MAX_BODY)
    assert request is not None and len(request.body) == COUNT


async def by_the_proxy_of_applications() -> None:
    to_app = AppConnection(peer_says(ANSWER))
    await to_app.send(h11.Request(method="GET", target="/", headers=[("Host", "x")]))
    await to_app.send(h11.EndOfMessage())
    browser = BoundedHttp(h11.SERVER)
    browser.receive_data(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    browser.next_event()
    visit = SimpleNamespace(connection=browser, stream=peer_says(b""), answered=False, has_body=False, ours=())
    asked = SimpleNamespace(base_path="/", cors=None, extra=[])
    await _answer(cast("Any", visit), cast("Any", asked), to_app)


async def by_what_drops_the_rest_of_a_body() -> None:
    protocol = OneWriteH11.__new__(OneWriteH11)
    protocol._framing = _OneFraming(h11.SERVER)
    protocol._dropped, protocol._lingering = 0, trio.Event()
    await protocol.handle(RawData(data=REQUEST[: REQUEST.index(b"\r\n\r\n") + 4]))
    protocol._framing.next_event()
    await protocol.handle(RawData(data=BODY))


READERS: list[Callable[[], Awaitable[None]]] = [
    by_an_exchange, by_the_refusal_of_an_upgrade, by_the_client, by_an_agent, by_the_proxy_of_applications,
    by_what_drops_the_rest_of_a_body,
]  # fmt: skip


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.__name__)
async def test_others_run_meanwhile(reader: Callable[[], Awaitable[None]]) -> None:
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(other)
        await reader()
        nursery.cancel_scope.cancel()
    assert turns > COUNT / PIECES / 2
