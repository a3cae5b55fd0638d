"""Workspaces: /api/v2/workspaces, /api/v2/users/{user}/workspace(s), and their settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quart import Blueprint, Response

from coder.api.base.refusals import Invalid
from coder.api.site.deployment import ExternalAgentCredentials
from coder.api.workspaces.build_timings import WorkspaceBuildTimings
from coder.api.workspaces.builds import WorkspaceBuild
from coder.api.workspaces.workspace_requests import CreateWorkspaceRequest, WorkspaceQuota
from coder.api.workspaces.workspace_settings import UpdateWorkspaceRequest
from coder.api.workspaces.workspaces import Workspace, WorkspacesResponse
from coder.coderd.http.server.audit_rules import Audited
from coder.coderd.http.server.auth import caller, context, subject
from coder.coderd.http.server.declarations import EVENTS, TEXT, search
from coder.coderd.http.server.json import no_content, read_body, reply
from coder.coderd.http.server.query import Query, path_uuid
from coder.coderd.http.server.route import WEBSOCKET, route
from coder.coderd.http.server.streams import UpgradeRefusal, events_over_websocket, needs_upgrade, over_websocket, sse
from coder.coderd.services.people import organizations, quotas, users
from coder.coderd.services.people.organizations import resolve_organization
from coder.coderd.services.workspaces import (
    external_agents,
    workspace_creation,
    workspace_settings,
    workspace_streams,
    workspaces,
)
from coder.coderd.services.workspaces.builds import build_timings, builds
from coder.domain.access.route_scopes import ANY_KEY
from coder.domain.foundation.search import parse_go_bool

if TYPE_CHECKING:
    from coder.coderd.services.access.authentication import Caller
    from coder.coderd.services.foundation.context import Context

blueprint = Blueprint("workspaces", __name__, url_prefix="/api/v2")


async def show_list(ctx: Context, requester: Caller, query: Query) -> WorkspacesResponse:
    """Return a page of workspaces."""
    page = query.page()
    query.check()
    return await workspaces.list_workspaces(
        ctx, requester.subject, query.text("q"), limit=page.limit, offset=page.offset
    )


@route(
    blueprint,
    "GET",
    "/workspaces",
    scope=ANY_KEY,  # a narrow key may list the workspaces it reaches, even if there are none
    query={
        "limit": int,
        "offset": int,
        "q": search(
            "dormant has-ai-task has_external_agent id last_used_after last_used_before name "
            "organization outdated owner param shared shared_with_group shared_with_user status "
            "template template_ids"
        ),
    },
    answers=WorkspacesResponse,
    compressed=True,
)
async def get_workspaces() -> Response:
    """Return the workspaces that match the query and that the caller may see."""
    return reply(await show_list(context(), caller(), Query()))


@route(
    blueprint,
    "POST",
    "/users/<user>/workspaces",
    scope="workspace:create",
    body=CreateWorkspaceRequest,
    answers=Workspace,
    status=201,
    refuses=(406, 409, 425, 500),
    audit=Audited("workspace", "create", "body:id"),
)
async def post_workspace(user: str) -> Response:
    """Create a workspace and its first start build."""
    owner = await users.find_person(context(), subject(), user)
    body = await read_body(CreateWorkspaceRequest)
    return reply(await workspace_creation.create_workspace(context(), subject(), owner.id, body), 201)


@route(
    blueprint,
    "POST",
    "/organizations/<organization>/members/<user>/workspaces",
    scope="workspace:create",
    body=CreateWorkspaceRequest,
    answers=Workspace,
    status=201,
    refuses=(406, 409, 425, 500),
    audit=Audited("workspace", "create", "body:id"),
)
async def post_member_workspace(organization: str, user: str) -> Response:
    """Create a workspace and its first start build."""
    organization_id = (await organizations.resolve_organization(context(), subject(), organization)).id
    owner = await users.find_person(context(), subject(), user)
    body = await read_body(CreateWorkspaceRequest)
    workspace = await workspace_creation.create_workspace(context(), subject(), owner.id, body, organization_id)
    return reply(workspace, 201)


@route(
    blueprint,
    "GET",
    "/users/<user>/workspace/<name>",
    scope="workspace:read",
    query={"include_deleted": bool},
    answers=Workspace,
    compressed=True,
)
async def get_workspace_by_name(user: str, name: str) -> Response:
    owner = await users.find_user(context(), subject(), user)
    deleted = _include_deleted("include_deleted")
    result = await workspaces.get_workspace_by_name(context(), subject(), owner.id, name, include_deleted=deleted)
    return reply(result)


@route(
    blueprint,
    "GET",
    "/users/<user>/workspace/<name>/builds/<number>",
    scope="workspace:read",
    answers=WorkspaceBuild,
    compressed=True,
)
async def get_build_by_number(user: str, name: str, number: str) -> Response:
    """Return a build by owner, workspace name and number."""
    owner = await users.find_user(context(), subject(), user)
    return reply(await builds.get_build_by_number(context(), subject(), owner.id, name, number))


@route(
    blueprint,
    "GET",
    "/workspaces/<id:workspace>",
    scope="workspace:read",
    query={"include_deleted": bool},
    answers=Workspace,
    refuses=(410,),
    compressed=True,
)
async def get_workspace(workspace: str) -> Response:
    deleted = _include_deleted("deleted")
    result = await workspaces.get_workspace(context(), subject(), path_uuid(workspace), include_deleted=deleted)
    return reply(result)


@route(
    blueprint,
    "PATCH",
    "/workspaces/<id:workspace>",
    scope="workspace:update",
    body=UpdateWorkspaceRequest,
    status=204,
    refuses=(409,),
    audit=Audited("workspace", "write"),
)
async def patch_workspace(workspace: str) -> Response:
    body = await read_body(UpdateWorkspaceRequest)
    await workspace_settings.rename_workspace(context(), subject(), path_uuid(workspace), body)
    return no_content()


def _include_deleted(field: str) -> bool:
    """Parse `?include_deleted=`; the two routes that take it refuse a non-boolean with different names. Raises
    Invalid."""
    text = Query().text("include_deleted")
    value = parse_go_bool(text) if text else False
    if value is None:
        message = f'Invalid boolean value "{text}" for "include_deleted" query param.'
        raise Invalid(message, validations=[(field, "Must be a valid boolean")])
    return value


@route(
    blueprint,
    "GET",
    "/workspaces/<id:workspace>/timings",
    scope="workspace:read",
    answers=WorkspaceBuildTimings,
    compressed=True,
)
async def get_timings(workspace: str) -> Response:
    """Return the timings of the latest build."""
    return reply(await build_timings.get_workspace_timings(context(), subject(), path_uuid(workspace)))


@route(blueprint, "GET", "/workspaces/<id:workspace>/watch", scope="workspace:read", answers=EVENTS)
async def watch(workspace: str) -> Response:
    """Send the workspace as JSON immediately, then after every change."""
    return await sse(workspace_streams.watch_workspace(context(), subject(), path_uuid(workspace)), ping_first=True)


@route(
    blueprint, "GET", "/workspaces/<id:workspace>/watch-ws", scope="workspace:read", others={426: TEXT}, refuses=(410,)
)
async def watch_without_upgrade(workspace: str) -> Response:
    await workspaces.get_workspace(context(), subject(), path_uuid(workspace), include_deleted=True)
    return needs_upgrade(UpgradeRefusal.EVENTS)


@route(blueprint, WEBSOCKET, "/workspaces/<id:workspace>/watch-ws", scope="workspace:read")
async def watch_ws(workspace: str) -> None:
    """Send the workspace as JSON immediately, then after every change."""
    source = workspace_streams.watch_workspace(context(), subject(), path_uuid(workspace))
    await events_over_websocket(source, ping_first=True)


@route(
    blueprint,
    "GET",
    "/workspaces/<id:workspace>/external-agent/<agent>/credentials",
    scope="workspace:update",
    answers=ExternalAgentCredentials,
)
async def get_external_credentials(workspace: str, agent: str) -> Response:
    """Return credentials for callers with update permission."""
    credentials = await external_agents.get_credentials(context(), subject(), path_uuid(workspace), agent)
    return reply({"command": credentials.command, "agent_token": credentials.agent_token})


@route(blueprint, "GET", "/workspace-quota/<user>", scope="user:read", answers=WorkspaceQuota)
async def get_quota(user: str) -> Response:
    """Return a member's used and allowed quota."""
    result = await quotas.quota_of(context(), subject(), "default", user)
    return reply(WorkspaceQuota(credits_consumed=result.consumed, budget=result.budget))


@route(
    blueprint,
    "GET",
    "/organizations/<organization>/members/<user>/workspace-quota",
    scope="user:read",
    answers=WorkspaceQuota,
)
async def get_member_quota(organization: str, user: str) -> Response:
    """Return a member's used and allowed quota."""
    row = await resolve_organization(context(), subject(), organization)
    result = await quotas.quota_of(context(), subject(), str(row.id), user)
    return reply(WorkspaceQuota(credits_consumed=result.consumed, budget=result.budget))


@route(
    blueprint,
    "GET",
    "/workspaces/<id:workspace>/agent-connection-watch",
    scope="workspace:read",
    others={426: TEXT},
    refuses=(410,),
)
async def connection_watch_without_upgrade(workspace: str) -> Response:
    await workspaces.get_workspace(context(), subject(), path_uuid(workspace))
    return needs_upgrade()


@route(blueprint, WEBSOCKET, "/workspaces/<id:workspace>/agent-connection-watch", scope="workspace:read")
async def connection_watch(workspace: str) -> None:
    """Send the events that a connecting client waits for."""
    await over_websocket(workspace_streams.watch_connections(context(), subject(), path_uuid(workspace)))
