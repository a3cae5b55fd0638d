"""Requests and replies on slow, stuck or cut connections."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from coder.agent.agent import AgentRole
from coder.agent.config import AgentConfig
from coder.agent.network import http_api
from coder.agent.network.http_api import CHUNK, DEBUG_ROUTES, METRICS_ROUTES, TIMEOUT, HttpApi
from coder.agent.network.http_messages import HttpReply, HttpRequest, Routes
from coder.agent.state import AgentState, Identity
from coder.base.json_types import JsonObject
from coder.base.secret import Secret
from coder.net.policy import DialPolicy
from tests.kit.free_ports import free_port

STATE = AgentState(identity=Identity("me", Path("/"), "/bin/sh"), token="t", url="http://x", executable="coder")
LARGE = bytes(range(256)) * (5 * CHUNK // 256) + b"end"


async def _large(_state: AgentState, _request: HttpRequest) -> HttpReply:
    return HttpReply(200, LARGE, "application/octet-stream")


async def _length(_state: AgentState, request: HttpRequest) -> HttpReply:
    return HttpReply(200, str(len(request.body)).encode(), "text/plain")


ROUTES: Routes = {("GET", "/large"): _large, ("HEAD", "/large"): _large, ("POST", "/length"): _length}


class Line:
    """Both ends of a connection; each of the agent's sends is delayed by `delay` seconds."""

    def __init__(self, delay: float = 0) -> None:
        self.near, far = trio.testing.memory_stream_pair()
        self._delay, self._send = delay, far.send_stream
        self.sizes: list[int] = []
        "Bytes that the agent has sent."
        delayed = trio.testing.MemorySendStream(self._pass)
        self.far = trio.StapledStream(delayed, far.receive_stream)
        self._from: Callable[[], bytes | bytearray] = delayed.get_data_nowait

    async def _pass(self) -> None:
        data = self._from()
        await trio.sleep(self._delay)
        self.sizes.append(len(data))
        await self._send.send_all(data)

    async def exchange(self, *parts: bytes, pause: float = 0, routes: Routes | None = None) -> tuple[bytes, float]:
        """Return the data until the agent closes or everything is sent, and the seconds it took."""
        began = trio.current_time()
        data = bytearray()
        async with trio.open_nursery() as nursery:

            async def serve() -> None:
                await HttpApi(STATE, routes or ROUTES).serve(self.far)
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


async def test_slow_reader_gets_whole_reply(autojump_clock: trio.testing.MockClock) -> None:
    line = Line(delay=TIMEOUT * 0.9)
    reply, took = await line.exchange(request("GET", "/large"))
    assert reply.endswith(b"\r\n\r\n" + LARGE) and took > 3 * TIMEOUT
    assert max(line.sizes) <= CHUNK, "the reply is not joined in memory"


async def test_stalled_reader_times_out(autojump_clock: trio.testing.MockClock) -> None:
    reply, took = await Line(delay=TIMEOUT * 3).exchange(request("GET", "/large"))
    assert reply == b"" and took <= TIMEOUT + 1


async def test_slow_writer_is_served(autojump_clock: trio.testing.MockClock) -> None:
    pieces = [b"x" * 100] * 5
    reply, took = await Line().exchange(request("POST", "/length", 500), *pieces, pause=TIMEOUT * 0.9)
    assert reply.endswith(b"\r\n\r\n500") and took > 3 * TIMEOUT


async def test_stalled_writer_times_out(autojump_clock: trio.testing.MockClock) -> None:
    reply, took = await Line().exchange(request("POST", "/length", 500), b"x")
    assert reply == b"" and took <= TIMEOUT + 1


async def test_request_head_times_out(autojump_clock: trio.testing.MockClock) -> None:
    line = Line()
    began = trio.current_time()
    async with trio.open_nursery() as nursery:

        async def drip() -> None:
            while True:
                await line.near.send_all(b"G")
                await trio.sleep(TIMEOUT * 0.3)

        nursery.start_soon(drip)
        await HttpApi(STATE, ROUTES).serve(line.far)
        nursery.cancel_scope.cancel()
    assert trio.current_time() - began <= http_api.TIMEOUT + 1


async def test_head_request_has_no_body() -> None:
    reply, _ = await Line().exchange(request("HEAD", "/large"))
    assert reply.endswith(b"\r\n\r\n") and f"Content-Length: {len(LARGE)}".encode().lower() in reply.lower()
    refused, _ = await Line().exchange(request("HEAD", "/none"))
    assert refused.startswith(b"HTTP/1.1 404") and refused.endswith(b"\r\n\r\n")


async def _fails(_state: AgentState, _request: HttpRequest) -> HttpReply:
    raise AssertionError("a defect of a route")


async def _reads(_state: AgentState, request: HttpRequest) -> HttpReply:
    return HttpReply(200, json.dumps(json.loads(request.body)["n"] * 2).encode())


