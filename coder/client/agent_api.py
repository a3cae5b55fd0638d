"""The HTTP API of a workspace's agent, asked through the overlay (docs/protocol/agent-services.md#http)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

import h11
import trio

from coder.base.errors import CoderError
from coder.client.ready import Preparation, say_on_stderr
from coder.client.shared_link import SharedLink, open_link_for_command
from coder.net.http1 import HttpClient
from coder.net.policy import DialPolicy
from coder.net.stream_exchange import exchange

if TYPE_CHECKING:
    from coder.client.link import WorkspaceLink

PORT = 4
LONGEST = 330.0
"""Seconds for one answer; the agent lets a request wait for five minutes."""


class AgentApi:
    """An open way to one agent."""

    def __init__(self, link: SharedLink | WorkspaceLink) -> None:
        self._link = link

    async def ask(self, method: str, path: str, *, query: Mapping[str, Any] | None = None, body: bytes = b"") -> bytes:
        """The body of a successful answer; `path` is below /api/v0. Raises CoderError with the agent's own words."""
        target = f"/api/v0/{quote(path)}" + (f"?{urlencode(query)}" if query else "")
        try:
            with trio.fail_after(LONGEST):
                async with await self._link.connect(PORT) as stream:
                    answer = await exchange(stream, method, target, content=body)
        except (h11.RemoteProtocolError, trio.BrokenResourceError, trio.TooSlowError) as error:
            raise CoderError("agent_api", "the workspace's agent did not answer") from error
        if answer.status >= 400:
            raise CoderError("agent_api", _said(answer.body) or f"the workspace's agent answered {answer.status}")
        return answer.body

    async def ask_json(self, method: str, path: str, body: Any = None, /, **query: Any) -> Any:
        """As `ask`, with JSON both ways."""
        content = json.dumps(body).encode() if body is not None else b""
        try:
            return json.loads(await self.ask(method, path, query=query, body=content))
        except (ValueError, RecursionError) as error:
            raise CoderError("agent_api", "the workspace's agent answered with no JSON") from error


def _said(body: bytes) -> str:
    try:
        found = json.loads(body)
        detail = f": {found['detail']}" if found.get("detail") else ""
        return f"{found['message']}{detail}"
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return ""


@asynccontextmanager
async def open_agent_api(policy: DialPolicy, directory: Path, workspace: str) -> AsyncIterator[AgentApi]:
    """Of a workspace by its name, `[owner/]workspace[.agent]`; it is started when it is stopped.

    Raises CoderError, HttpError, NetError.
    """
    async with HttpClient(policy) as http:
        prepare = Preparation(http, say_on_stderr)
        target = await prepare.wait_connected(await prepare.find(workspace))
        async with open_link_for_command(policy, directory, prepare, target, direct=True) as link:
            await link.wait_reachable()
            yield AgentApi(link)
