"""Requests and replies on lines that are slow, stuck or cut."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import trio
import trio.testing

from coder.agent.network import http_api
from coder.agent.network.http_api import PIECE, TIMEOUT, HttpApi
from coder.agent.network.http_messages import HttpReply, HttpRequest, Routes
from coder.agent.state import AgentState, Identity

LARGE = bytes(range(256)) * (5 * PIECE // 256) + b"end"


async def _large(_state: AgentState, _request: HttpRequest) -> HttpReply:
    return HttpReply(200, LARGE, "application/octet-stream")


async def _length(_state: AgentState, request: HttpRequest) -> HttpReply:
    return HttpReply(200, str(len(request.body)).encode(), "text/plain")


TOLD: Routes = {("GET", "/large"): _large, ("HEAD", "/large"): _large, ("POST", "/length"): _length}


class Line:
    """Both ends of a connection; the agent's sends are delayed by so many seconds each."""

    def __init__(self, delay: float = 0) -> None:
        self.near, far = trio.testing.memory_stream_pair()
        self._delay, self._send = delay, far.send_stream
        self.sizes: list[int] = []
        "Of what the agent has sent."
        delayed = trio.testing.MemorySendStream(self._pass)
        self.far = trio.StapledStream(delayed, far.receive_stream)
        self._from: Callable[[], bytes | bytearray] = delayed.get_data_nowait

    async def _pass(self) -> None:
        data = self._from()
        await trio.sleep(self._delay)
        self.sizes.append(len(data))
        await self._send.send_all(data)

    async def exchange(self, *parts: bytes, pause: float = 0) -> tuple[bytes, float]:
        """What comes back until the agent closes or everything is said, and after how many seconds."""
        began = trio.current_time()
        data = bytearray()
        state = AgentState(identity=Identity("me", Path("/"), "/bin/sh"), token="t", url="http://x", executable="coder")
        async with trio.open_nursery() as nursery:

            async def serve() -> None:
                await HttpApi(state, TOLD).serve(self.far)
                await self._send.aclose()

            nursery.start_soon(serve)
            for part in parts:
                await self.near.send_all(part)
                await trio.sleep(pause)
            while chunk := await self.near.receive_some():
                data += chunk
        return bytes(data), trio.current_time() - began


def request(method: str, path: str, length: int = 0) -> bytes:
    return f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n".encode()


async def test_a_slow_reader_gets_all_of_a_large_reply_in_pieces(autojump_clock: trio.testing.MockClock) -> None:
    line = Line(delay=TIMEOUT * 0.9)
    reply, took = await line.exchange(request("GET", "/large"))
    assert reply.endswith(b"\r\n\r\n" + LARGE) and took > 3 * TIMEOUT
    assert max(line.sizes) <= PIECE, "the reply is not joined in memory"


async def test_a_reader_that_takes_nothing_is_given_up(autojump_clock: trio.testing.MockClock) -> None:
    reply, took = await Line(delay=TIMEOUT * 3).exchange(request("GET", "/large"))
    assert reply == b"" and took <= TIMEOUT + 1


async def test_a_slow_writer_is_heard_to_the_end(autojump_clock: trio.testing.MockClock) -> None:
    pieces = [b"x" * 100] * 5
    reply, took = await Line().exchange(request("POST", "/length", 500), *pieces, pause=TIMEOUT * 0.9)
    assert reply.endswith(b"\r\n\r\n500") and took > 3 * TIMEOUT


async def test_a_writer_that_stops_is_given_up(autojump_clock: trio.testing.MockClock) -> None:
    reply, took = await Line().exchange(request("POST", "/length", 500), b"x")
    assert reply == b"" and took <= TIMEOUT + 1


async def test_a_head_has_its_time_however_it_comes(autojump_clock: trio.testing.MockClock) -> None:
    line = Line()
    state = AgentState(identity=Identity("me", Path("/"), "/bin/sh"), token="t", url="http://x", executable="coder")
    began = trio.current_time()
    async with trio.open_nursery() as nursery:

        async def drip() -> None:
            while True:
                await line.near.send_all(b"G")
                await trio.sleep(TIMEOUT * 0.3)

        nursery.start_soon(drip)
        await HttpApi(state, TOLD).serve(line.far)
        nursery.cancel_scope.cancel()
    assert trio.current_time() - began <= http_api.TIMEOUT + 1


async def test_a_question_for_the_head_alone_gets_no_body() -> None:
    reply, _ = await Line().exchange(request("HEAD", "/large"))
    assert reply.endswith(b"\r\n\r\n") and f"Content-Length: {len(LARGE)}".encode().lower() in reply.lower()
    refused, _ = await Line().exchange(request("HEAD", "/none"))
    assert refused.startswith(b"HTTP/1.1 404") and refused.endswith(b"\r\n\r\n")
