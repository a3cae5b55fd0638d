"""Workspace proxies and regions."""

from __future__ import annotations

from quart import Blueprint, Response

from coder.api.base.errors import Response as Envelope
from coder.api.proxies.proxies import (
    CreateWorkspaceProxyRequest,
    PatchWorkspaceProxy,
    RegionsResponse,
    UpdateWorkspaceProxyResponse,
    WorkspaceProxiesResponse,
    WorkspaceProxy,
)
from coder.coderd.http.server.audit_rules import Audited
from coder.coderd.http.server.auth import context, subject
from coder.coderd.http.server.json import message, read_body, reply
from coder.coderd.http.server.route import route
from coder.coderd.services.proxies import workspace_proxies
from coder.domain.access.route_scopes import ANY_KEY

blueprint = Blueprint("workspace_proxies", __name__, url_prefix="/api/v2")


@route(blueprint, "GET", "/regions", scope=ANY_KEY, answers=RegionsResponse, compressed=True)
async def get_regions() -> Response:
    """Return the regions that serve applications: this server, and the proxies that serve any."""
    return reply(RegionsResponse(regions=await workspace_proxies.list_regions(context())))


@route(
    blueprint,
    "GET",
    "/workspaceproxies",
    scope="workspace_proxy:read",
    answers=WorkspaceProxiesResponse,
    compressed=True,
)
async def get_proxies() -> Response:
    """Return the proxies, the primary region first."""
    return reply(WorkspaceProxiesResponse(regions=await workspace_proxies.list_proxies(context(), subject())))


@route(
    blueprint,
    "POST",
    "/workspaceproxies",
    scope="workspace_proxy:create",
    body=CreateWorkspaceProxyRequest,
    answers=UpdateWorkspaceProxyResponse,
    status=201,
    refuses=(409,),
    audit=Audited("workspace_proxy", "create", "body:proxy"),
)
async def post_proxy() -> Response:
    """Create a proxy; return its token, which is never shown again."""
    body = await read_body(CreateWorkspaceProxyRequest)
    return reply(await workspace_proxies.create_proxy(context(), subject(), body), 201)


@route(blueprint, "GET", "/workspaceproxies/<proxy>", scope="workspace_proxy:read", answers=WorkspaceProxy)
async def get_proxy(proxy: str) -> Response:
    return reply(await workspace_proxies.get_proxy(context(), subject(), proxy))


@route(
    blueprint,
    "PATCH",
    "/workspaceproxies/<proxy>",
    scope="workspace_proxy:update",
    body=PatchWorkspaceProxy,
    answers=UpdateWorkspaceProxyResponse,
    refuses=(409,),
    audit=Audited("workspace_proxy", "write"),
)
async def patch_proxy(proxy: str) -> Response:
    """Change a proxy. Empty fields are kept."""
    body = await read_body(PatchWorkspaceProxy)
    return reply(await workspace_proxies.update_proxy(context(), subject(), proxy, body))


@route(
    blueprint,
    "DELETE",
    "/workspaceproxies/<proxy>",
    scope="workspace_proxy:delete",
    answers=Envelope,
    audit=Audited("workspace_proxy", "delete"),
)
async def delete_proxy(proxy: str) -> Response:
    await workspace_proxies.delete_proxy(context(), subject(), proxy)
    return message("Proxy has been deleted!")
