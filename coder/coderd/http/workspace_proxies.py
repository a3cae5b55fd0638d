"""Workspace proxies and regions."""

from __future__ import annotations

from quart import Blueprint, Response

from coder.api.proxies import CreateWorkspaceProxyRequest, PatchWorkspaceProxy
from coder.coderd.http.auth import authenticated, context, subject
from coder.coderd.http.json import message, read_body, reply
from coder.coderd.services import workspace_proxies

blueprint = Blueprint("workspace_proxies", __name__, url_prefix="/api/v2")


@blueprint.get("/regions")
@authenticated
async def get_regions() -> Response:
    return reply({"regions": await workspace_proxies.list_regions(context())})


@blueprint.get("/workspaceproxies")
@authenticated
async def get_proxies() -> Response:
    return reply({"regions": await workspace_proxies.list_proxies(context(), subject())})


@blueprint.post("/workspaceproxies")
@authenticated
async def post_proxy() -> Response:
    body = await read_body(CreateWorkspaceProxyRequest)
    return reply(await workspace_proxies.create_proxy(context(), subject(), body), 201)


@blueprint.get("/workspaceproxies/<proxy>")
@authenticated
async def get_proxy(proxy: str) -> Response:
    return reply(await workspace_proxies.get_proxy(context(), subject(), proxy))


@blueprint.patch("/workspaceproxies/<proxy>")
@authenticated
async def patch_proxy(proxy: str) -> Response:
    body = await read_body(PatchWorkspaceProxy)
    return reply(await workspace_proxies.update_proxy(context(), subject(), proxy, body))


@blueprint.delete("/workspaceproxies/<proxy>")
@authenticated
async def delete_proxy(proxy: str) -> Response:
    await workspace_proxies.delete_proxy(context(), subject(), proxy)
    return message("Proxy has been deleted!")
