"""Messages between a task and its user: live through the task's app, or from its last snapshot.

Both directions require `application_connect` on the workspace: like a terminal, a task takes commands and shows its
output.

The app serves agentapi's three routes below its URL: GET status (`stable` when it takes input), POST message, GET
messages. The server's own node calls it over the mesh. For a paused task the server returns the snapshot that the
task's agent sent before it stopped.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from uuid import UUID

import msgspec
import trio

from coder.api.base import codec
from coder.api.base.refusals import BadGateway, Conflict, Invalid, NotFound, Refusal, TooLarge
from coder.api.tasks.tasks import TaskLogEntry, TaskLogsResponse
from coder.base.json_types import Json
from coder.coderd.services.access.authorization import may
from coder.coderd.services.access.workspace_access import workspace_resource
from coder.coderd.services.agents import agent_http
from coder.coderd.services.agents.agent_view import status_of
from coder.coderd.services.network.stream_http import AgentAnswer
from coder.coderd.services.tasks.task_view import status_of_task
from coder.coderd.services.tasks.tasks import load_task
from coder.coderd.store.agents.agents import CurrentAgent
from coder.coderd.store.tasks import system_tasks
from coder.coderd.store.tasks import tasks as store
from coder.coderd.store.tasks.tasks import SnapshotRow, TaskApp, TaskView
from coder.coderd.store.workspaces import system_workspaces
from coder.domain.access.policy import Class, Subject, Target
from coder.domain.foundation.zero import ZERO_TIME
from coder.domain.tasks.tasks import MAX_SNAPSHOT

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

FORMAT = "agentapi"
"""The only supported format of a snapshot."""

_STARTING = frozenset({"pending", "initializing"})
_PORTS = {"http": 80, "https": 443}
_SNAPSHOT_TIMEOUT = 3.0
# Seconds that pausing may wait for the app; it answers in milliseconds or not at all.


class _Message(msgspec.Struct):
    """A message of the conversation, as agentapi has it."""

    id: int
    content: str
    role: str
    time: datetime = ZERO_TIME


class _Messages(msgspec.Struct):
    messages: list[_Message]


async def send(ctx: Context, subject: Subject, owner_id: UUID, reference: str, text: str) -> None:
    """Send input to the task.

    Raises NotFound (also without `application_connect` on the workspace), Forbidden, Invalid (no input), Conflict (the
    task or its app does not take input now), BadGateway.
    """
    view = await load_task(ctx, subject, owner_id, reference, "update")
    await _require_connect(ctx, subject, view)
    if not text:
        raise Invalid("Task input is required.")
    app = _active_app(ctx, view)
    answer = await _call_app(ctx, app, "GET", "status")
    state = _field(answer, "status")
    if state != "stable":
        raise Conflict(
            "Task app is not ready to accept input.",
            f'Its status is "{state}". Wait until it is "stable".',
        )
    body = json.dumps({"content": text, "type": "user"}).encode()
    answer = await _call_app(ctx, app, "POST", "message", body)
    if _field(answer, "ok") is not True:
        raise BadGateway("Task app rejected the message.", "its response is not ok")


async def _require_connect(ctx: Context, subject: Subject, view: TaskView) -> None:
    """Raise NotFound without `application_connect`. A dormant workspace is checked like an active one: nothing runs in
    it, and its owner may still read the conversation."""
    row = view.task
    workspace = None
    if row.workspace_id is not None:
        workspace = await ctx.db.read(system_workspaces.get_workspace, row.workspace_id)
    resource: Target = Class("workspace", owner_id=row.owner_id, organization_id=row.organization_id)
    if workspace is not None:
        resource = workspace_resource(workspace, dormant=False)
    if not may(subject, "application_connect", resource):
        raise NotFound


def _active_app(ctx: Context, view: TaskView) -> TaskApp:
    status = status_of_task(ctx, view)
    if status == "active" and view.app is not None:
        return view.app
    advice = {
        "paused": "Resume the task first.",
        "error": "See the log of its workspace's build and the state of its agent.",
    }.get(status, "Wait until it is active.")
    message = f"Task is {status}, it must be active."
    if status in _STARTING or status == "paused":
        raise Conflict(message, advice)
    raise Invalid(message, advice)


async def logs(ctx: Context, subject: Subject, owner_id: UUID, reference: str) -> TaskLogsResponse:
    """Return the conversation: live from a running task, otherwise from the snapshot.

    Raises NotFound (also without `application_connect` on the workspace), Conflict (the task is in another state),
    BadGateway.
    """
    view = await load_task(ctx, subject, owner_id, reference)
    await _require_connect(ctx, subject, view)
    status = status_of_task(ctx, view)
    if status == "active" and view.app is not None:
        return TaskLogsResponse(logs=_entries(await _live_messages(ctx, view.app)))
    if status not in _STARTING and status != "paused":
        raise Conflict("Cannot fetch logs for task in current state.", f'Task status is "{status}".')
    snapshot = await ctx.db.read(system_tasks.get_snapshot, view.task.id)
    if snapshot is None:
        return TaskLogsResponse(logs=[], snapshot=True)
    entries = _entries(msgspec.convert(snapshot.messages, list[_Message]))
    return TaskLogsResponse(logs=entries, snapshot=True, snapshot_at=snapshot.created_at)


async def _live_messages(ctx: Context, app: TaskApp) -> list[_Message]:
    answer = await _call_app(ctx, app, "GET", "messages")
    try:
        return codec.decode(answer.body, _Messages).messages
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadGateway("Failed to get messages from task app.", "its response is not a list of messages") from error


def _entries(messages: Sequence[_Message]) -> list[TaskLogEntry]:
    return [
        TaskLogEntry(
            id=line.id, content=line.content, type="output" if line.role != "user" else "input", time=line.time
        )
        for line in messages
    ]


async def _call_app(ctx: Context, app: TaskApp, method: str, verb: str, body: bytes = b"") -> AgentAnswer:
    """Send one request to the app's API. Raises Invalid (unsupported URL), BadGateway."""
    try:
        parts = urlsplit(app.url)
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        parts, port = urlsplit(""), None
    if parts.scheme != "http" or port is None:
        raise Invalid(
            "The URL of the task's app is not supported.",
            f'App "{app.slug}" needs a URL such as http://localhost:3284.',
        )
    if status_of(app.agent, ctx.clock.now()) != "connected":
        raise BadGateway("The task's agent is not connected.", "Wait until it reconnects, or restart the workspace.")
    path = f"{parts.path.rstrip('/')}/{verb}"
    answer = await agent_http.fetch(ctx, app.agent.id, method, path, port=port, content=body)
    if answer.status != 200:
        raise BadGateway(f"Task app answered {answer.status} to {method} {verb}.", _excerpt(answer.body))
    return answer


