"""Prebuilt workspaces: their settings, and replacement."""

from __future__ import annotations

from quart import Blueprint, Response

from coder.api.templates.parameters import InvalidatePresetsResponse
from coder.api.workspaces.workspace_requests import PrebuildsSettings
from coder.coderd.http.server.audit_rules import Audited
from coder.coderd.http.server.auth import context, subject
from coder.coderd.http.server.declarations import NOTHING
from coder.coderd.http.server.json import read_body, reply
from coder.coderd.http.server.query import path_uuid
from coder.coderd.http.server.route import route
from coder.coderd.services.workspaces import prebuilds

blueprint = Blueprint("prebuilds", __name__, url_prefix="/api/v2")


@route(blueprint, "GET", "/prebuilds/settings", scope="deployment_config:read", answers=PrebuildsSettings)
async def get_settings() -> Response:
    return reply(await prebuilds.settings(context(), subject()))


@route(
    blueprint,
    "PUT",
    "/prebuilds/settings",
    scope="deployment_config:update",
    body=PrebuildsSettings,
    answers=PrebuildsSettings,
    others={304: NOTHING},
    audit=Audited("prebuilds_settings", "write", "", settings=prebuilds.settings),
)
async def put_settings() -> Response:
    body = await read_body(PrebuildsSettings)
    if not await prebuilds.set_paused(context(), subject(), body.reconciliation_paused):
        return Response(b"", 304)
    return reply(body)


@route(
    blueprint,
    "POST",
    "/templates/<id:template>/prebuilds/invalidate",
    scope="template:update",
    answers=InvalidatePresetsResponse,
    audit=Audited("template", "write"),
)
async def post_invalidate(template: str) -> Response:
    """Replace every unclaimed workspace of the template's presets; none of them is claimed anymore."""
    result = await prebuilds.invalidate(context(), subject(), path_uuid(template))
    return reply(InvalidatePresetsResponse(invalidated=result))
