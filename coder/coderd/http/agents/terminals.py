"""The web terminal: /api/v2/workspaceagents/{agent}/pty, a WebSocket that carries the agent's bytes both ways.

Browsers open it by address as well as by script, so a caller without access to the workspace gets the page "not found"
instead of JSON (recorded).
"""

from __future__ import annotations

import functools
from uuid import UUID

from quart import Blueprint, Response, websocket

from coder.api.base.refusals import BadGateway, Forbidden, NotFound
from coder.appproxy.agents import terminals
from coder.appproxy.apps.app_visitor import Visitor
from coder.coderd.http.server.auth import context, optional_caller, remote_ip, while_signed_in
from coder.coderd.http.server.declarations import HTML, LIMIT, TEXT
from coder.coderd.http.server.query import path_uuid
from coder.coderd.http.server.route import WEBSOCKET, route
from coder.coderd.http.server.streams import needs_upgrade
from coder.coderd.services.access.session_revocation import CLOSE_CODE
from coder.coderd.services.agents.agent_access import CurrentAgent, find_agent_unchecked, load_agent
from coder.coderd.services.apps import session_handover
from coder.domain.apps.app_headers import SIGNED_TOKEN_QUERY

blueprint = Blueprint("terminals", __name__, url_prefix="/api/v2/workspaceagents")

_NOT_FOUND = (
    "<!doctype html><html><head><title>404 - Application Not Found</title></head><body>"
    "<h1>404 - Application Not Found</h1><p>The application or workspace you are trying to access does not exist or "
    "you do not have permission to access it.</p></body></html>"
)
_DIAL_FAILED = 1011


def _page() -> Response:
    return Response(_NOT_FOUND, 404, content_type="text/html; charset=utf-8")


async def _may_open(agent_id: UUID) -> CurrentAgent | None:
    caller = await optional_caller()
    if caller is None:
        return None
    try:
        return await load_agent(context(), caller.subject, agent_id, "ssh")
    except (NotFound, Forbidden):
        return None


@route(blueprint, "GET", "/<id:agent>/pty", scope="workspace:ssh", asks_itself=True, others={404: HTML, 426: TEXT})
async def without_upgrade(agent: str) -> Response:
    agent_place = await _may_open(path_uuid(agent))
    caller = await optional_caller()
    # Recorded: a plain request reveals the terminal to the workspace's owner only.
    is_own = agent_place is not None and caller is not None and agent_place.owner_id == caller.user.id
    return needs_upgrade() if is_own else _page()


@route(
    blueprint,
    WEBSOCKET,
    "/<id:agent>/pty",
    scope="workspace:ssh",
    asks_itself=True,
    query={SIGNED_TOKEN_QUERY: str},
    others={404: HTML},
    limit=LIMIT,
)
async def terminal(agent: str) -> Response | None:
    """Copy bytes until the terminal ends or the caller is cancelled (the browser disconnected)."""
    agent_id = path_uuid(agent)
    ticket = websocket.args.get(SIGNED_TOKEN_QUERY, "")
    holder = await session_handover.find_terminal_visitor(context(), ticket, agent_id) if ticket else None
    if holder is not None:
        # A ticket names its user and key; the right may have been lost, or the key ended, since it was issued.
        visits = context().services.edge.open_streams
        if not await visits.may_use_terminal(holder, agent_id):
            return _page()
        return await _attach(await find_agent_unchecked(context(), agent_id), holder)
    visitor = await optional_caller()
    agent_place = await _may_open(agent_id)
    if visitor is None or agent_place is None:
        return _page()
    return await while_signed_in(
        visitor, functools.partial(_attach, agent_place, Visitor(visitor.credentials, visitor.user.id))
    )


async def _attach(agent_place: CurrentAgent | None, visitor: Visitor) -> Response | None:
    if agent_place is None:
        return _page()
    agent_id = agent_place.agent.id
    spec = terminals.read_spec(websocket.args)
    edge = context().services.edge
    visits = edge.open_streams
    user_agent = websocket.headers.get("User-Agent", "")
    await edge.app_usage.log_terminal(agent_place, visitor.user_id, remote_ip(), user_agent)
    await websocket.accept()
    with visits.track_terminal(visitor, agent_id) as scope:
        try:
            await terminals.attach(context(), agent_id, spec, websocket.receive, websocket.send)
        except BadGateway as error:
            await websocket.close(_DIAL_FAILED, f"dial workspace agent: {error.message}")
        else:
            await websocket.close(1000, "")
    if scope.cancelled_caught:
        await websocket.close(CLOSE_CODE, "no longer allowed")
    return None
