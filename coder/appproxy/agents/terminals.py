"""Terminals of agents: dial overlay port 2, send the request, copy bytes.

Source: docs/protocol/agent-services.md#terminals.
"""

from __future__ import annotations

import struct
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from uuid import UUID

import trio

from coder.api.base import codec
from coder.api.base.refusals import Invalid
from coder.appproxy.agents.dialing import PTY_PORT, Dials, dial
from coder.domain.foundation.numbers import decimal

_DEFAULT_SIZE = 80
_MAX_SIZE = 65535
_MOST = 65535
"""Maximum size that two length bytes can express."""


@dataclass(frozen=True, slots=True)
class TerminalSpec:
    """Query of the request: session, size and command."""

    id: UUID
    height: int = _DEFAULT_SIZE
    width: int = _DEFAULT_SIZE
    command: str = ""
    container: str = ""
    container_user: str = ""
    backend_type: str = ""


def read_spec(query: Mapping[str, str]) -> TerminalSpec:
    """Parse the query. Raises Invalid with one validation for each mistake."""
    wrong: list[tuple[str, str]] = []
    session = _uuid(query.get("reconnect", ""))
    if session is None:
        wrong.append(("reconnect", 'Query param "reconnect" must be a valid uuid'))
    sizes: dict[str, int] = {}
    for name in ("height", "width"):
        text = query.get(name, "") or str(_DEFAULT_SIZE)
        number = decimal(text)
        if number is not None and number <= _MAX_SIZE:
            sizes[name] = number
        else:
            wrong.append((name, f'Query param "{name}" must be a valid 16-bit positive integer'))
    backend = query.get("backend_type", "")
    if backend not in {"", "screen", "buffered"}:
        wrong.append(("backend_type", f'Query param "backend_type" has invalid value: "{backend}"'))
    if wrong or session is None:
        raise Invalid("Invalid query parameters.", validations=wrong)
    spec = TerminalSpec(
        session,
        sizes["height"],
        sizes["width"],
        query.get("command", ""),
        query.get("container", ""),
        query.get("container_user", ""),
        backend,
    )
    if len(_encoded(spec)) > _MOST:
        message = f"command, container and user are more than the {_MOST} bytes that an agent takes"
        raise Invalid("Invalid query parameters.", validations=[("command", message)])
    return spec


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def init_message(spec: TerminalSpec) -> bytes:
    """Return length and JSON in one piece: a genuine agent reads each with a single call."""
    body = _encoded(spec)
    return struct.pack("<H", len(body)) + body


def _encoded(spec: TerminalSpec) -> bytes:
    return codec.encode(
        {
            "ID": str(spec.id),
            "Height": spec.height,
            "Width": spec.width,
            "Command": spec.command,
            "Container": spec.container,
            "ContainerUser": spec.container_user,
            "BackendType": spec.backend_type,
        }
    )


async def attach(
    world: Dials,
    agent_id: UUID,
    spec: TerminalSpec,
    receive: Callable[[], Awaitable[str | bytes]],
    send: Callable[[bytes], Awaitable[None]],
) -> None:
    """Copy bytes until the terminal ends or the caller is cancelled (the browser disconnected).

    `receive` returns the browser's input (bytes or text: JSON objects, passed on unchanged), `send` takes terminal
    output. Raises BadGateway when the agent cannot be reached.
    """
    stream = await dial(world, agent_id, PTY_PORT)
    async with stream:
        await stream.send_all(init_message(spec))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_upstream, stream, receive)
            try:
                while data := await stream.receive_some(32768):
                    await send(bytes(data))
            except trio.BrokenResourceError:
                pass  # the agent disconnected: the terminal ended
            nursery.cancel_scope.cancel()


async def _upstream(stream: trio.abc.HalfCloseableStream, receive: Callable[[], Awaitable[str | bytes]]) -> None:
    try:
        while True:
            message = await receive()
            await stream.send_all(message.encode() if isinstance(message, str) else message)
    except trio.BrokenResourceError:
        pass  # the reading side gets the same error, and ends the session