BAD_TARGETS = ["//[", "http://[", "//[::1", "http://]/", "//x]y"]


@pytest.mark.parametrize("target", BAD_TARGETS)
async def test_invalid_target_is_rejected(target: str) -> None:
    reply, _ = await Line().exchange(request("GET", target))
    assert reply.startswith(b"HTTP/1.1 400") and b"target could not be parsed" in reply


BODIES = [b"[" * 100_000, b'{"n":' + b"[" * 100_000, b"\xff", b"[]", b"1" * 5000, b'{"n":1e999}', b"", b'"\\ud800"']


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body[:8].decode("latin-1"))
async def test_invalid_body_is_rejected(body: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ROUTES, ("POST", "/reads"), _reads)
    reply, _ = await Line().exchange(request("POST", "/reads", len(body)), body)
    assert reply.startswith((b"HTTP/1.1 400", b"HTTP/1.1 200")), reply


async def test_route_defect_keeps_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ROUTES, ("GET", "/fails"), _fails)
    first = b"GET /fails HTTP/1.1\r\nHost: x\r\n\r\n"
    reply, _ = await Line().exchange(first, request("POST", "/length", 3), b"abc")
    assert reply.startswith(b"HTTP/1.1 500") and reply.endswith(b"\r\n\r\n3")


@pytest.mark.parametrize("routes", [DEBUG_ROUTES, METRICS_ROUTES], ids=["debug", "metrics"])
async def test_bodies_rejected_without_readers(routes: tuple[Any, ...]) -> None:
    reply, _ = await Line().exchange(request("GET", "/metrics", 64 << 20), b"x" * 10, routes=dict(routes))
    assert reply.startswith(b"HTTP/1.1 413")


async def test_connection_limit_is_enforced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_api, "MAX_CONNECTIONS", 2)
    api = HttpApi(STATE, ROUTES)
    async with trio.open_nursery() as nursery:
        open_ones = []
        for _ in range(2):
            near, far = trio.testing.memory_stream_pair()
            nursery.start_soon(api.serve, far)
            open_ones.append(near)
        await trio.testing.wait_all_tasks_blocked()
        near, far = trio.testing.memory_stream_pair()
        await api.serve(far)
        assert await near.receive_some() == b""
        await open_ones[0].aclose()
        await trio.testing.wait_all_tasks_blocked()
        near, far = trio.testing.memory_stream_pair()
        nursery.start_soon(api.serve, far)
        await near.send_all(request("POST", "/length", 0))
        assert (await near.receive_some()).startswith(b"HTTP/1.1 200")
        nursery.cancel_scope.cancel()


async def test_garbage_keeps_debug_listener(tmp_path: Path) -> None:
    """Every user of the machine can reach it."""
    address = ("127.0.0.1", free_port())
    token = Secret("t")
    policy = DialPolicy("http://127.0.0.1:1", token=token)
    agent = AgentRole(AgentConfig(policy, token, tmp_path, tmp_path, "coder", debug_address=address))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(agent._serve_listeners)
        reply = b""
        for target in (*BAD_TARGETS, "/debug/prometheus"):
            async with await _dialled(address) as stream:
                await stream.send_all(request("GET", target))
                reply = bytes(await stream.receive_some())
        assert reply.startswith(b"HTTP/1.1 200")
        nursery.cancel_scope.cancel()


async def _dialled(address: tuple[str, int]) -> trio.SocketStream:
    with trio.fail_after(60):
        while True:
            try:
                return await trio.open_tcp_stream(*address)
            except OSError:
                await trio.sleep(0.01)  # it is being opened


class _Upgrades:
    """Upgrades that count requests."""

    def __init__(self) -> None:
        self.requests = 0

    def describe(self) -> JsonObject:
        return {"state": "queued", "detail": "", "version": "v1", "server_version": "v2"}

    def request(self) -> None:
        self.requests += 1


async def test_upgrade_is_requested(monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock) -> None:
    upgrades = _Upgrades()
    monkeypatch.setattr(STATE, "upgrades", upgrades)
    answer, _ = await Line().exchange(request("GET", "/api/v0/upgrade"), routes=http_api.ROUTES)
    assert b" 200 " in answer and b'"state": "queued"' in answer and upgrades.requests == 0
    answer, _ = await Line().exchange(request("POST", "/api/v0/upgrade"), routes=http_api.ROUTES)
    assert b" 202 " in answer and upgrades.requests == 1


async def test_agent_without_upgrades_refuses_request(autojump_clock: trio.testing.MockClock) -> None:
    answer, _ = await Line().exchange(request("GET", "/api/v0/upgrade"), routes=http_api.ROUTES)
    assert b" 200 " in answer and b'"state": "disabled"' in answer
    answer, _ = await Line().exchange(request("POST", "/api/v0/upgrade"), routes=http_api.ROUTES)
    assert b" 409 " in answer and b"--self-upgrade" in answer
