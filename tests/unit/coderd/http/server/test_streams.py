"""An idle stream: ping frames over a WebSocket, ping events over SSE, no message of either form."""

from __future__ import annotations

import base64
import json
import os
from typing import Any

import pytest
import trio

from coder.appproxy.http import websocket_bounds
from coder.coderd.http.server import streams
from coder.coderd.services.workspaces import agent_streams, workspace_streams
from tests.kit.agents.scripted_agent import AgentWorld, workspace_world

HANDSHAKE = (
    "GET {path} HTTP/1.1\r\nHost: here\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: {key}\r\nCoder-Session-Token: {token}\r\n\r\n"
)
PLAIN = "GET {path} HTTP/1.1\r\nHost: here\r\nCoder-Session-Token: {token}\r\n\r\n"
TEXT, PING = 1, 9
PINGED_FIRST = {"type": "ping", "data": None}
"""First message of one of the original's streams; an editor's extension treats any later one as an error."""
IDLE_TURNS = 3


def frames(data: bytes) -> list[tuple[int, bytes]]:
    """Return opcodes and payloads of a server's complete frames."""
    results = []
    while len(data) >= 2:
        size, at = data[1], 2
        if size > 125:
            at = 4 if size == 126 else 10
            size = int.from_bytes(data[2:at], "big")
        if len(data) < at + size:
            break
        results.append((data[0] & 0xF, data[at : at + size]))
        data = data[at + size :]
    return results


async def idle(s: AgentWorld, path: str, turns: list[Any]) -> list[tuple[int, bytes]]:
    """Return the frames of a stream until its source has been idle so often, and it was pinged since."""
    port = int(s.world.url.rpartition(":")[2])
    turns.clear()
    async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
        key = base64.b64encode(os.urandom(16)).decode()
        await stream.send_all(HANDSHAKE.format(path=path, key=key, token=s.world.token).encode())
        data = b""
        with trio.fail_after(60):
            while turns.count(None) < IDLE_TURNS:
                data += await stream.receive_some(65536)
            pings = 0
            while pings < 2:  # the frames of a turn precede them
                more = await stream.receive_some(65536)
                pings += more.count(b"\x89\x00")
                data += more
    return frames(data.partition(b"\r\n\r\n")[2])


async def test_idle_stream_only_pings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_streams, "PING_EVERY", 0.02)
    monkeypatch.setattr(workspace_streams, "PING_EVERY", 0.02)
    monkeypatch.setattr(websocket_bounds, "PING", 0.05)
    turns: list[Any] = []
    really = streams._send_shaped

    async def send_shaped(value: Any, shape: Any) -> None:
        turns.append(value)
        await really(value, shape)

    monkeypatch.setattr(streams, "_send_shaped", send_shaped)
    async with workspace_world() as s:
        workspace, agent = s.workspace["id"], s.agent_id
        for path, begins in (
            (f"/api/v2/workspaces/{workspace}/watch-ws", [PINGED_FIRST]),
            (f"/api/v2/workspaces/{workspace}/agent-connection-watch", []),
            (f"/api/v2/workspaceagents/{agent}/watch-metadata-ws", []),
            (f"/api/v2/workspaceagents/{agent}/logs?follow", []),
        ):
            received = await idle(s, path, turns)
            assert {opcode for opcode, _ in received} <= {TEXT, PING}, path
            texts = [json.loads(payload) for opcode, payload in received if opcode == TEXT]
            told = [value for value in turns if value is not None]
            assert texts[: len(begins)] == begins, path
            assert len(texts) == len(begins) + len(told), path
            assert PINGED_FIRST not in texts[len(begins) :], path
        async with await trio.open_tcp_stream("127.0.0.1", int(s.world.url.rpartition(":")[2])) as stream:
            path = f"/api/v2/workspaces/{workspace}/watch"
            await stream.send_all(PLAIN.format(path=path, token=s.world.token).encode())
            events = b""
            with trio.fail_after(60):
                while events.count(b"event: ping\n\n") <= IDLE_TURNS:
                    events += await stream.receive_some(65536)
        assert events.count(b"event: data\n") == 1
