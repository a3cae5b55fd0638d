"""Workspace terminal over the deployment's WebSocket, as browsers use it: no mesh, and it survives disconnects.

A reconnect with the same id reattaches to the same shell. Input is sent as JSON messages `{"data"}` and `{"height",
"width"}`, output is received as bytes.
"""

from __future__ import annotations

import codecs
import json
from dataclasses import dataclass
from urllib.parse import urlencode
from uuid import UUID

import trio

from coder.client.standard_streams import StandardInput, StandardOutput
from coder.client.terminal_mode import raw_terminal, terminal_size, watch_size
from coder.net.policy import DialPolicy
from coder.net.websocket import WebSocketStream, connect_websocket


@dataclass(frozen=True, slots=True)
class TerminalRequest:
    """Parameters of a terminal."""

    agent_id: UUID
    reconnect: UUID
    command: str = ""
    container: str = ""
    container_user: str = ""


async def run_terminal(policy: DialPolicy, request: TerminalRequest) -> None:
    """Run until the terminal ends; the end of input does not stop the output.

    Raise HttpError or NetError.
    """
    width, height = terminal_size()
    query = {"reconnect": str(request.reconnect), "width": width, "height": height, "command": request.command}
    if request.container:
        query |= {"container": request.container, "container_user": request.container_user}
    path = f"/api/v2/workspaceagents/{request.agent_id}/pty?{urlencode(query)}"
    stream = await connect_websocket(policy, path)
    async with stream:
        with raw_terminal(True):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_feed, stream)
                nursery.start_soon(_tell_size, stream)
                await _drain(stream)
                nursery.cancel_scope.cancel()


async def _feed(stream: WebSocketStream) -> None:
    source = StandardInput()
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    try:
        while data := await source.receive_some():
            text = decoder.decode(data)
            if text:
                await stream.send_message(json.dumps({"data": text}).encode())
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        pass  # the terminal ended; its reader reports that
    finally:
        with trio.CancelScope(shield=True):
            await source.aclose()


async def _tell_size(stream: WebSocketStream) -> None:
    async def report(columns: int, lines: int) -> None:
        await stream.send_message(json.dumps({"height": lines, "width": columns}).encode())

    try:
        await watch_size(report)
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        pass  # as in `_feed`


async def _drain(stream: WebSocketStream) -> None:
    sink = StandardOutput(1)
    try:
        while (message := await stream.receive_message()) is not None:
            await sink.send_all(message.encode() if isinstance(message, str) else message)
    except trio.BrokenResourceError:
        pass  # disconnected: the shell continues and can be reattached
    finally:
        with trio.CancelScope(shield=True):
            await sink.aclose()
