"""A hostile agent at the real node of a server: its HTTP API answers readers of the workspace with anything."""

from __future__ import annotations

import contextlib
import gzip
from struct import pack
from typing import Any

import pytest
import trio

from coder.net.websocket import WebSocketStream
from tests.kit.agents.real_agent import running_overlay_agent
from tests.kit.agents.scripted_agent import AgentWorld, dial_link, eventually, workspace_world

OK = b"HTTP/1.1 200 OK\r\n"
JSON = b"Content-Type: application/json\r\n"
OURS = (
    b"Set-Cookie: coder_session_token=x; Path=/\r\nSet-Cookie: a=b; Domain=localhost\r\nService-Worker-Allowed: /\r\n"
    b'Access-Control-Allow-Origin: *\r\nAccess-Control-Allow-Credentials: true\r\nClear-Site-Data: "*"\r\n'
    b"Location: //evil.example\r\nContent-Security-Policy: default-src *\r\nRefresh: 0;url=//evil.example\r\n"
)
FORBIDDEN = (
    "set-cookie",
    "service-worker-allowed",
    "access-control-allow-origin",
    "clear-site-data",
    "location",
    "refresh",
)


def answer(status: bytes, body: bytes = b'{"message":"x"}') -> bytes:
    return b"HTTP/1.1 " + status + b" x\r\n" + JSON + b"Content-Length: %d\r\n\r\n" % len(body) + body


CHUNKED = OK + JSON + b"Transfer-Encoding: chunked\r\n\r\n"
ANSWERS: dict[str, tuple[bytes, frozenset[int]]] = {
    # what the agent sends -> statuses that a reader may get
    **{
        f"status {status.decode()}": (answer(status), frozenset({502}))
        for status in (b"401", b"407", b"301", b"302", b"304", b"426", b"421", b"599", b"600", b"999", b"099", b"+20")
    },
    "204 with a body": (answer(b"204"), frozenset({204, 502})),
    "headers for the origin": (OK + JSON + OURS + b"Content-Length: 2\r\n\r\n{}", frozenset({200, 502})),
    "a page": (
        OK + b"Content-Type: text/html\r\n" + OURS + b"Content-Length: 8\r\n\r\n<script>",
        frozenset({200, 502}),
    ),
    "nothing": (b"", frozenset({502})),
    "a switch that was not asked for": (
        b"HTTP/1.1 101 x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        frozenset({502}),
    ),
    "interim answers": (
        b"HTTP/1.1 103 x\r\n" + OURS + b"\r\n" + OK + JSON + b"Content-Length: 2\r\n\r\n{}",
        frozenset({200, 502}),
    ),
    "20,000 interim answers": (b"HTTP/1.1 102 x\r\n\r\n" * 20_000, frozenset({502})),
    "20,000 fields": (OK + b"A: b\r\n" * 20_000, frozenset({502})),
    "a field of 1 MB": (OK + b"A: " + b"a" * 1_000_000, frozenset({502})),
    "length too long": (OK + JSON + b"Content-Length: 9\r\n\r\n{}", frozenset({502})),
    "two lengths": (OK + JSON + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} ", frozenset({502})),
    "trailers": (CHUNKED + b"2\r\n{}\r\n0\r\n" + OURS + b"\r\n", frozenset({200, 502})),
    "compressed": (
        OK
        + JSON
        + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(gzip.compress(bytes(1 << 20)))
        + gzip.compress(bytes(1 << 20)),
        frozenset({200, 502}),
    ),
    "5 MB": (OK + JSON + b"Content-Length: 5000000\r\n\r\n" + b" " * 5_000_000, frozenset({502})),
    "lists in lists": (answer(b"200", b"[" * 50_000 + b"]" * 50_000), frozenset({200, 502})),
    "broken UTF-8": (answer(b"200", b'{"message":"\xff"}'), frozenset({200, 502})),
}
MESSAGES: dict[str, tuple[bytes, bool]] = {
    # message of the agent -> whether it is passed on
    "a list": (b'{"containers":[]}', True),
    "no JSON": (b"<script>", False),
    "broken UTF-8": (b'["\xff"]', False),
    "lists in lists": (b"[" * 50_000 + b"]" * 50_000, False),
    "many lists": (b"[" + b"[]," * 30_000 + b"[]]", True),
}


class HostileApi:
    """Answers each request with the current bytes."""

    def __init__(self) -> None:
        self.sent = b""

    async def serve(self, stream: Any) -> None:
        async with stream:
            await stream.receive_some(65536)
            with contextlib.suppress(trio.BrokenResourceError):  # the server has read enough
                await stream.send_all(self.sent)


SAMPLE = ("status 401", "204 with a body", "headers for the origin", "a switch that was not asked for", "two lengths")


@pytest.mark.parametrize("names", [SAMPLE, pytest.param(tuple(ANSWERS), marks=pytest.mark.soak)], ids=["few", "all"])
async def test_hostile_api_reaches_no_page(names: tuple[str, ...]) -> None:
    api, wrong = HostileApi(), list[object]()
    async with workspace_world() as scene, running_overlay_agent(scene, services={4: api.serve}):
        await eventually(lambda: _is_connected(scene))
        for name in names:
            api.sent, statuses = ANSWERS[name]
            with trio.fail_after(60):
                given = await scene.world.get(f"/api/v2/workspaceagents/{scene.agent_id}/containers")
            kind, leaked = (
                given.headers.get("content-type", ""),
                [field for field in FORBIDDEN if field in given.headers],
            )
            if given.status_code not in statuses or leaked or (given.content and "json" not in kind):
                wrong.append((name, given.status_code, kind, leaked, given.text[:100]))
        assert not wrong
        for name, (message, is_passed) in MESSAGES.items():
            await _check_watcher(scene, api, name, message, is_passed=is_passed)
        assert (await scene.world.get("/api/v2/users/me")).status_code == 200


async def _check_watcher(scene: AgentWorld, api: HostileApi, name: str, message: bytes, *, is_passed: bool) -> None:
    """Check that a reader who follows the containers gets the messages that are JSON only."""
    path = f"/api/v2/workspaceagents/{scene.agent_id}/containers/watch"
    api.sent = b"HTTP/1.1 101 x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    for part in (b"{}", message):
        api.sent += b"\x82" + (bytes([len(part)]) if len(part) < 126 else pack("!BQ", 127, len(part))) + part
    got: list[bytes] = []
    with trio.fail_after(60):
        watcher: WebSocketStream = await dial_link(scene.world, path, token=scene.world.token)
        async with watcher:
            while (data := await watcher.receive_message()) is not None:
                got.append(data if isinstance(data, bytes) else data.encode())
    assert got == [b"{}", message][: 1 + is_passed], name


async def _is_connected(scene: AgentWorld) -> bool:
    return bool((await scene.agent())["status"] == "connected")
