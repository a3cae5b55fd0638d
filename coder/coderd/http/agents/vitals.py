"""Health of agents' machines: readings from agents, indicators and disconnects for users. Ours, not upstream's."""

from __future__ import annotations

from quart import Blueprint, Response

from coder.api.agents.agent_health import AgentDisconnect, AgentLights, AgentVitals
from coder.coderd.http.agents.agents import by_agent, current_agent
from coder.coderd.http.server.auth import context, subject
from coder.coderd.http.server.json import no_content, read_body, reply
from coder.coderd.http.server.query import path_uuid
from coder.coderd.http.server.route import route
from coder.coderd.services.agents import disconnects, vitals
from coder.domain.access.route_scopes import AGENT

blueprint = Blueprint("agent_health", __name__, url_prefix="/api/v2/workspaceagents")


@route(blueprint, "POST", "/me/vitals", scope=AGENT, body=AgentVitals, status=204, limit=256 << 10)
@by_agent
async def post_vitals() -> Response:
    """Store one reading and the events since the last."""
    await vitals.report(context(), current_agent(), await read_body(AgentVitals))
    return no_content()


@route(blueprint, "GET", "/<id:agent>/lights", scope="workspace:read", answers=AgentLights)
async def get_lights(agent: str) -> Response:
    """Return host, agent and path, each with its values and their ages."""
    return reply(await vitals.get_lights(context(), subject(), path_uuid(agent)))


@route(blueprint, "GET", "/<id:agent>/disconnects", scope="workspace:read", answers=list[AgentDisconnect])
async def get_disconnects(agent: str) -> Response:
    """Return the agent's disconnects and their causes, newest first."""
    return reply(await disconnects.list_disconnects(context(), subject(), path_uuid(agent)))
