"""What may remain of a workspace, and giving it up. Ours, not upstream's."""

from __future__ import annotations

from quart import Blueprint, Response

from coder.coderd.http.auth import authenticated, context, subject
from coder.coderd.http.json import reply
from coder.coderd.http.query import path_uuid
from coder.coderd.services import abandonment

blueprint = Blueprint("workspace_inventory", __name__, url_prefix="/api/v2")


@blueprint.get("/workspaces/<workspace>/inventory")
@authenticated
async def get_inventory(workspace: str) -> Response:
    return reply(await abandonment.show_inventory(context(), subject(), path_uuid(workspace)))


@blueprint.post("/workspaces/<workspace>/abandon")
@authenticated
async def post_abandon(workspace: str) -> Response:
    return reply(await abandonment.abandon(context(), subject(), path_uuid(workspace)))
