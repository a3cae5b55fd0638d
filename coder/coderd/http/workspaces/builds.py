"""Builds: /api/v2/workspacebuilds and /api/v2/workspaces/{workspace}/builds."""

from __future__ import annotations

from functools import partial
from uuid import UUID

from quart import Blueprint, Response

from coder.api.base.errors import Response as Envelope
from coder.api.base.refusals import Invalid
from coder.api.provisioning.jobs import ProvisionerJobLog
from coder.api.templates.parameters import UserParameter, WorkspaceBuildParameter
from coder.api.workspaces.build_requests import CreateWorkspaceBuildRequest, UpdateWorkspaceBuildStateRequest
from coder.api.workspaces.build_timings import WorkspaceBuildTimings
from coder.api.workspaces.builds import WorkspaceBuild, WorkspaceResource
from coder.base.json_types import Json
from coder.coderd.http.provisioning.job_logs import send_job_logs, stream_job_logs
from coder.coderd.http.server.audit_rules import Audited
from coder.coderd.http.server.auth import context, subject
from coder.coderd.http.server.declarations import TEXT
from coder.coderd.http.server.json import message, no_content, read_body, reply
from coder.coderd.http.server.query import Query, path_uuid
from coder.coderd.http.server.route import WEBSOCKET, route
from coder.coderd.http.server.streams import while_allowed
from coder.coderd.services.people import users
from coder.coderd.services.workspaces.builds import (
    build_cancellation,
    build_creation,
    build_state,
    build_timings,
    builds,
)
from coder.coderd.services.workspaces.builds.autofill_parameters import autofill_parameters
from coder.coderd.services.workspaces.builds.builds import BuildPage
from coder.domain.foundation.search import explain_time, parse_rfc3339

blueprint = Blueprint("builds", __name__, url_prefix="/api/v2")

_MAX_STATE = 64 << 20
# Bytes of a request that may carry a Terraform state (base64): states of large templates reach tens of megabytes.


@route(
    blueprint,
    "GET",
    "/workspaces/<id:workspace>/builds",
    scope="workspace:read",
    query={"after_id": UUID, "limit": int, "offset": int, "since": str},
    answers=list[WorkspaceBuild],
    compressed=True,
)
async def get_builds(workspace: str) -> Response:
    """Return builds, newest first."""
    workspace_id = path_uuid(workspace)
    query = Query()
    page = query.page()
    query.check()
    since = parse_rfc3339(query.text("since")) if query.text("since") else None
    if query.text("since") and since is None:
        raise Invalid("bad `since` format, must be RFC3339", explain_time(query.text("since")))
    which = BuildPage(since=since, after=page.after_id, limit=page.limit, offset=page.offset)
    return reply(await builds.list_builds(context(), subject(), workspace_id, which))


@route(
    blueprint,
    "POST",
    "/workspaces/<id:workspace>/builds",
    scope=("workspace:start", "workspace:stop", "workspace:delete", "workspace:update"),
    body=CreateWorkspaceBuildRequest,
    limit=_MAX_STATE,
    answers=WorkspaceBuild,
    status=201,
    refuses=(406, 409, 425, 500),
)
async def post_build(workspace: str) -> Response:
    """Queue a start, stop or delete."""
    workspace_id = path_uuid(workspace)
    body = await read_body(CreateWorkspaceBuildRequest)
    return reply(await build_creation.create_build(context(), subject(), workspace_id, body), 201)


@route(blueprint, "GET", "/workspacebuilds/<id:build>", scope="workspace:read", answers=WorkspaceBuild, compressed=True)
async def get_build(build: str) -> Response:
    return reply(await builds.get_build(context(), subject(), path_uuid(build)))


@route(
    blueprint,
    "PATCH",
    "/workspacebuilds/<id:build>/cancel",
    scope="workspace:update",
    query={"expect_status": str},
    answers=Envelope,
    refuses=(412,),
)
async def cancel_build(build: str) -> Response:
    """Request the build's job to stop."""
    await build_cancellation.cancel_build(context(), subject(), path_uuid(build), Query().text("expect_status"))
    return message("Job has been marked as canceled...")


@route(
    blueprint,
    "GET",
    "/workspacebuilds/<id:build>/logs",
    scope="workspace:read",
    query={"after": int, "before": int, "follow": str, "format": str},
    answers=(TEXT, list[ProvisionerJobLog]),
    others={426: TEXT},
)
async def get_logs(build: str) -> Response:
    view = await builds.load_build(context(), subject(), path_uuid(build))
    return await send_job_logs(view.job.id)


@route(
    blueprint,
    WEBSOCKET,
    "/workspacebuilds/<id:build>/logs",
    scope="workspace:read",
    query={"after": str, "format": str},
)
async def follow_logs(build: str) -> None:
    ask = partial(builds.load_build, context(), subject(), path_uuid(build))
    await while_allowed(ask, lambda view: stream_job_logs(view.job.id))


@route(
    blueprint,
    "GET",
    "/workspacebuilds/<id:build>/parameters",
    scope="workspace:read",
    answers=list[WorkspaceBuildParameter],
)
async def get_parameters(build: str) -> Response:
    return reply(await builds.get_parameters(context(), subject(), path_uuid(build)))


@route(
    blueprint, "GET", "/workspacebuilds/<id:build>/resources", scope="workspace:read", answers=list[WorkspaceResource]
)
async def get_resources(build: str) -> Response:
    return reply(await builds.get_resources(context(), subject(), path_uuid(build)))


@route(
    blueprint,
    "GET",
    "/workspacebuilds/<id:build>/timings",
    scope="workspace:read",
    answers=WorkspaceBuildTimings,
    compressed=True,
)
async def get_timings(build: str) -> Response:
    """Return the duration of every step, Terraform's and the agents'."""
    return reply(await build_timings.get_timings(context(), subject(), path_uuid(build)))


@route(blueprint, "GET", "/workspacebuilds/<id:build>/state", scope="template:update", answers=Json)
async def get_state(build: str) -> Response:
    """Return the Terraform state: it contains secrets, so for template managers only (others get NotFound)."""
    state = await build_state.get_state(context(), subject(), path_uuid(build))
    return Response(state, 200, content_type="application/json")


@route(
    blueprint,
    "PUT",
    "/workspacebuilds/<id:build>/state",
    scope="template:update",
    body=UpdateWorkspaceBuildStateRequest,
    limit=_MAX_STATE,
    status=204,
    audit=Audited("workspace_build", "write"),
)
async def put_state(build: str) -> Response:
    """Replace the Terraform state, in base64."""
    body = await read_body(UpdateWorkspaceBuildStateRequest)
    await build_state.put_state(context(), subject(), path_uuid(build), body)
    return no_content()


@route(
    blueprint,
    "GET",
    "/users/<user>/autofill-parameters",
    scope="user:read_personal",
    query={"template_id": UUID},
    wants=("template_id",),
    answers=list[UserParameter],
)
async def get_autofill(user: str) -> Response:
    """Return a user's last value for each parameter the template still has (never for ephemeral ones)."""
    owner = await users.find_user(context(), subject(), user)
    query = Query("Invalid query parameters.")
    query.require("template_id")
    template_id = query.uuid("template_id")
    query.only("template_id")
    query.check()
    if template_id is None:
        raise Invalid("Invalid template_id.")
    result = await autofill_parameters(context(), subject(), owner.id, template_id)
    return reply([{"name": name, "value": value} for name, value in result.items()])
