"""The settings of prebuilt workspaces."""

from __future__ import annotations

from quart import Blueprint, Response

from coder.api.workspaces import PrebuildsSettings
from coder.coderd.http.auth import authenticated, context, subject
from coder.coderd.http.json import read_body, reply
from coder.coderd.services import prebuilds
from coder.coderd.services.authorization import require
from coder.domain.policy import Resource

blueprint = Blueprint("prebuilds", __name__, url_prefix="/api/v2/prebuilds")


@blueprint.get("/settings")
@authenticated
async def get_settings() -> Response:
    require(subject(), "read", Resource("deployment_config"), hidden=False)
    return reply(PrebuildsSettings(reconciliation_paused=await context().db.read(prebuilds.is_paused)))


@blueprint.put("/settings")
@authenticated
async def put_settings() -> Response:
    body = await read_body(PrebuildsSettings)
    if not await prebuilds.set_paused(context(), subject(), body.reconciliation_paused):
        return Response(b"", 304)
    return reply(body)
