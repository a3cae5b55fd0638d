"""Upgrades of agents to the server's program. Ours, not upstream's."""

from __future__ import annotations

from quart import Blueprint, Response

from coder.api.agents.upgrades import AgentUpgrade
from coder.coderd.http.server.auth import context, subject
from coder.coderd.http.server.json import reply
from coder.coderd.http.server.query import path_uuid
from coder.coderd.http.server.route import route
from coder.coderd.services.agents import agent_http

blueprint = Blueprint("agent_upgrades", __name__, url_prefix="/api/v2/workspaceagents")


@route(blueprint, "GET", "/<id:agent>/upgrade", scope="workspace:read", answers=AgentUpgrade, refuses=(502,))
async def get_upgrade(agent: str) -> Response:
    """Return the state of the agent's upgrade to the server's program."""
    return reply(await agent_http.get_upgrade(context(), subject(), path_uuid(agent)))


@route(
    blueprint,
    "POST",
    "/<id:agent>/upgrade",
    scope="workspace:update",
    answers=AgentUpgrade,
    status=202,
    refuses=(409, 502),
)
async def post_upgrade(agent: str) -> Response:
    """Request the upgrade now instead of at a random time; the agent still waits until it is idle."""
    return reply(await agent_http.request_upgrade(context(), subject(), path_uuid(agent)), 202)
