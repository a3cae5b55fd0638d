"""Prebuilt workspaces: their settings, and asking for new ones."""

from __future__ import annotations

from quart import Blueprint, Response

from coder.api.parameters import InvalidatePresetsResponse
from coder.api.workspaces import PrebuildsSettings
from coder.coderd.http.auth import authenticated, context, subject
from coder.coderd.http.json import read_body, reply
from coder.coderd.http.query import path_uuid
from coder.coderd.services import prebuilds
from coder.coderd.services.authorization import require
from coder.domain.policy import Resource

blueprint = Blueprint("prebuilds", __name__, url_prefix="/api/v2")


@blueprint.get("/prebuilds/settings")
@authenticated
async def get_settings() -> Response:
    require(subject(), "read", Resource("deployment_config"), hidden=False)
    return reply(PrebuildsSettings(reconciliation_paused=await context().db.read(prebuilds.is_paused)))


@blueprint.put("/prebuilds/settings")
@authenticated
async def put_settings() -> Response:
    body = await read_body(PrebuildsSettings)
    if not await prebuilds.set_paused(context(), subject(), body.reconciliation_paused):
        return Response(b"", 304)
    return reply(body)


@blueprint.post("/templates/<template>/prebuilds/invalidate")
@authenticated
async def post_invalidate(template: str) -> Response:
    found = await prebuilds.invalidate(context(), subject(), path_uuid(template))
    return reply(InvalidatePresetsResponse(invalidated=found))
