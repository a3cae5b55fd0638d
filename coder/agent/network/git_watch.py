"""`GET /api/v0/git/watch`: a WebSocket that reports changes in the workspace's repositories.

The first message has the whole state, later ones the differences: on request (`{"type": "refresh"}`) and every few
seconds. All viewers of an agent share one poll. Source: docs/protocol/agent-services.md#http.
"""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime
from typing import cast

import trio

from coder.agent.network.http_messages import HttpRequest
from coder.agent.state import AgentState
from coder.agent.workspace import environment
from coder.agent.workspace.files import workdir
from coder.agent.workspace.git_changes import GitError, Repository, Scan, changes, scan
from coder.base.json_types import JsonObject
from coder.net.websocket import WebSocketStream

INTERVAL = 10.0
"""Seconds (ours) between two unrequested polls; a poll runs several git commands per repository."""
MAX_VIEWERS = 16
"""Viewers of one agent (ours); each receives the whole state once."""
PING_INTERVAL, PING_TIMEOUT = 30.0, 60.0
"""Seconds (ours). The timeout also applies to a message: on a slow line a ping waits until the changes are sent."""


async def watch_git(state: AgentState, _request: HttpRequest, socket: WebSocketStream) -> None:
    """Serve a viewer until it disconnects or does not answer pings. A viewer over the limit is closed with 1013 (try
    again later)."""
    if state.repositories.watchers >= MAX_VIEWERS:
        await socket.close(1013, f"{MAX_VIEWERS} viewers are already connected")
        return
    try:
        with state.repositories.watched():
            await _serve(_Viewer(state, socket), socket)
    except* (trio.BrokenResourceError, trio.ClosedResourceError):
        pass  # the client disconnected without a close frame


async def _serve(viewer: _Viewer, socket: WebSocketStream) -> None:
    request_poll, requested = trio.open_memory_channel[None](1)

    async def listen(scope: trio.CancelScope) -> None:
        while (message := await socket.receive_message()) is not None:
            if _is_refresh(message):
                with suppress(trio.WouldBlock):  # one poll answers all requests made before it
                    request_poll.send_nowait(None)
        scope.cancel()

    async def keep_alive(scope: trio.CancelScope) -> None:
        while await socket.ping(PING_TIMEOUT):  # noqa: ASYNC110 - silence causes no event
            await trio.sleep(PING_INTERVAL)
        scope.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(listen, nursery.cancel_scope)
        nursery.start_soon(keep_alive, nursery.cancel_scope)
        await viewer.report(requested=True, since=trio.current_time() - INTERVAL)
        while True:
            with trio.move_on_after(INTERVAL) as waiting:
                await requested.receive()
            now = trio.current_time()
            if waiting.cancelled_caught:
                await viewer.report(requested=False, since=now - INTERVAL)
            else:
                await viewer.report(requested=True, since=now)


class _Viewer:
    """Connection of one client, with the state it last received."""

    def __init__(self, state: AgentState, socket: WebSocketStream) -> None:
        self._state, self._socket = state, socket
        self._sent: dict[str, Repository] = {}
        self._errors: dict[str, str] = {}

    async def report(self, *, requested: bool, since: float) -> None:
        """Report changes by a poll that began after `since`. A request gets a reply even when nothing has changed."""
        try:
            parsed = cast("Scan", await self._state.repositories.after(since, self._scan))
        except GitError as error:
            if requested:
                await self._report_error(datetime.now(UTC), str(error))
            return
        # An unreadable repository still exists: its last reported state stays valid.
        unread = {root: self._sent[root] for root in parsed.errors if root in self._sent}
        rows = [repository.row() for repository in changes(self._sent, unread | parsed.repositories)]
        self._sent = unread | parsed.repositories
        if rows or requested:
            await _send(self._socket, {"type": "changes", "scanned_at": _stamp(parsed.at), "repositories": rows})
        if parsed.errors and (requested or parsed.errors != self._errors):
            await self._report_error(parsed.at, "\n".join(parsed.errors.values()))
        self._errors = parsed.errors

    async def _scan(self) -> Scan:
        return await scan(await workdir(self._state), environment.query_environment(self._state))

    async def _report_error(self, at: datetime, message: str) -> None:
        await _send(self._socket, {"type": "error", "scanned_at": _stamp(at), "message": message})


def _stamp(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")


async def _send(socket: WebSocketStream, message: JsonObject) -> None:
    await socket.send_message(json.dumps(message))


def _is_refresh(message: bytes | str) -> bool:
    """Return whether a client's message requests a poll. Any other message is ignored."""
    try:
        parsed = json.loads(message)
    except (ValueError, RecursionError):
        return False
    return isinstance(parsed, dict) and parsed.get("type") == "refresh"
