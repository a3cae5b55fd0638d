"""Terminals of the dashboard: WebSockets with typed text and sizes as JSON, and output as bytes."""

from __future__ import annotations

import json
from urllib.parse import urlencode
from uuid import UUID

import trio

from coder.base.secret import Secret
from coder.net.dial import DialPolicy
from coder.net.websocket import WebSocketStream, connect_websocket
from tests.kit.agents.scripted_agent import AgentWorld


async def open_terminal(view: AgentWorld, reconnect: UUID, command: str = "") -> WebSocketStream:
    """A terminal of 80 by 24, or the one that has this id already."""
    policy = DialPolicy(view.world.url, token=Secret(view.world.token))
    query = urlencode({"reconnect": reconnect, "width": 80, "height": 24, "command": command})
    return await connect_websocket(policy, f"/api/v2/workspaceagents/{view.agent_id}/pty?{query}")


async def type_text(stream: WebSocketStream, text: str) -> None:
    await stream.send_message(json.dumps({"data": text}).encode())


async def resize(stream: WebSocketStream, *, height: int, width: int) -> None:
    await stream.send_message(json.dumps({"height": height, "width": width}).encode())


async def read_until(stream: WebSocketStream, marker: bytes) -> bytes:
    """What is shown up to a text."""
    seen = b""
    with trio.fail_after(60):
        while marker not in seen:
            message = await stream.receive_message()
            assert message is not None, seen
            seen += message if isinstance(message, bytes) else message.encode()
    return seen
