"""Link to an agent on the overlay that another process of the user keeps warm (overlay_process.py)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

import msgspec
import trio

from coder.base.errors import CoderError
from coder.base.json_types import JsonObject, as_list, as_object, as_text
from coder.client.overlay_wire import is_own, receive_frame, send_frame, token_digest
from coder.mesh.description import PingResult
from coder.net.policy import DialPolicy

if TYPE_CHECKING:
    from coder.client.link import WorkspaceLink
    from coder.client.ready import Preparation, ReadyAgent
    from coder.tailnet.verdicts import TransportVerdict

_socket_path: Path | None = None


def use_overlay(path: Path) -> None:
    """Set the path of the overlay's socket; a command server calls this for its children."""
    global _socket_path
    _socket_path = path


@dataclass(frozen=True, slots=True)
class SharedLink:
    """Subset of WorkspaceLink that works across processes."""

    request: JsonObject
    regions: dict[int, str] = field(default_factory=dict)

    async def wait_reachable(self, timeout: float = 0.0) -> None:
        """Do nothing: the agent's answer was awaited before the link was opened."""

    async def connect(self, port: int) -> trio.SocketStream:
        """Open a TCP stream to a port of the agent. Raise CoderError."""
        stream, _ = await _ask({**self.request, "verb": "connect", "port": port})
        return stream

    async def ping(self) -> PingResult:
        """Ping the agent. Raise CoderError if the ping is lost."""
        stream, answer = await _ask({**self.request, "verb": "ping"})
        await trio.aclose_forcefully(stream)
        return msgspec.convert(answer["ping"], PingResult)

    async def explain(self, last: PingResult | None) -> tuple[list[TransportVerdict], JsonObject]:
        """Return the results of `explain_link` and `describe_path` in the other process."""
        from coder.tailnet.verdicts import TransportVerdict

        stream, answer = await _ask({**self.request, "verb": "explain", "last": asdict(last) if last else None})
        await trio.aclose_forcefully(stream)
        return msgspec.convert(answer["transports"], list[TransportVerdict]), {**as_object(answer["path"])}


@asynccontextmanager
async def open_link_for_command(
    policy: DialPolicy, directory: Path, prepare: Preparation, target: ReadyAgent, *, direct: bool, is_own: bool = False
) -> AsyncIterator[SharedLink | WorkspaceLink]:
    """Open a link to the agent of `target`: on the shared overlay if it exists, otherwise or with `is_own` a separate
    one."""
    from coder.client.link import open_link

    agent = target.agent.id
    if not is_own:
        shared = await open_shared_link(
            policy, directory, agent, direct=direct, may_connect=lambda: prepare.may_connect(target)
        )
        if shared is not None:
            yield shared
            return
    async with open_link(policy, agent, direct=direct) as link:
        yield link


async def open_shared_link(
    policy: DialPolicy, directory: Path, agent_id: UUID, *, direct: bool, may_connect: Callable[[], Awaitable[bool]]
) -> SharedLink | None:
    """Return a link on the shared overlay after the agent answers; None if the caller must open a separate link.

    `may_connect` asks the server, as an open tunnel is no permission. Credentials of this command alone (a token,
    headers, a proxy's password) are never passed to a process that outlives it.
    """
    if _socket_path is None or policy.token is None or not _is_shareable(policy):
        return None
    request: JsonObject = {
        "directory": str(directory.absolute()),
        "url": policy.url,
        "token": token_digest(policy.token.reveal()),
        "proxies": dict(policy.proxies),
        "direct": direct,
        "agent": str(agent_id),
    }
    regions: dict[int, str] = {}
    is_allowed = is_open = False

    async def ask_server() -> None:
        nonlocal is_allowed
        is_allowed = await may_connect()

    async def ask_overlay() -> None:
        nonlocal is_open
        try:
            stream, answer = await _ask({**request, "verb": "reach"})
        except (CoderError, OSError, trio.BrokenResourceError, ValueError, KeyError):
            return  # an error recurs, with its own message, on the separate link
        await trio.aclose_forcefully(stream)
        regions.update({int(number): as_text(name) for number, name in as_object(answer["regions"]).items()})
        is_open = True

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask_overlay)
        await ask_server()
        if not is_allowed:
            nursery.cancel_scope.cancel()
    return SharedLink(request, regions) if is_allowed and is_open else None


def _is_shareable(policy: DialPolicy) -> bool:
    """Return whether the policy has only settings of the configuration directory and the machine, none of this
    command."""
    files = policy.ca_file or policy.client_cert or policy.client_key
    return not (policy.headers or files or any("@" in value for value in policy.proxies.values()))


async def _ask(request: JsonObject) -> tuple[trio.SocketStream, JsonObject]:
    connection = trio.socket.socket(trio.socket.AF_UNIX)
    try:
        await connection.connect(str(_socket_path))
        if not is_own(connection):
            raise CoderError("overlay", "the shared overlay belongs to another user")
        stream = trio.SocketStream(connection)
        await send_frame(stream, request)
        answer = await receive_frame(stream)
        if "error" in answer:
            raise CoderError(*map(as_text, as_list(answer["error"])))
    except BaseException:
        connection.close()
        raise
    return stream, answer
