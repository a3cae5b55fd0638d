"""Agent of a prebuilt workspace: it restarts when a user claims the workspace, and never otherwise."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio

from coder.agent import prebuild_claim
from coder.agent.prebuild_claim import has_claim_event, wait_until_claimed
from coder.net.policy import DialPolicy

EVENT = b'event: data\ndata: {"workspace_id":"x","reason":"prebuild_claimed","owner_id":"y"}\n\n'
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
PAGE = b"HTTP/1.1 404 Not Found\r\nContent-Length: 21\r\n\r\ndefault backend - 404"
"Answer of an ingress controller while the server restarts."
NEVER = b"HTTP/1.1 409 Conflict\r\nContent-Length: 2\r\n\r\n{}"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (EVENT, True),
        (b"event: ping\n\n" + EVENT, True),
        (EVENT[:40], False),
        (b"data: no json\n\n", False),
        (b'data: ["prebuild_claimed"]\n\n', False),
        (b'data: {"reason":"other"}\n\n', False),
        (b"data: " + b"[" * 100_000 + b"\n\n", False),
    ],
)
def test_claim_event(text: bytes, found: bool) -> None:
    assert has_claim_event(text) is found


@asynccontextmanager
async def server(*answers: bytes) -> AsyncIterator[DialPolicy]:
    """Answer one connection after the other."""
    left = list(answers)

    async def serve(stream: trio.SocketStream) -> None:
        async with stream:
            await stream.receive_some()
            await stream.send_all(left.pop(0))

    async with trio.open_nursery() as nursery:
        start: Callable[..., Any] = nursery.start
        listeners = await start(trio.serve_tcp, serve, 0)
        port = listeners[0].socket.getsockname()[1]
        yield DialPolicy(f"http://127.0.0.1:{port}", proxies={})
        nursery.cancel_scope.cancel()


async def test_owned_workspace_returns_false() -> None:
    async with server(NEVER) as policy:
        assert await wait_until_claimed(policy) is False


async def test_claim_survives_reconnects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prebuild_claim, "_FIRST_DELAY", 0.001)
    monkeypatch.setattr(prebuild_claim, "_LAST_DELAY", 0.001)
    async with server(HEAD + b"event: ping\n\n", b"", HEAD + EVENT[:20], PAGE, HEAD + EVENT) as policy:
        assert await wait_until_claimed(policy) is True


async def test_older_server_knows_no_claim() -> None:
    body = b'{"message":"Route not found."}'
    head = f"HTTP/1.1 404 Not Found\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    async with server(head + body) as policy:
        assert await wait_until_claimed(policy) is False
