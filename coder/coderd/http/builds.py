"""Builds: /api/v2/workspacebuilds and /api/v2/workspaces/{workspace}/builds."""

from __future__ import annotations

from quart import Blueprint, Response

from coder.api.builds import CreateWorkspaceBuildRequest, UpdateWorkspaceBuildStateRequest
from coder.coderd.http.auth import authenticated, context, subject
from coder.coderd.http.job_logs import send_job_logs, stream_job_logs
from coder.coderd.http.json import message, no_content, parse_body, read_bytes, reply
from coder.coderd.http.query import Query, path_uuid
from coder.coderd.services import builds, users
from coder.coderd.services.builds import BuildPage, decode_state
from coder.coderd.services.errors import Invalid
from coder.domain.search import parse_rfc3339

blueprint = Blueprint("builds", __name__, url_prefix="/api/v2")

_MAX_STATE = 64 << 20
# Bytes of a request that may carry a Terraform state (base64): states of large templates reach tens of megabytes.


@blueprint.get("/workspaces/<workspace>/builds")
@authenticated
async def get_builds(workspace: str) -> Response:
    workspace_id = path_uuid(workspace)
    query = Query()
    after, limit, offset = query.uuid("after_id"), query.positive("limit"), query.positive("offset")
    query.check()
    since = parse_rfc3339(query.text("since")) if query.text("since") else None
    if query.text("since") and since is None:
        raise Invalid("bad since format, must be RFC3339", f'cannot parse "{query.text("since")}"')
    which = BuildPage(since=since, after=after, limit=limit, offset=offset)
    return reply(await builds.list_builds(context(), subject(), workspace_id, which))


@blueprint.post("/workspaces/<workspace>/builds")
@authenticated
async def post_build(workspace: str) -> Response:
    workspace_id = path_uuid(workspace)
    body = parse_body(await read_bytes(_MAX_STATE), CreateWorkspaceBuildRequest)
    return reply(await builds.create_build(context(), subject(), workspace_id, body), 201)


@blueprint.get("/workspacebuilds/<build>")
@authenticated
async def get_build(build: str) -> Response:
    return reply(await builds.get_build(context(), subject(), path_uuid(build)))


@blueprint.patch("/workspacebuilds/<build>/cancel")
@authenticated
async def cancel_build(build: str) -> Response:
    await builds.cancel_build(context(), subject(), path_uuid(build), Query().text("expect_status"))
    return message("Job has been marked as canceled...")


@blueprint.get("/workspacebuilds/<build>/logs")
@authenticated
async def get_logs(build: str) -> Response:
    view = await builds.load_build(context(), subject(), path_uuid(build))
    return await send_job_logs(view.job.id)


@blueprint.websocket("/workspacebuilds/<build>/logs")
@authenticated
async def follow_logs(build: str) -> None:
    view = await builds.load_build(context(), subject(), path_uuid(build))
    await stream_job_logs(view.job.id)


@blueprint.get("/workspacebuilds/<build>/parameters")
@authenticated
async def get_parameters(build: str) -> Response:
    return reply(await builds.get_parameters(context(), subject(), path_uuid(build)))


@blueprint.get("/workspacebuilds/<build>/resources")
@authenticated
async def get_resources(build: str) -> Response:
    return reply(await builds.get_resources(context(), subject(), path_uuid(build)))


@blueprint.get("/workspacebuilds/<build>/timings")
@authenticated
async def get_timings(build: str) -> Response:
    return reply(await builds.get_timings(context(), subject(), path_uuid(build)))


@blueprint.get("/workspacebuilds/<build>/state")
@authenticated
async def get_state(build: str) -> Response:
    state = await builds.get_state(context(), subject(), path_uuid(build))
    return Response(state, 200, content_type="application/json")


@blueprint.put("/workspacebuilds/<build>/state")
@authenticated
async def put_state(build: str) -> Response:
    body = parse_body(await read_bytes(_MAX_STATE), UpdateWorkspaceBuildStateRequest)
    await builds.put_state(context(), subject(), path_uuid(build), decode_state(body.state))
    return no_content()


@blueprint.get("/users/<user>/autofill-parameters")
@authenticated
async def get_autofill(user: str) -> Response:
    owner = await users.find_user(context(), subject(), user)
    query = Query("Invalid query parameters.")
    query.require("template_id")
    template_id = query.uuid("template_id")
    query.check()
    if template_id is None:
        raise Invalid("Invalid template_id.")
    found = await builds.autofill_parameters(context(), subject(), owner.id, template_id)
    return reply([{"name": name, "value": value} for name, value in found.items()])
