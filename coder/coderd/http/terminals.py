"""The web terminal: /api/v2/workspaceagents/{agent}/pty, a WebSocket whose bytes are the agent's, both ways.

Reached by page address as well as by script, so who may not see the workspace gets the page "not found" instead of
JSON (recorded).
"""

from __future__ import annotations

from quart import Blueprint, Response, websocket

from coder.coderd.http.auth import authenticated, context, subject
from coder.coderd.http.query import path_uuid
from coder.coderd.http.streams import needs_upgrade
from coder.coderd.services import terminals
from coder.coderd.services.agents import load_agent
from coder.coderd.services.errors import BadGateway, Forbidden, NotFound

blueprint = Blueprint("terminals", __name__, url_prefix="/api/v2/workspaceagents")

_NOT_FOUND = (
    "<!doctype html><html><head><title>404 - Application Not Found</title></head><body>"
    "<h1>404 - Application Not Found</h1><p>The application or workspace you are trying to access does not exist or "
    "you do not have permission to access it.</p></body></html>"
)
_DIAL_FAILED = 1011


def _page() -> Response:
    return Response(_NOT_FOUND, 404, content_type="text/html; charset=utf-8")


@blueprint.get("/<agent>/pty")
@authenticated
async def without_upgrade(agent: str) -> Response:
    try:
        await load_agent(context(), subject(), path_uuid(agent), "ssh")
    except (NotFound, Forbidden):
        return _page()
    return needs_upgrade()


@blueprint.websocket("/<agent>/pty")
@authenticated
async def terminal(agent: str) -> Response | None:
    wish = terminals.read_wish(websocket.args)
    agent_id = path_uuid(agent)
    try:
        await load_agent(context(), subject(), agent_id, "ssh")
    except (NotFound, Forbidden):
        return _page()
    await websocket.accept()
    try:
        await terminals.attach(context(), agent_id, wish, websocket.receive, websocket.send)
    except BadGateway as error:
        await websocket.close(_DIAL_FAILED, f"dial workspace agent: {error.message}")
    else:
        await websocket.close(1000, "")
    return None
