"""Client of the HTTP API of a workspace's agent, over the overlay (docs/protocol/agent-services.md#http)."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote, urlencode

import h11
import msgspec
import trio

from coder.base.errors import CoderError
from coder.base.exception_groups import single_failure
from coder.base.json_types import Json
from coder.client.ready import Preparation, print_to_stderr
from coder.client.shared_link import SharedLink, open_link_for_command
from coder.net.http1 import HttpClient
from coder.net.policy import DialPolicy
from coder.net.stream_exchange import exchange

if TYPE_CHECKING:
    from coder.client.link import WorkspaceLink

T = TypeVar("T")

PORT = 4
LONGEST = 330.0
"""Timeout of a request in seconds; the agent holds a request for up to five minutes."""
OPEN_TIME = 300.0
"""Timeout in seconds (our choice) for everything before the first request: a build, the agent's connection, a path to
it."""
_MAX_MESSAGE = 1000
"Maximum characters of an agent's message that are passed on (our choice): the workspace's users control its text."
_SILENCE = (h11.ProtocolError, trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError, OSError)


class StartedCommand(msgspec.Struct, frozen=True):
    """Response of `processes/start`."""

    id: str


class CommandOutput(msgspec.Struct, frozen=True):
    """Response of `processes/ID/output`."""

    output: str
    exit_code: int | None = None
    running: bool = False


class FolderEntry(msgspec.Struct, frozen=True):
    """Entry of a `FolderListing`."""

    absolute_path_string: str
    is_dir: bool


class FolderListing(msgspec.Struct, frozen=True):
    """Response of `list-directory`."""

    contents: list[FolderEntry]


class _Refusal(msgspec.Struct, frozen=True):
    message: str
    detail: str = ""


class AgentRefusedError(CoderError):
    """Error status of the agent, with the agent's message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__("agent_api", message)
        self.status = status


class AgentApi:
    """Open connection to an agent."""

    def __init__(self, link: SharedLink | WorkspaceLink) -> None:
        self._link = link

    async def ask(self, method: str, path: str, *, query: Mapping[str, Json] | None = None, body: bytes = b"") -> bytes:
        """Send a request and return the body of a successful answer; `path` is below /api/v0. Raise AgentRefusedError
        and other CoderErrors."""
        target = f"/api/v0/{quote(path)}" + (f"?{urlencode(query)}" if query else "")
        try:
            with trio.fail_after(LONGEST):
                async with await self._link.connect(PORT) as stream:
                    answer = await exchange(stream, method, target, content=body)
        except _SILENCE as error:
            raise CoderError("agent_api", "the workspace's agent did not answer") from error
        if answer.status >= 400:
            raise AgentRefusedError(answer.status, _error_message(answer.status, answer.body))
        return answer.body

    async def ask_for(self, kind: type[T], method: str, path: str, body: Json = None, /, **query: Json) -> T:
        """Send a request as `ask` does, with JSON in both directions, and return the answer as `kind`."""
        content = json.dumps(body).encode() if body is not None else b""
        answer = await self.ask(method, path, query=query, body=content)
        try:
            return msgspec.json.decode(answer, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise CoderError("agent_api", "the workspace's agent sent an unexpected answer") from error


def _error_message(status: int, body: bytes) -> str:
    try:
        refusal = msgspec.json.decode(body, type=_Refusal)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return f"the workspace's agent answered {status}"
    return (f"{refusal.message}: {refusal.detail}" if refusal.detail else refusal.message)[:_MAX_MESSAGE]


@asynccontextmanager
async def open_agent_api(policy: DialPolicy, directory: Path, workspace: str) -> AsyncIterator[AgentApi]:
    """Open the API of a workspace's agent by name, `[owner/]workspace[.agent]`; start the workspace if it is stopped.

    Raise CoderError, HttpError or NetError; also CoderError after OPEN_TIME without a connection to the agent.
    """
    with single_failure(), trio.CancelScope(deadline=trio.current_time() + OPEN_TIME) as opening:
        async with HttpClient(policy) as http:
            prepare = Preparation(http, print_to_stderr)
            target = await prepare.wait_connected(await prepare.find(workspace))
            async with open_link_for_command(policy, directory, prepare, target, direct=True) as link:
                await link.wait_reachable()
                opening.deadline = math.inf
                yield AgentApi(link)
    if opening.cancelled_caught:
        raise CoderError(
            "agent_api",
            f"timed out connecting to the agent of {workspace} after {OPEN_TIME:g} s",
            "The agent may still be starting, or its machine may be offline. Check with `coder show`.",
        )