def _excerpt(body: bytes) -> str:
    return body[:300].decode(errors="replace")


def _field(answer: AgentAnswer, name: str) -> Any:
    try:
        members = json.loads(answer.body)
    except (ValueError, RecursionError):
        members = None
    if not isinstance(members, dict) or name not in members:
        raise BadGateway("The task app's answer could not be read.", f'it has no "{name}": {_excerpt(answer.body)}')
    return members[name]


# ---- snapshots


async def remember(ctx: Context, subject: Subject, owner_id: UUID, reference: str) -> None:
    """Store the conversation of a running task before it pauses, for agents that send no snapshot themselves.

    The app gets a short time to answer, and its errors are ignored: the user pauses the task, not the app. The caller
    does not see the conversation, so pausing does not require `application_connect`. Raises NotFound, Forbidden.
    """
    view = await load_task(ctx, subject, owner_id, reference, "update")
    if view.app is None or status_of_task(ctx, view) != "active":
        return
    try:
        with trio.fail_after(_SNAPSHOT_TIMEOUT):
            messages = await _live_messages(ctx, view.app)
    except (Refusal, trio.TooSlowError) as error:
        ctx.log.debug("the conversation of a pausing task could not be kept", task=view.task.id, error=error)
        return
    rows = _storable(messages)
    while rows and len(json.dumps(rows)) > MAX_SNAPSHOT:
        rows = rows[(len(rows) + 1) // 2 :]  # the newest messages matter
    await ctx.db.run(store.put_snapshot, view.task.id, SnapshotRow(rows, ctx.clock.now()))


def _storable(messages: Sequence[_Message]) -> list[dict[str, Json]]:
    """Convert the messages to JSON without NUL, which the database rejects."""
    return [
        {name: value.replace("\x00", "❌") if isinstance(value, str) else value for name, value in row.items()}
        for row in msgspec.to_builtins(messages)
    ]


async def store_snapshot(ctx: Context, location: CurrentAgent, task_id: UUID, format_name: str, raw: bytes) -> None:
    """Store the conversation that the task's own agent sends before it stops.

    Raises Invalid (format, content), TooLarge, NotFound (the task belongs to another workspace).
    """
    if format_name != FORMAT:
        message = "Missing required query parameter: format." if not format_name else f'Invalid format "{format_name}".'
        raise Invalid(message, f'Only "{FORMAT}" is supported.', [("format", f"must be {FORMAT}")])
    if len(raw) > MAX_SNAPSHOT:
        raise TooLarge("Log snapshot payload too large.", f"The limit is {MAX_SNAPSHOT} bytes.")
    task = await ctx.db.read(system_tasks.get_task_of, location.workspace_id)
    if task is None or task.id != task_id:
        raise NotFound
    try:
        messages = codec.decode(raw, _Messages).messages
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Invalid("Request body must be valid JSON.", str(error)) from error
    await ctx.db.run(store.put_snapshot, task_id, SnapshotRow(_storable(messages), ctx.clock.now()))
