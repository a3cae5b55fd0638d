"""Abandoning a workspace, and its possible remains. Ours, not upstream's."""

from __future__ import annotations

from quart import Blueprint, Response

from coder.api.workspaces.workspace_inventory import WorkspaceInventory
from coder.coderd.http.server.audit_rules import Audited
from coder.coderd.http.server.auth import context, subject
from coder.coderd.http.server.json import reply
from coder.coderd.http.server.query import path_uuid
from coder.coderd.http.server.route import route
from coder.coderd.services.workspaces import orphaning, workspace_inventory

blueprint = Blueprint("workspace_inventory", __name__, url_prefix="/api/v2")


@route(
    blueprint,
    "GET",
    "/workspaces/<id:workspace>/inventory",
    scope="workspace:delete",
    answers=WorkspaceInventory,
    refuses=(410,),
)
async def get_inventory(workspace: str) -> Response:
    """Return the resources in the last build's state."""
    return reply(await workspace_inventory.show_inventory(context(), subject(), path_uuid(workspace)))


@route(
    blueprint,
    "POST",
    "/workspaces/<id:workspace>/abandon",
    scope="workspace:delete",
    answers=WorkspaceInventory,
    refuses=(409, 410, 500),
    audit=Audited("workspace", "delete"),
)
async def post_abandon(workspace: str) -> Response:
    """Delete the workspace on the server without destroying its resources; return the possible remains."""
    return reply(await orphaning.abandon(context(), subject(), path_uuid(workspace)))
