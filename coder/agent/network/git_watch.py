"""`GET /api/v0/git/watch`: a WebSocket that tells what changes in the workspace's repositories.

The whole state first, then what is other than before: when the client asks (`{"type": "refresh"}`) and every few
seconds by itself. All viewers of an agent share its looks. Source: docs/protocol/agent-services.md#http.
"""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import trio

from coder.agent.network.http_messages import HttpRequest
from coder.agent.state import AgentState
from coder.agent.workspace import environment
from coder.agent.workspace.files import workdir
from coder.agent.workspace.git_changes import GitError, Repository, Scan, changes, scan
from coder.net.websocket import WebSocketStream

INTERVAL = 10.0
"""Ours: seconds between two looks nobody asked for; a look costs some git commands a repository."""
MAX_VIEWERS = 16
"""Ours: of one agent; each is told everything once."""
PING_INTERVAL, PING_TIMEOUT = 30.0, 60.0
"""Ours, seconds. The time-out is a message's, too: on a slow line a ping waits until the changes are through."""


async def watch_git(state: AgentState, _request: HttpRequest, socket: WebSocketStream) -> None:
    """Until the client leaves, however, or is silent. One viewer too many is closed with 1013 (try again later)."""
    if state.repositories.watchers >= MAX_VIEWERS:
        await socket.close(1013, f"{MAX_VIEWERS} viewers watch already")
        return
    try:
        with state.repositories.watched():
            await _serve(_Viewer(state, socket), socket)
    except* (trio.BrokenResourceError, trio.ClosedResourceError):
        pass  # it left without a word


async def _serve(viewer: _Viewer, socket: WebSocketStream) -> None:
    ask, asked = trio.open_memory_channel[None](1)

    async def listen(scope: trio.CancelScope) -> None:
        while (message := await socket.receive_message()) is not None:
            if _is_refresh(message):
                with suppress(trio.WouldBlock):  # one look answers all who asked before it
                    ask.send_nowait(None)
        scope.cancel()

    async def keep_alive(scope: trio.CancelScope) -> None:
        while await socket.ping(PING_TIMEOUT):  # noqa: ASYNC110 - silence makes no event
            await trio.sleep(PING_INTERVAL)
        scope.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(listen, nursery.cancel_scope)
        nursery.start_soon(keep_alive, nursery.cancel_scope)
        await viewer.tell(asked=True, since=trio.current_time() - INTERVAL)
        while True:
            with trio.move_on_after(INTERVAL) as waiting:
                await asked.receive()
            now = trio.current_time()
            if waiting.cancelled_caught:
                await viewer.tell(asked=False, since=now - INTERVAL)
            else:
                await viewer.tell(asked=True, since=now)


class _Viewer:
    """Remembers what one client was told."""

    def __init__(self, state: AgentState, socket: WebSocketStream) -> None:
        self._state, self._socket = state, socket
        self._told: dict[str, Repository] = {}
        self._errors: dict[str, str] = {}

    async def tell(self, *, asked: bool, since: float) -> None:
        """By a look that began after `since`. Who asked gets an answer even when nothing has changed."""
        try:
            found: Scan = await self._state.repositories.after(since, self._scan)
        except GitError as error:
            if asked:
                await self._tell_error(datetime.now(UTC), str(error))
            return
        # One that cannot be read now is there all the same: what was told of it stands.
        unread = {root: self._told[root] for root in found.errors if root in self._told}
        rows = [one.row() for one in changes(self._told, unread | found.repositories)]
        self._told = unread | found.repositories
        if rows or asked:
            await _send(self._socket, {"type": "changes", "scanned_at": _stamp(found.at), "repositories": rows})
        if found.errors and (asked or found.errors != self._errors):
            await self._tell_error(found.at, "\n".join(found.errors.values()))
        self._errors = found.errors

    async def _scan(self) -> Scan:
        return await scan(await workdir(self._state), environment.looking_environment(self._state))

    async def _tell_error(self, at: datetime, message: str) -> None:
        await _send(self._socket, {"type": "error", "scanned_at": _stamp(at), "message": message})


def _stamp(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")


async def _send(socket: WebSocketStream, message: dict[str, Any]) -> None:
    await socket.send_message(json.dumps(message))


def _is_refresh(message: bytes | str) -> bool:
    """Whether a client's message asks for a look. Anything else is left alone."""
    try:
        found = json.loads(message)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and found.get("type") == "refresh"
