"""Following logs over a WebSocket: build and import logs (one object a message), agent logs (arrays)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import trio

from coder.base.retry import Backoff
from coder.net.errors import NetError
from coder.net.policy import DialPolicy
from coder.net.websocket import connect_websocket


async def follow_job_logs(policy: DialPolicy, path: str, *, after: int = -1) -> AsyncIterator[dict[str, Any]]:
    """Each log line from `after` on until the job has ended; reconnects where it stopped when the network breaks.

    `path` is the logs endpoint, e.g. `/api/v2/workspacebuilds/{id}/logs`. Raises HttpError when refused, NetError
    when the server stays away.
    """
    async for value in _follow(policy, path, after):
        yield value


async def follow_agent_logs(policy: DialPolicy, agent_id: str, *, after: int = 0) -> AsyncIterator[dict[str, Any]]:
    """Each agent log line; ends when a newer build replaces the agent."""
    async for value in _follow(policy, f"/api/v2/workspaceagents/{agent_id}/logs", after):
        yield value


async def _follow(policy: DialPolicy, path: str, after: int) -> AsyncIterator[dict[str, Any]]:
    backoff = Backoff(0.1, 5)
    attempts = 0
    while True:
        try:
            socket = await connect_websocket(policy, f"{path}?follow&after={after}")
        except NetError:
            attempts += 1
            if attempts > 8:
                raise
            await trio.sleep(backoff.next_delay())
            continue
        try:
            while (message := await socket.receive_message()) is not None:
                attempts = 0
                value = json.loads(message)
                for line in value if isinstance(value, list) else [value]:
                    after = max(after, int(line["id"]))
                    yield line
            if socket.close_code == 1000:
                return
        except trio.BrokenResourceError:
            pass  # connect again below, from the last line seen
        finally:
            with trio.CancelScope(shield=True):
                await trio.aclose_forcefully(socket)
        await trio.sleep(backoff.next_delay())
