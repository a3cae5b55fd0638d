"""Workspaces: /api/v2/workspaces, /api/v2/users/{user}/workspace(s), and their settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quart import Blueprint, Response

from coder.api.agents.agents import (
    DeleteWorkspaceAgentPortShareRequest,
    UpsertWorkspaceAgentPortShareRequest,
    WorkspaceAgentPortShare,
    WorkspaceAgentPortShares,
)
from coder.api.base.errors import Response as Envelope
from coder.api.base.struct import ApiStruct
from coder.api.site.deployment import ExternalAgentCredentials, ResolveAutostartResponse
from coder.api.workspaces.builds import WorkspaceBuild, WorkspaceBuildTimings
from coder.api.workspaces.workspaces import (
    CreateWorkspaceRequest,
    PostWorkspaceUsageRequest,
    UpdateWorkspaceACL,
    UpdateWorkspaceAutomaticUpdatesRequest,
    UpdateWorkspaceAutostartRequest,
    UpdateWorkspaceDormancy,
    UpdateWorkspaceRequest,
    UpdateWorkspaceTTLRequest,
    Workspace,
    WorkspaceACL,
    WorkspaceQuota,
    WorkspacesResponse,
)
from coder.coderd.http.server.audit_rules import Audited
from coder.coderd.http.server.auth import caller, context, subject
from coder.coderd.http.server.declarations import EVENTS, NOTHING, TEXT, search
from coder.coderd.http.server.json import message, no_content, read_body, reply
from coder.coderd.http.server.query import Query, path_uuid
from coder.coderd.http.server.route import WEBSOCKET, route
from coder.coderd.http.server.streams import events_over_websocket, needs_upgrade, over_websocket, sse
from coder.coderd.services.foundation.errors import Invalid
from coder.coderd.services.people import organizations, users
from coder.coderd.services.people.organizations import resolve_organization
from coder.coderd.services.provisioning import quotas
from coder.coderd.services.workspaces import builds, external_agents, subscriptions, workspace_settings, workspaces
from coder.coderd.services.workspaces.workspace_settings import PortShareRow
from coder.domain.access.route_scopes import ANY_KEY
from coder.domain.foundation.search import parse_rfc3339
from coder.domain.foundation.zero import NIL_UUID

if TYPE_CHECKING:
    from coder.coderd.services.access.authentication import Caller
    from coder.coderd.services.foundation.context import Context

blueprint = Blueprint("workspaces", __name__, url_prefix="/api/v2")


class _Extension(ApiStruct):
    """`PutExtendWorkspaceRequest` with the time still a text, so that the refusal can name it."""

    deadline: str


async def show_list(ctx: Context, who: Caller, query: Query) -> WorkspacesResponse:
    """A page of workspaces."""
    limit, offset = query.positive("limit"), query.positive("offset")
    query.check()
    return await workspaces.list_workspaces(ctx, who.subject, query.text("q"), limit=limit, offset=offset)


@route(
    blueprint,
    "GET",
    "/workspaces",
    scope=ANY_KEY,  # a narrow key sees the workspaces it reaches, be it none
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
)
async def get_workspaces() -> Response:
    """The workspaces `subject` may see and `query` asks for."""
    return reply(await show_list(context(), caller(), Query()))


@route(
    blueprint,
    "POST",
    "/users/<user>/workspaces",
    scope="workspace:create",
    body=CreateWorkspaceRequest,
    answers=Workspace,
    status=201,
    refuses=(409, 425, 500),
    audit=Audited("workspace", "create", "body:id"),
)
async def post_workspace(user: str) -> Response:
    """A new workspace and its first start build."""
    owner = await users.find_person(context(), subject(), user)
    body = await read_body(CreateWorkspaceRequest)
    return reply(await workspaces.create_workspace(context(), subject(), owner.id, body), 201)


@route(
    blueprint,
    "POST",
    "/organizations/<organization>/members/<user>/workspaces",
    scope="workspace:create",
    body=CreateWorkspaceRequest,
    answers=Workspace,
    status=201,
    refuses=(409, 425, 500),
    audit=Audited("workspace", "create", "body:id"),
)
async def post_member_workspace(organization: str, user: str) -> Response:
    """A new workspace and its first start build."""
    organization_id = (await organizations.resolve_organization(context(), subject(), organization)).id
    owner = await users.find_person(context(), subject(), user)
    body = await read_body(CreateWorkspaceRequest)
    made = await workspaces.create_workspace(context(), subject(), owner.id, body, organization_id)
    return reply(made, 201)


@route(
    blueprint,
    "GET",
    "/users/<user>/workspace/<name>",
    scope="workspace:read",
    query={"include_deleted": bool},
    answers=Workspace,
)
async def get_workspace_by_name(user: str, name: str) -> Response:
    owner = await users.find_user(context(), subject(), user)
    deleted = Query().boolean("include_deleted")
    found = await workspaces.get_workspace_by_name(context(), subject(), owner.id, name, include_deleted=deleted)
    return reply(found)


@route(
    blueprint, "GET", "/users/<user>/workspace/<name>/builds/<number>", scope="workspace:read", answers=WorkspaceBuild
)
async def get_build_by_number(user: str, name: str, number: str) -> Response:
    """By owner, workspace name and number."""
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
)
async def get_workspace(workspace: str) -> Response:
    deleted = Query().boolean("include_deleted")
    found = await workspaces.get_workspace(context(), subject(), path_uuid(workspace), include_deleted=deleted)
    return reply(found)


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
    await workspaces.rename_workspace(context(), subject(), path_uuid(workspace), body)
    return no_content()


@route(
    blueprint,
    "PUT",
    "/workspaces/<id:workspace>/autostart",
    scope="workspace:update",
    body=UpdateWorkspaceAutostartRequest,
    status=204,
    audit=Audited("workspace", "write"),
)
async def put_autostart(workspace: str) -> Response:
    """None or empty clears."""
    body = await read_body(UpdateWorkspaceAutostartRequest)
    await workspace_settings.set_autostart(context(), subject(), path_uuid(workspace), body.schedule or None)
    return no_content()


@route(
    blueprint,
    "PUT",
    "/workspaces/<id:workspace>/ttl",
    scope="workspace:update",
    body=UpdateWorkspaceTTLRequest,
    status=204,
    audit=Audited("workspace", "write"),
)
async def put_ttl(workspace: str) -> Response:
    """None or 0 clears, and with it the deadline of a running build."""
    body = await read_body(UpdateWorkspaceTTLRequest)
    await workspace_settings.set_ttl(context(), subject(), path_uuid(workspace), body.ttl_ms)
    return no_content()


@route(
    blueprint,
    "PUT",
    "/workspaces/<id:workspace>/extend",
    scope="workspace:update",
    body=_Extension,
    answers=Envelope,
    refuses=(409,),
)
async def put_extend(workspace: str) -> Response:
    """Moves the deadline of a running workspace, later or sooner."""
    workspace_id = path_uuid(workspace)
    text = (await read_body(_Extension)).deadline
    deadline = parse_rfc3339(text)
    if deadline is None:
        layout = "2006-01-02T15:04:05Z07:00"
        detail = f'parsing time "{text}" as "{layout}": cannot parse "{text}" as "2006"'
        raise Invalid("Request body must be valid JSON.", detail)
    await workspace_settings.extend(context(), subject(), workspace_id, deadline)
    return message(f"Deadline updated to {text}.")


@route(
    blueprint,
    "PUT",
    "/workspaces/<id:workspace>/dormant",
    scope="workspace:update",
    body=UpdateWorkspaceDormancy,
    answers=Workspace,
    others={304: NOTHING},
    audit=Audited("workspace", "write"),
)
async def put_dormant(workspace: str) -> Response:
    """Puts a workspace to sleep or wakes it. None when it is so already."""
    body = await read_body(UpdateWorkspaceDormancy)
    changed = await workspace_settings.set_dormant(context(), subject(), path_uuid(workspace), body.dormant)
    return Response(b"", 304) if changed is None else reply(changed)


@route(
    blueprint,
    "PUT",
    "/workspaces/<id:workspace>/favorite",
    scope="workspace:update",
    status=204,
    audit=Audited("workspace", "write"),
)
async def put_favorite(workspace: str) -> Response:
    await workspace_settings.set_favorite(context(), subject(), path_uuid(workspace), True)
    return no_content()


@route(
    blueprint,
    "DELETE",
    "/workspaces/<id:workspace>/favorite",
    scope="workspace:update",
    status=204,
    audit=Audited("workspace", "write"),
)
async def delete_favorite(workspace: str) -> Response:
    await workspace_settings.set_favorite(context(), subject(), path_uuid(workspace), False)
    return no_content()


@route(
    blueprint,
    "PUT",
    "/workspaces/<id:workspace>/autoupdates",
    scope="workspace:update",
    body=UpdateWorkspaceAutomaticUpdatesRequest,
    status=204,
    audit=Audited("workspace", "write"),
)
async def put_automatic_updates(workspace: str) -> Response:
    body = await read_body(UpdateWorkspaceAutomaticUpdatesRequest)
    await workspace_settings.set_automatic_updates(context(), subject(), path_uuid(workspace), body.automatic_updates)
    return no_content()


@route(
    blueprint,
    "GET",
    "/workspaces/<id:workspace>/resolve-autostart",
    scope="workspace:read",
    answers=ResolveAutostartResponse,
)
async def resolve_autostart(workspace: str) -> Response:
    """False: the active version has parameters that nobody has answered yet (`parameter_mismatch`)."""
    able = await workspace_settings.can_autostart(context(), subject(), path_uuid(workspace))
    return reply({"parameter_mismatch": not able})


@route(
    blueprint,
    "POST",
    "/workspaces/<id:workspace>/usage",
    scope="workspace:read",
    body=PostWorkspaceUsageRequest,
    allow_empty=True,
    status=204,
)
async def post_usage(workspace: str) -> Response:
    """Somebody uses the workspace. Unknown agents and apps, and what is no such body, count as plain use: recorded."""
    try:
        body = await read_body(PostWorkspaceUsageRequest)
        agent_id, app = body.agent_id if body.agent_id != NIL_UUID else None, body.app_name
    except Invalid:
        agent_id, app = None, ""
    await workspace_settings.record_usage(context(), subject(), path_uuid(workspace), agent_id, app)
    return no_content()


@route(blueprint, "GET", "/workspaces/<id:workspace>/timings", scope="workspace:read", answers=WorkspaceBuildTimings)
async def get_timings(workspace: str) -> Response:
    """Of the latest build."""
    return reply(await builds.get_workspace_timings(context(), subject(), path_uuid(workspace)))


@route(blueprint, "GET", "/workspaces/<id:workspace>/watch", scope="workspace:read", answers=EVENTS)
async def watch(workspace: str) -> Response:
    """The workspace as JSON at once, then whenever it looks different."""
    return await sse(subscriptions.watch_workspace(context(), subject(), path_uuid(workspace)), ping_first=True)


@route(
    blueprint, "GET", "/workspaces/<id:workspace>/watch-ws", scope="workspace:read", others={426: TEXT}, refuses=(410,)
)
async def watch_without_upgrade(workspace: str) -> Response:
    await workspaces.get_workspace(context(), subject(), path_uuid(workspace), include_deleted=True)
    return needs_upgrade()


@route(blueprint, WEBSOCKET, "/workspaces/<id:workspace>/watch-ws", scope="workspace:read")
async def watch_ws(workspace: str) -> None:
    """The workspace as JSON at once, then whenever it looks different."""
    source = subscriptions.watch_workspace(context(), subject(), path_uuid(workspace))
    await events_over_websocket(source, ping_first=True)


@route(blueprint, "GET", "/workspaces/<id:workspace>/acl", scope="workspace:read", answers=WorkspaceACL)
async def get_acl(workspace: str) -> Response:
    """Whom the workspace is shared with. Group members are not listed, only counted."""
    return reply(await workspace_settings.get_acl(context(), subject(), path_uuid(workspace)))


@route(
    blueprint,
    "PATCH",
    "/workspaces/<id:workspace>/acl",
    scope="workspace:share",
    body=UpdateWorkspaceACL,
    status=204,
    audit=Audited("workspace", "write"),
)
async def patch_acl(workspace: str) -> Response:
    """Gives or takes (empty role) access."""
    body = await read_body(UpdateWorkspaceACL)
    await workspace_settings.update_acl(
        context(), subject(), path_uuid(workspace), body.user_roles or {}, body.group_roles or {}
    )
    return no_content()


@route(
    blueprint,
    "DELETE",
    "/workspaces/<id:workspace>/acl",
    scope="workspace:share",
    status=204,
    audit=Audited("workspace", "write"),
)
async def delete_acl(workspace: str) -> Response:
    await workspace_settings.clear_acl(context(), subject(), path_uuid(workspace))
    return Response(b"", 204, content_type="application/json; charset=utf-8")  # as recorded, unlike its neighbours


@route(
    blueprint, "GET", "/workspaces/<id:workspace>/port-share", scope="workspace:read", answers=WorkspaceAgentPortShares
)
async def get_port_shares(workspace: str) -> Response:
    return reply(await workspace_settings.list_port_shares(context(), subject(), path_uuid(workspace)))


@route(
    blueprint,
    "POST",
    "/workspaces/<id:workspace>/port-share",
    scope="workspace:update",
    body=UpsertWorkspaceAgentPortShareRequest,
    answers=WorkspaceAgentPortShare,
)
async def post_port_share(workspace: str) -> Response:
    """Shares a port, or changes how."""
    body = await read_body(UpsertWorkspaceAgentPortShareRequest)
    share = PortShareRow(path_uuid(workspace), body.agent_name, body.port, body.share_level, body.protocol)
    return reply(await workspace_settings.share_port(context(), subject(), share))


@route(
    blueprint,
    "DELETE",
    "/workspaces/<id:workspace>/port-share",
    scope="workspace:update",
    body=DeleteWorkspaceAgentPortShareRequest,
)
async def delete_port_share(workspace: str) -> Response:
    body = await read_body(DeleteWorkspaceAgentPortShareRequest)
    await workspace_settings.unshare_port(context(), subject(), path_uuid(workspace), body.agent_name, body.port)
    return Response(b"", 200)


@route(
    blueprint,
    "GET",
    "/workspaces/<id:workspace>/external-agent/<agent>/credentials",
    scope="workspace:update",
    answers=ExternalAgentCredentials,
)
async def get_external_credentials(workspace: str, agent: str) -> Response:
    """For those who may change the workspace."""
    found = await external_agents.get_credentials(context(), subject(), path_uuid(workspace), agent)
    return reply({"command": found.command, "agent_token": found.agent_token})


@route(blueprint, "GET", "/workspace-quota/<user>", scope="user:read", answers=WorkspaceQuota)
async def get_quota(user: str) -> Response:
    """What a member uses and may use."""
    found = await quotas.quota_of(context(), subject(), "default", user)
    return reply(WorkspaceQuota(credits_consumed=found.consumed, budget=found.budget))


@route(
    blueprint,
    "GET",
    "/organizations/<organization>/members/<user>/workspace-quota",
    scope="user:read",
    answers=WorkspaceQuota,
)
async def get_member_quota(organization: str, user: str) -> Response:
    """What a member uses and may use."""
    row = await resolve_organization(context(), subject(), organization)
    found = await quotas.quota_of(context(), subject(), str(row.id), user)
    return reply(WorkspaceQuota(credits_consumed=found.consumed, budget=found.budget))


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
    """What somebody who wants to connect waits for."""
    await over_websocket(subscriptions.watch_connections(context(), subject(), path_uuid(workspace)))
