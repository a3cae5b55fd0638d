"""The HTTP API of a workspace's agent, asked through the overlay (docs/protocol/agent-services.md#http)."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, urlencode

import h11
import msgspec
import trio

from coder.base.errors import CoderError
from coder.base.groups import single_failure
from coder.client.ready import Preparation, say_on_stderr
from coder.client.shared_link import SharedLink, open_link_for_command
from coder.net.http1 import HttpClient
from coder.net.policy import DialPolicy
from coder.net.stream_exchange import exchange

if TYPE_CHECKING:
    from coder.client.link import WorkspaceLink

T = TypeVar("T")

PORT = 4
LONGEST = 330.0
"""Seconds for one answer; the agent lets a request wait for five minutes."""
OPEN_TIME = 300.0
"""Ours: seconds for all before the first request: a build, an agent that connects, a path to it."""
_SAID = 1000
"Characters of an agent's own words that are passed on (ours): whoever has the workspace may let it say anything."
_SILENCE = (h11.ProtocolError, trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError, OSError)


class StartedCommand(msgspec.Struct, frozen=True):
    """Of `processes/start`."""

    id: str


class CommandOutput(msgspec.Struct, frozen=True):
    """Of `processes/ID/output`."""

    output: str
    exit_code: int | None = None
    running: bool = False


class FolderEntry(msgspec.Struct, frozen=True):
    """One of a `FolderListing`."""

    absolute_path_string: str
    is_dir: bool


class FolderListing(msgspec.Struct, frozen=True):
    """Of `list-directory`."""

    contents: list[FolderEntry]


class _Refusal(msgspec.Struct, frozen=True):
    message: str
    detail: str = ""


class AgentRefusedError(CoderError):
    """The agent answered with an error status; the message is its own."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__("agent_api", message)
        self.status = status


class AgentApi:
    """An open way to one agent."""

    def __init__(self, link: SharedLink | WorkspaceLink) -> None:
        self._link = link

    async def ask(self, method: str, path: str, *, query: Mapping[str, Any] | None = None, body: bytes = b"") -> bytes:
        """The body of a successful answer; `path` is below /api/v0. Raises AgentRefusedError and other CoderErrors."""
        target = f"/api/v0/{quote(path)}" + (f"?{urlencode(query)}" if query else "")
        try:
            with trio.fail_after(LONGEST):
                async with await self._link.connect(PORT) as stream:
                    answer = await exchange(stream, method, target, content=body)
        except _SILENCE as error:
            raise CoderError("agent_api", "the workspace's agent did not answer") from error
        if answer.status >= 400:
            raise AgentRefusedError(answer.status, _said(answer.status, answer.body))
        return answer.body

    async def ask_for(self, kind: type[T], method: str, path: str, body: Any = None, /, **query: Any) -> T:
        """As `ask`, with JSON both ways, the answer as `kind`."""
        content = json.dumps(body).encode() if body is not None else b""
        answer = await self.ask(method, path, query=query, body=content)
        try:
            return msgspec.json.decode(answer, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise CoderError("agent_api", "the workspace's agent answered with something else than expected") from error


def _said(status: int, body: bytes) -> str:
    try:
        found = msgspec.json.decode(body, type=_Refusal)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return f"the workspace's agent answered {status}"
    return (f"{found.message}: {found.detail}" if found.detail else found.message)[:_SAID]


@asynccontextmanager
async def open_agent_api(policy: DialPolicy, directory: Path, workspace: str) -> AsyncIterator[AgentApi]:
    """Of a workspace by its name, `[owner/]workspace[.agent]`; it is started when it is stopped.

    Raises CoderError, HttpError, NetError; after OPEN_TIME without a way to the agent, CoderError, too.
    """
    with single_failure(), trio.CancelScope(deadline=trio.current_time() + OPEN_TIME) as opening:
        async with HttpClient(policy) as http:
            prepare = Preparation(http, say_on_stderr)
            target = await prepare.wait_connected(await prepare.find(workspace))
            async with open_link_for_command(policy, directory, prepare, target, direct=True) as link:
                await link.wait_reachable()
                opening.deadline = math.inf
                yield AgentApi(link)
    if opening.cancelled_caught:
        raise CoderError(
            "agent_api",
            f"there was no way to the agent of {workspace} within {OPEN_TIME:g} s",
            "It may still be starting, or its machine may be away: `coder show` tells.",
        )
