"""Containers of an agent's machine as they change: the agent's WebSocket, forwarded message by message."""

from __future__ import annotations

import base64
import os
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING
from uuid import UUID

import h11
import msgspec
import trio

from coder.api.base import codec
from coder.api.base.refusals import BadGateway, Forbidden
from coder.appproxy.agents.dialing import dial
from coder.coderd.services.agents.agent_access import load_agent
from coder.coderd.services.agents.agent_http import HTTP_PORT, require_connected
from coder.coderd.services.network.stream_http import AgentAnswer
from coder.domain.access.policy import Subject
from coder.net.bounded_http import BoundedHttp
from coder.net.websocket import WebSocketStream

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

_PATH = "/api/v0/containers/watch"
_ANSWER_TIMEOUT = 20.0
_MAX_MESSAGE = 4 << 20
_MAX_REFUSAL = 64 << 10


async def require_watchable(ctx: Context, subject: Subject, agent_id: UUID) -> None:
    """Require a connected agent that the caller may read. Raises NotFound, Invalid (not connected)."""
    require_connected(ctx, await load_agent(ctx, subject, agent_id))


async def watch_containers(ctx: Context, subject: Subject, agent_id: UUID) -> AsyncIterator[msgspec.Raw]:
    """Yield each list that the agent sends. Raises NotFound, Invalid, Forbidden (the feature is off), BadGateway."""
    await require_watchable(ctx, subject, agent_id)
    stream = await dial(ctx, agent_id, HTTP_PORT)
    try:
        try:
            with trio.fail_after(_ANSWER_TIMEOUT):
                socket = await _upgrade(stream)
            while (message := await socket.receive_message()) is not None:
                data = message.encode() if isinstance(message, str) else message
                # Only JSON is forwarded. Checked without making objects of it: for 4 MiB of empty lists that takes
                # 600 ms, in which no other user is served.
                codec.decode(data, msgspec.Raw)
                data.decode()
                yield msgspec.Raw(data)
        except (h11.RemoteProtocolError, trio.BrokenResourceError, trio.TooSlowError, ValueError) as error:
            raise BadGateway("The agent's answer could not be read.") from error
    finally:
        with trio.CancelScope(shield=True, deadline=trio.current_time() + 1):
            await trio.aclose_forcefully(stream)


async def _upgrade(stream: trio.abc.Stream) -> WebSocketStream:
    connection = BoundedHttp(h11.CLIENT)
    headers = [
        ("Host", "agent"),
        ("Connection", "Upgrade"),
        ("Upgrade", "websocket"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", base64.b64encode(os.urandom(16)).decode()),
    ]
    sent = connection.send(h11.Request(method="GET", target=_PATH, headers=headers)) or b""
    await stream.send_all(sent + (connection.send(h11.EndOfMessage()) or b""))
    status, body = 0, bytearray()
    while True:
        event = await connection.read_event(stream)
        if isinstance(event, h11.InformationalResponse) and event.status_code == 101:
            return WebSocketStream(stream, client=True, initial=connection.trailing_data[0], max_message=_MAX_MESSAGE)
        if isinstance(event, h11.Response):
            status = event.status_code
        elif isinstance(event, h11.Data):
            body += event.data[: _MAX_REFUSAL - len(body)]
        elif isinstance(event, h11.EndOfMessage):
            raise _refusal(AgentAnswer(status, bytes(body)))
        elif not isinstance(event, h11.InformationalResponse):
            raise BadGateway("The agent ended the connection without an answer.")


def _refusal(answer: AgentAnswer) -> Forbidden | BadGateway:
    try:
        body = codec.decode(answer.body, dict[str, object])
    except ValueError:
        body = {}
    message, detail = str(body.get("message", "")), str(body.get("detail", ""))
    if answer.status == 403 and message:
        return Forbidden(message, detail)
    return BadGateway("The agent does not report containers.", message or f"it answered {answer.status}")
