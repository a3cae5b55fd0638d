"""Tasks: /api/v2/tasks, for older clients /api/experimental/tasks, too; and the snapshots of their agents."""

from __future__ import annotations

from quart import Blueprint, Response, request

from coder.api.tasks.tasks import (
    CreateTaskRequest,
    PauseTaskResponse,
    ResumeTaskResponse,
    Task,
    TaskLogsResponse,
    TaskSendRequest,
    TasksListResponse,
    UpdateTaskInputRequest,
)
from coder.base.json_types import Json
from coder.coderd.http.agents.agents import by_agent, current_agent
from coder.coderd.http.server.audit_rules import Audited
from coder.coderd.http.server.auth import context, subject
from coder.coderd.http.server.body_reading import read_bytes
from coder.coderd.http.server.declarations import search
from coder.coderd.http.server.json import no_content, read_body, reply
from coder.coderd.http.server.query import Query, path_uuid
from coder.coderd.http.server.route import route
from coder.coderd.services.people import users
from coder.coderd.services.tasks import task_builds, task_conversation, task_creation, task_search, task_view, tasks
from coder.domain.access.route_scopes import AGENT
from coder.domain.tasks.tasks import MAX_SNAPSHOT

blueprint = Blueprint("tasks", __name__, url_prefix="/api")


@route(
    blueprint,
    "GET",
    ("/v2/tasks", "/experimental/tasks"),
    scope="task:read",
    query={"limit": int, "offset": int, "q": search("organization owner status")},
    answers=TasksListResponse,
)
async def get_tasks() -> Response:
    """Return the tasks that match the query and that the caller may see, newest first."""
    query = Query()
    page = query.page()
    query.check()
    return reply(
        await task_search.list_tasks(context(), subject(), query.text("q"), limit=page.limit, offset=page.offset)
    )


@route(
    blueprint,
    "POST",
    ("/v2/tasks/<user>", "/experimental/tasks/<user>"),
    scope="task:create",
    body=CreateTaskRequest,
    required=("template_version_id",),
    answers=Task,
    status=201,
    refuses=(406, 409, 425, 500),
    audit=Audited("task", "create", "body:id"),
)
async def post_task(user: str) -> Response:
    """Create a task, its workspace and its first start."""
    owner = await users.find_person(context(), subject(), user)
    body = await read_body(CreateTaskRequest)
    return reply(await task_creation.create_task(context(), subject(), owner.id, body), 201)


@route(
    blueprint, "GET", ("/v2/tasks/<user>/<task>", "/experimental/tasks/<user>/<task>"), scope="task:read", answers=Task
)
async def get_task(user: str, task: str) -> Response:
    """Return the API's shape of a task."""
    owner = await users.find_user(context(), subject(), user)
    result = await tasks.load_task(context(), subject(), owner.id, task)
    return reply(task_view.present_task(context(), result))


@route(
    blueprint,
    "DELETE",
    ("/v2/tasks/<user>/<task>", "/experimental/tasks/<user>/<task>"),
    scope="task:delete",
    status=202,
    refuses=(409, 500),
    audit=Audited("task", "delete", "path:1"),
)
async def delete_task(user: str, task: str) -> Response:
    """Delete the task and its workspace."""
    owner = await users.find_user(context(), subject(), user)
    await task_builds.delete_task(context(), subject(), owner.id, task)
    response = Response(b"", 202)
    del response.headers["Content-Type"]  # no content
    return response


@route(
    blueprint,
    "PATCH",
    ("/v2/tasks/<user>/<task>/input", "/experimental/tasks/<user>/<task>/input"),
    scope="task:update",
    body=UpdateTaskInputRequest,
    status=204,
    refuses=(409,),
    audit=Audited("task", "write", "path:1"),
)
async def patch_input(user: str, task: str) -> Response:
    """Change the prompt for the next start."""
    owner = await users.find_person(context(), subject(), user)
    body = await read_body(UpdateTaskInputRequest)
    await tasks.update_input(context(), subject(), owner.id, task, body.input)
    return Response(b"", 204, content_type="application/json; charset=utf-8")  # as recorded


@route(
    blueprint,
    "POST",
    ("/v2/tasks/<user>/<task>/send", "/experimental/tasks/<user>/<task>/send"),
    scope="task:update",
    body=TaskSendRequest,
    status=204,
    refuses=(409, 502),
)
async def post_send(user: str, task: str) -> Response:
    """Send more input to the task."""
    owner = await users.find_person(context(), subject(), user)
    body = await read_body(TaskSendRequest)
    await task_conversation.send(context(), subject(), owner.id, task, body.input)
    return no_content()


@route(
    blueprint,
    "GET",
    ("/v2/tasks/<user>/<task>/logs", "/experimental/tasks/<user>/<task>/logs"),
    scope="task:read",
    answers=TaskLogsResponse,
    refuses=(409, 502),
)
async def get_logs(user: str, task: str) -> Response:
    """Return the conversation: live from a running task, else the stored snapshot."""
    owner = await users.find_user(context(), subject(), user)
    return reply(await task_conversation.logs(context(), subject(), owner.id, task))


@route(
    blueprint,
    "POST",
    ("/v2/tasks/<user>/<task>/pause", "/experimental/tasks/<user>/<task>/pause"),
    scope="task:update",
    answers=PauseTaskResponse,
    status=202,
    refuses=(406, 409, 425, 500),
)
async def post_pause(user: str, task: str) -> Response:
    """Stop the task's workspace."""
    owner = await users.find_user(context(), subject(), user)
    await task_conversation.remember(context(), subject(), owner.id, task)
    build = await task_builds.pause(context(), subject(), owner.id, task)
    return reply(PauseTaskResponse(workspace_build=build), 202)


@route(
    blueprint,
    "POST",
    ("/v2/tasks/<user>/<task>/resume", "/experimental/tasks/<user>/<task>/resume"),
    scope="task:update",
    answers=ResumeTaskResponse,
    status=202,
    refuses=(406, 409, 425, 500),
)
async def post_resume(user: str, task: str) -> Response:
    """Start it again."""
    owner = await users.find_user(context(), subject(), user)
    build = await task_builds.resume(context(), subject(), owner.id, task)
    return reply(ResumeTaskResponse(workspace_build=build), 202)


@route(
    blueprint,
    "POST",
    "/v2/workspaceagents/me/tasks/<id:task>/log-snapshot",
    scope=AGENT,
    body=Json,
    limit=MAX_SNAPSHOT,
    query={"format": str},
    status=204,
)
@by_agent
async def post_log_snapshot(task: str) -> Response:
    """Store the conversation that the task's own agent sends before it stops."""
    task_id = path_uuid(task)
    raw = await read_bytes(MAX_SNAPSHOT)
    await task_conversation.store_snapshot(context(), current_agent(), task_id, request.args.get("format", ""), raw)
    return no_content()
