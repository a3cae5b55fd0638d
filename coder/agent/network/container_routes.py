"""Dev containers over the agent's HTTP API: list, watch, rebuild, remove."""

from __future__ import annotations

import json
from uuid import UUID

import trio

from coder.agent.network.http_messages import HttpReply, HttpRequest, Routes, json_reply, message_reply
from coder.agent.state import AgentState, ContainerRefusedError, DevcontainerBusyError
from coder.base.json_types import JsonObject
from coder.net.websocket import WebSocketStream

PREFIX = "/api/v0/containers/devcontainers/"
WATCH = "/api/v0/containers/watch"
INTERVAL = 10.0
MAX_WATCHERS = 16
"""Limits (ours): seconds between two polls for watchers, and watchers of one agent."""
PING_INTERVAL, PING_TIMEOUT = 30.0, 60.0
"""Seconds (ours)."""
_DISABLED = message_reply(
    403,
    "Dev Container feature not enabled.",
    "To enable this feature, set CODER_AGENT_DEVCONTAINERS_ENABLE=true in your template.",
)
_INSIDE = message_reply(
    403,
    "Dev Container feature not supported.",
    "Dev Container integration inside other Dev Containers is not supported.",
)
_UNKNOWN = message_reply(404, "Devcontainer not found.", "No dev container of this workspace has that id.")


def disabled_reply(state: AgentState) -> HttpReply | None:
    """Return the reply for every route where container management is disabled; None where it is enabled."""
    if state.manifest is not None and state.manifest.HasField("parent_id"):
        return _INSIDE
    return _DISABLED if state.containers is None else None


async def _list(state: AgentState, _request: HttpRequest) -> HttpReply:
    if (refusal := disabled_reply(state)) is not None:
        return refusal
    assert state.containers is not None  # noqa: S101 - checked above
    return json_reply(200, await state.containers.fresh_listing())


async def devcontainer_route(state: AgentState, request: HttpRequest) -> HttpReply:
    """Serve `POST {id}/recreate` and `DELETE {id}`."""
    ident, _, verb = request.path.removeprefix(PREFIX).partition("/")
    if (request.method, verb) not in {("POST", "recreate"), ("DELETE", "")}:
        return message_reply(404, "Route not found.")
    if disabled_reply(state) is not None or state.containers is None:
        # recorded: only the list names the reason
        return HttpReply(404, b"404 page not found\n", "text/plain; charset=utf-8")
    try:
        devcontainer_id = UUID(ident)
    except ValueError:
        return message_reply(400, "Invalid devcontainer ID.", "It must be a UUID.")
    try:
        if verb == "recreate":
            if not state.containers.recreate(devcontainer_id):
                return _UNKNOWN
            detail = "The build runs in the background; the status shows when it is done."
            return message_reply(202, "Devcontainer recreation initiated", detail)
        return HttpReply(204, b"") if await state.containers.delete(devcontainer_id) else _UNKNOWN
    except DevcontainerBusyError as busy:
        return message_reply(409, f"The dev container is already {busy}.", "Retry when it is done.")
    except ContainerRefusedError as error:
        return message_reply(500, "The dev container could not be removed.", str(error))


async def watch_containers(state: AgentState, _request: HttpRequest, socket: WebSocketStream) -> None:
    """Send the list now and after every change, until the client disconnects or does not answer pings."""
    table = state.containers
    if table is None or table.watchers >= MAX_WATCHERS:
        await socket.close(1013, f"{MAX_WATCHERS} viewers are already connected")
        return
    try:
        with table.watched():
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_listen, socket, nursery.cancel_scope)
                nursery.start_soon(_keep_alive, socket, nursery.cancel_scope)
                last_sent: JsonObject = {}
                listing = await table.fresh_listing()
                while True:
                    change = table.next_change()
                    if listing != last_sent:
                        last_sent = listing
                        await socket.send_message(json.dumps(listing))
                    with trio.move_on_after(INTERVAL) as waiting:
                        await change.wait()
                    listing = await table.fresh_listing() if waiting.cancelled_caught else table.cached_listing()
    except* (trio.BrokenResourceError, trio.ClosedResourceError):
        pass  # the client disconnected without a close frame


async def _listen(socket: WebSocketStream, scope: trio.CancelScope) -> None:
    while await socket.receive_message() is not None:
        pass
    scope.cancel()


async def _keep_alive(socket: WebSocketStream, scope: trio.CancelScope) -> None:
    while await socket.ping(PING_TIMEOUT):  # noqa: ASYNC110 - silence causes no event
        await trio.sleep(PING_INTERVAL)
    scope.cancel()


CONTAINER_ROUTES: Routes = {("GET", "/api/v0/containers"): _list}
