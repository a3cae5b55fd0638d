"""Workspaces: /api/v2/workspaces, /api/v2/users/{user}/workspace(s), and their settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quart import Blueprint, Response

from coder.api.agents import DeleteWorkspaceAgentPortShareRequest, UpsertWorkspaceAgentPortShareRequest
from coder.api.struct import ApiStruct
from coder.api.workspaces import (
    CreateWorkspaceRequest,
    PostWorkspaceUsageRequest,
    UpdateWorkspaceACL,
    UpdateWorkspaceAutomaticUpdatesRequest,
    UpdateWorkspaceAutostartRequest,
    UpdateWorkspaceDormancy,
    UpdateWorkspaceRequest,
    UpdateWorkspaceTTLRequest,
    WorkspaceQuota,
    WorkspacesResponse,
)
from coder.coderd.http.auth import authenticated, caller, context, subject
from coder.coderd.http.json import message, no_content, read_body, reply
from coder.coderd.http.query import Query, path_uuid
from coder.coderd.http.streams import events_over_websocket, needs_upgrade, over_websocket, sse
from coder.coderd.services import builds, external_agents, quotas, users, watching, workspace_settings, workspaces
from coder.coderd.services.errors import Invalid, NotFound
from coder.coderd.services.organizations import resolve_organization
from coder.coderd.store import names as name_store
from coder.coderd.store.workspaces import PortShareRow
from coder.domain.search import parse_rfc3339
from coder.domain.zero import NIL_UUID

if TYPE_CHECKING:
    from coder.coderd.services.authentication import Caller
    from coder.coderd.services.context import Context

blueprint = Blueprint("workspaces", __name__, url_prefix="/api/v2")


class _Extension(ApiStruct):
    """`PutExtendWorkspaceRequest` with the time still a text, so that the refusal can name it."""

    deadline: str


async def show_list(ctx: Context, who: Caller, query: Query) -> WorkspacesResponse:
    """A page of workspaces."""
    limit, offset = query.positive("limit"), query.positive("offset")
    query.check()
    return await workspaces.list_workspaces(ctx, who.subject, query.text("q"), limit=limit, offset=offset)


@blueprint.get("/workspaces")
@authenticated
async def get_workspaces() -> Response:
    return reply(await show_list(context(), caller(), Query()))


@blueprint.post("/users/<user>/workspaces")
@authenticated
async def post_workspace(user: str) -> Response:
    owner = await users.find_user(context(), subject(), user)
    body = await read_body(CreateWorkspaceRequest)
    return reply(await workspaces.create_workspace(context(), subject(), owner.id, body), 201)


@blueprint.post("/organizations/<organization>/members/<user>/workspaces")
@authenticated
async def post_member_workspace(organization: str, user: str) -> Response:
    organization_id = await context().db.read(name_store.find_organization, organization)
    if organization_id is None:
        raise NotFound
    owner = await users.find_user(context(), subject(), user)
    body = await read_body(CreateWorkspaceRequest)
    made = await workspaces.create_workspace(context(), subject(), owner.id, body, organization_id)
    return reply(made, 201)


@blueprint.get("/users/<user>/workspace/<name>")
@authenticated
async def get_workspace_by_name(user: str, name: str) -> Response:
    owner = await users.find_user(context(), subject(), user)
    deleted = Query().boolean("include_deleted")
    found = await workspaces.get_workspace_by_name(context(), subject(), owner.id, name, include_deleted=deleted)
    return reply(found)


@blueprint.get("/users/<user>/workspace/<name>/builds/<number>")
@authenticated
async def get_build_by_number(user: str, name: str, number: str) -> Response:
    owner = await users.find_user(context(), subject(), user)
    return reply(await builds.get_build_by_number(context(), subject(), owner.id, name, number))


@blueprint.get("/workspaces/<workspace>")
@authenticated
async def get_workspace(workspace: str) -> Response:
    deleted = Query().boolean("include_deleted")
    found = await workspaces.get_workspace(context(), subject(), path_uuid(workspace), include_deleted=deleted)
    return reply(found)


@blueprint.patch("/workspaces/<workspace>")
@authenticated
async def patch_workspace(workspace: str) -> Response:
    body = await read_body(UpdateWorkspaceRequest)
    await workspaces.rename_workspace(context(), subject(), path_uuid(workspace), body.name or "")
    return no_content()


@blueprint.put("/workspaces/<workspace>/autostart")
@authenticated
async def put_autostart(workspace: str) -> Response:
    body = await read_body(UpdateWorkspaceAutostartRequest)
    await workspace_settings.set_autostart(context(), subject(), path_uuid(workspace), body.schedule or None)
    return no_content()


@blueprint.put("/workspaces/<workspace>/ttl")
@authenticated
async def put_ttl(workspace: str) -> Response:
    body = await read_body(UpdateWorkspaceTTLRequest)
    await workspace_settings.set_ttl(context(), subject(), path_uuid(workspace), body.ttl_ms)
    return no_content()


@blueprint.put("/workspaces/<workspace>/extend")
@authenticated
async def put_extend(workspace: str) -> Response:
    workspace_id = path_uuid(workspace)
    text = (await read_body(_Extension)).deadline
    deadline = parse_rfc3339(text)
    if deadline is None:
        layout = "2006-01-02T15:04:05Z07:00"
        detail = f'parsing time "{text}" as "{layout}": cannot parse "{text}" as "2006"'
        raise Invalid("Request body must be valid JSON.", detail)
    await workspace_settings.extend(context(), subject(), workspace_id, deadline)
    return message(f"Deadline updated to {text}.")


@blueprint.put("/workspaces/<workspace>/dormant")
@authenticated
async def put_dormant(workspace: str) -> Response:
    body = await read_body(UpdateWorkspaceDormancy)
    changed = await workspace_settings.set_dormant(context(), subject(), path_uuid(workspace), body.dormant)
    return Response(b"", 304) if changed is None else reply(changed)


@blueprint.put("/workspaces/<workspace>/favorite")
@authenticated
async def put_favorite(workspace: str) -> Response:
    await workspace_settings.set_favorite(context(), subject(), path_uuid(workspace), True)
    return no_content()


@blueprint.delete("/workspaces/<workspace>/favorite")
@authenticated
async def delete_favorite(workspace: str) -> Response:
    await workspace_settings.set_favorite(context(), subject(), path_uuid(workspace), False)
    return no_content()


@blueprint.put("/workspaces/<workspace>/autoupdates")
@authenticated
async def put_automatic_updates(workspace: str) -> Response:
    body = await read_body(UpdateWorkspaceAutomaticUpdatesRequest)
    await workspace_settings.set_automatic_updates(context(), subject(), path_uuid(workspace), body.automatic_updates)
    return no_content()


@blueprint.get("/workspaces/<workspace>/resolve-autostart")
@authenticated
async def resolve_autostart(workspace: str) -> Response:
    able = await workspace_settings.can_autostart(context(), subject(), path_uuid(workspace))
    return reply({"parameter_mismatch": not able})


@blueprint.post("/workspaces/<workspace>/usage")
@authenticated
async def post_usage(workspace: str) -> Response:
    body = await read_body(PostWorkspaceUsageRequest, allow_empty=True)
    agent_id = body.agent_id if body.agent_id != NIL_UUID else None
    await workspace_settings.record_usage(context(), subject(), path_uuid(workspace), agent_id, body.app_name)
    return no_content()


@blueprint.get("/workspaces/<workspace>/timings")
@authenticated
async def get_timings(workspace: str) -> Response:
    return reply(await builds.get_workspace_timings(context(), subject(), path_uuid(workspace)))


@blueprint.get("/workspaces/<workspace>/watch")
@authenticated
async def watch(workspace: str) -> Response:
    return await sse(watching.watch_workspace(context(), subject(), path_uuid(workspace)), ping_first=True)


@blueprint.get("/workspaces/<workspace>/watch-ws")
@authenticated
async def watch_without_upgrade(workspace: str) -> Response:
    await workspaces.get_workspace(context(), subject(), path_uuid(workspace), include_deleted=True)
    return needs_upgrade()


@blueprint.websocket("/workspaces/<workspace>/watch-ws")
@authenticated
async def watch_ws(workspace: str) -> None:
    source = watching.watch_workspace(context(), subject(), path_uuid(workspace))
    await events_over_websocket(source, ping_first=True)


@blueprint.get("/workspaces/<workspace>/acl")
@authenticated
async def get_acl(workspace: str) -> Response:
    return reply(await workspace_settings.get_acl(context(), subject(), path_uuid(workspace)))


@blueprint.patch("/workspaces/<workspace>/acl")
@authenticated
async def patch_acl(workspace: str) -> Response:
    body = await read_body(UpdateWorkspaceACL)
    await workspace_settings.update_acl(
        context(), subject(), path_uuid(workspace), body.user_roles or {}, body.group_roles or {}
    )
    return no_content()


@blueprint.delete("/workspaces/<workspace>/acl")
@authenticated
async def delete_acl(workspace: str) -> Response:
    await workspace_settings.clear_acl(context(), subject(), path_uuid(workspace))
    return Response(b"", 204, content_type="application/json; charset=utf-8")  # as recorded, unlike its neighbours


@blueprint.get("/workspaces/<workspace>/port-share")
@authenticated
async def get_port_shares(workspace: str) -> Response:
    return reply(await workspace_settings.list_port_shares(context(), subject(), path_uuid(workspace)))


@blueprint.post("/workspaces/<workspace>/port-share")
@authenticated
async def post_port_share(workspace: str) -> Response:
    body = await read_body(UpsertWorkspaceAgentPortShareRequest)
    share = PortShareRow(path_uuid(workspace), body.agent_name, body.port, body.share_level, body.protocol)
    return reply(await workspace_settings.share_port(context(), subject(), share))


@blueprint.delete("/workspaces/<workspace>/port-share")
@authenticated
async def delete_port_share(workspace: str) -> Response:
    body = await read_body(DeleteWorkspaceAgentPortShareRequest)
    await workspace_settings.unshare_port(context(), subject(), path_uuid(workspace), body.agent_name, body.port)
    return Response(b"", 200)


@blueprint.get("/workspaces/<workspace>/external-agent/<agent>/credentials")
@authenticated
async def get_external_credentials(workspace: str, agent: str) -> Response:
    found = await external_agents.get_credentials(context(), subject(), path_uuid(workspace), agent)
    return reply({"command": found.command, "agent_token": found.agent_token})


@blueprint.get("/workspace-quota/<user>")
@authenticated
async def get_quota(user: str) -> Response:
    found = await quotas.quota_of(context(), subject(), "default", user)
    return reply(WorkspaceQuota(credits_consumed=found.consumed, budget=found.budget))


@blueprint.get("/organizations/<organization>/members/<user>/workspace-quota")
@authenticated
async def get_member_quota(organization: str, user: str) -> Response:
    row = await resolve_organization(context(), subject(), organization)
    found = await quotas.quota_of(context(), subject(), str(row.id), user)
    return reply(WorkspaceQuota(credits_consumed=found.consumed, budget=found.budget))


@blueprint.get("/workspaces/<workspace>/agent-connection-watch")
@authenticated
async def connection_watch_without_upgrade(workspace: str) -> Response:
    await workspaces.get_workspace(context(), subject(), path_uuid(workspace))
    return needs_upgrade()


@blueprint.websocket("/workspaces/<workspace>/agent-connection-watch")
@authenticated
async def connection_watch(workspace: str) -> None:
    await over_websocket(watching.watch_connections(context(), subject(), path_uuid(workspace)))
