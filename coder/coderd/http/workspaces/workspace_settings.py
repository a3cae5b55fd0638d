"""Settings of a workspace: schedule, dormancy, favourite, sharing, ports."""

from __future__ import annotations

from quart import Blueprint, Response

from coder.api.agents.agent_ports import (
    DeleteWorkspaceAgentPortShareRequest,
    UpsertWorkspaceAgentPortShareRequest,
    WorkspaceAgentPortShare,
    WorkspaceAgentPortShares,
)
from coder.api.base.errors import Response as Envelope
from coder.api.base.refusals import Invalid
from coder.api.site.deployment import ResolveAutostartResponse
from coder.api.workspaces.workspace_settings import (
    ExtendWorkspaceRequest,
    PostWorkspaceUsageRequest,
    UpdateWorkspaceACL,
    UpdateWorkspaceAutomaticUpdatesRequest,
    UpdateWorkspaceAutostartRequest,
    UpdateWorkspaceDormancy,
    UpdateWorkspaceTTLRequest,
    WorkspaceACL,
)
from coder.api.workspaces.workspaces import Workspace
from coder.coderd.http.server.audit_rules import Audited
from coder.coderd.http.server.auth import context, subject
from coder.coderd.http.server.declarations import NOTHING
from coder.coderd.http.server.json import message, no_content, read_body, reply
from coder.coderd.http.server.query import path_uuid
from coder.coderd.http.server.route import route
from coder.coderd.services.activity import workspace_usage
from coder.coderd.services.workspaces import (
    port_shares,
    workspace_dormancy,
    workspace_schedule,
    workspace_settings,
    workspace_sharing,
)
from coder.domain.foundation.zero import NIL_UUID

blueprint = Blueprint("workspace_settings", __name__, url_prefix="/api/v2")


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
    """Set the schedule; None or empty clears it."""
    body = await read_body(UpdateWorkspaceAutostartRequest)
    await workspace_schedule.set_autostart(context(), subject(), path_uuid(workspace), body)
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
    """Set the time to live; None or 0 clears it, and with it the deadline of a running build."""
    body = await read_body(UpdateWorkspaceTTLRequest)
    await workspace_schedule.set_ttl(context(), subject(), path_uuid(workspace), body)
    return no_content()


@route(
    blueprint,
    "PUT",
    "/workspaces/<id:workspace>/extend",
    scope="workspace:update",
    body=ExtendWorkspaceRequest,
    answers=Envelope,
    refuses=(409,),
    audit=Audited("workspace", "write"),
)
async def put_extend(workspace: str) -> Response:
    """Move the deadline of a running workspace, later or sooner."""
    workspace_id = path_uuid(workspace)
    body = await read_body(ExtendWorkspaceRequest)
    await workspace_schedule.extend(context(), subject(), workspace_id, body)
    return message(f"Deadline updated to {body.deadline}.")


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
    """Make a workspace dormant or activate it. None when the state is unchanged."""
    body = await read_body(UpdateWorkspaceDormancy)
    changed = await workspace_dormancy.set_dormant(context(), subject(), path_uuid(workspace), body.dormant)
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
    await workspace_settings.set_automatic_updates(context(), subject(), path_uuid(workspace), body)
    return no_content()


@route(
    blueprint,
    "GET",
    "/workspaces/<id:workspace>/resolve-autostart",
    scope="workspace:read",
    answers=ResolveAutostartResponse,
)
async def resolve_autostart(workspace: str) -> Response:
    """Return False in `parameter_mismatch` unless the active version has parameters without a value."""
    able = await workspace_schedule.can_autostart(context(), subject(), path_uuid(workspace))
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
    """Record a use of the workspace. Unknown agents and apps, and an invalid body, count as plain use: recorded."""
    try:
        body = await read_body(PostWorkspaceUsageRequest)
        agent_id, app = body.agent_id if body.agent_id != NIL_UUID else None, body.app_name
    except Invalid:
        agent_id, app = None, ""
    await workspace_usage.record_usage(context(), subject(), path_uuid(workspace), agent_id, app)
    return no_content()


@route(blueprint, "GET", "/workspaces/<id:workspace>/acl", scope="workspace:read", answers=WorkspaceACL)
async def get_acl(workspace: str) -> Response:
    """Return the users and groups the workspace is shared with. Group members are not listed, only counted."""
    return reply(await workspace_sharing.get_acl(context(), subject(), path_uuid(workspace)))


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
    """Grant or revoke (empty role) access."""
    body = await read_body(UpdateWorkspaceACL)
    await workspace_sharing.update_acl(
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
    await workspace_sharing.clear_acl(context(), subject(), path_uuid(workspace))
    return Response(b"", 204, content_type="application/json; charset=utf-8")  # as recorded, unlike its neighbours


@route(
    blueprint, "GET", "/workspaces/<id:workspace>/port-share", scope="workspace:read", answers=WorkspaceAgentPortShares
)
async def get_port_shares(workspace: str) -> Response:
    return reply(await port_shares.list_port_shares(context(), subject(), path_uuid(workspace)))


@route(
    blueprint,
    "POST",
    "/workspaces/<id:workspace>/port-share",
    scope="workspace:update",
    body=UpsertWorkspaceAgentPortShareRequest,
    answers=WorkspaceAgentPortShare,
    audit=Audited("workspace", "write"),
)
async def post_port_share(workspace: str) -> Response:
    """Share a port, or change its level."""
    body = await read_body(UpsertWorkspaceAgentPortShareRequest)
    return reply(await port_shares.share_port(context(), subject(), path_uuid(workspace), body))


@route(
    blueprint,
    "DELETE",
    "/workspaces/<id:workspace>/port-share",
    scope="workspace:update",
    body=DeleteWorkspaceAgentPortShareRequest,
    audit=Audited("workspace", "write"),
)
async def delete_port_share(workspace: str) -> Response:
    body = await read_body(DeleteWorkspaceAgentPortShareRequest)
    await port_shares.unshare_port(context(), subject(), path_uuid(workspace), body.agent_name, body.port)
    return Response(b"", 200)
