"""Tasks: /api/v2/tasks, for older clients /api/experimental/tasks, too; and what agents leave behind of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from quart import Blueprint, Response, request

from coder.api.tasks import (
    CreateTaskRequest,
    PauseTaskResponse,
    ResumeTaskResponse,
    TaskSendRequest,
    UpdateTaskInputRequest,
)
from coder.coderd.http.agents import by_agent, place
from coder.coderd.http.auth import authenticated, context, subject
from coder.coderd.http.json import no_content, read_body, read_bytes, reply
from coder.coderd.http.query import Query, path_uuid
from coder.coderd.services import task_conversation, tasks, users
from coder.domain.tasks import MAX_SNAPSHOT

blueprint = Blueprint("tasks", __name__, url_prefix="/api")

View = Callable[..., Awaitable[Response]]


def _route(method: str, path: str) -> Callable[[View], View]:
    """The same view under both addresses."""

    def add(view: View) -> View:
        for root in ("v2", "experimental"):
            blueprint.add_url_rule(f"/{root}{path}", f"{view.__name__}_{root}", view, methods=[method])
        return view

    return add


@_route("GET", "/tasks")
@authenticated
async def get_tasks() -> Response:
    query = Query()
    limit, offset = query.positive("limit"), query.positive("offset")
    query.check()
    return reply(await tasks.list_tasks(context(), subject(), query.text("q"), limit=limit, offset=offset))


@_route("POST", "/tasks/<user>")
@authenticated
async def post_task(user: str) -> Response:
    owner = await users.find_user(context(), subject(), user)
    body = await read_body(CreateTaskRequest, required=("template_version_id",))
    return reply(await tasks.create_task(context(), subject(), owner.id, body), 201)


@_route("GET", "/tasks/<user>/<task>")
@authenticated
async def get_task(user: str, task: str) -> Response:
    owner = await users.find_user(context(), subject(), user)
    found = await tasks.load_task(context(), subject(), owner.id, task)
    return reply(tasks.present_task(context(), found))


@_route("DELETE", "/tasks/<user>/<task>")
@authenticated
async def delete_task(user: str, task: str) -> Response:
    owner = await users.find_user(context(), subject(), user)
    await tasks.delete_task(context(), subject(), owner.id, task)
    response = Response(b"", 202)
    del response.headers["Content-Type"]  # of nothing
    return response


@_route("PATCH", "/tasks/<user>/<task>/input")
@authenticated
async def patch_input(user: str, task: str) -> Response:
    owner = await users.find_user(context(), subject(), user)
    body = await read_body(UpdateTaskInputRequest)
    await tasks.update_input(context(), subject(), owner.id, task, body.input)
    return Response(b"", 204, content_type="application/json; charset=utf-8")  # as recorded


@_route("POST", "/tasks/<user>/<task>/send")
@authenticated
async def post_send(user: str, task: str) -> Response:
    owner = await users.find_user(context(), subject(), user)
    body = await read_body(TaskSendRequest)
    await task_conversation.send(context(), subject(), owner.id, task, body.input)
    return no_content()


@_route("GET", "/tasks/<user>/<task>/logs")
@authenticated
async def get_logs(user: str, task: str) -> Response:
    owner = await users.find_user(context(), subject(), user)
    return reply(await task_conversation.logs(context(), subject(), owner.id, task))


@_route("POST", "/tasks/<user>/<task>/pause")
@authenticated
async def post_pause(user: str, task: str) -> Response:
    owner = await users.find_user(context(), subject(), user)
    await task_conversation.remember(context(), subject(), owner.id, task)
    build = await tasks.pause(context(), subject(), owner.id, task)
    return reply(PauseTaskResponse(workspace_build=build), 202)


@_route("POST", "/tasks/<user>/<task>/resume")
@authenticated
async def post_resume(user: str, task: str) -> Response:
    owner = await users.find_user(context(), subject(), user)
    build = await tasks.resume(context(), subject(), owner.id, task)
    return reply(ResumeTaskResponse(workspace_build=build), 202)


@blueprint.post("/v2/workspaceagents/me/tasks/<task>/log-snapshot")
@by_agent
async def post_log_snapshot(task: str) -> Response:
    task_id = path_uuid(task)
    raw = await read_bytes(MAX_SNAPSHOT)
    await task_conversation.keep_snapshot(context(), place(), task_id, request.args.get("format", ""), raw)
    return no_content()
