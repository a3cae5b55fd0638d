"""Workspace terminal over the deployment's WebSocket, for tests with many terminals."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlencode
from uuid import UUID, uuid4

from coder.net.websocket import connect_websocket

if TYPE_CHECKING:
    from coder.net.policy import DialPolicy
    from coder.net.websocket import WebSocketStream


@asynccontextmanager
async def open_terminal(policy: DialPolicy, agent: UUID, command: str) -> AsyncIterator[WebSocketStream]:
    """Open a new terminal. Raise HttpError or NetError."""
    query = urlencode({"reconnect": str(uuid4()), "width": 80, "height": 24, "command": command})
    async with await connect_websocket(policy, f"/api/v2/workspaceagents/{agent}/pty?{query}") as stream:
        yield stream
