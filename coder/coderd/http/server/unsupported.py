"""Routes of unsupported groups (AI gateway, agent firewall, chats), which refuse clients.

Lists that are always empty are answered as such; the rest is refused for every caller. Both require a session first,
like any route.
"""

from __future__ import annotations

from quart import Blueprint, Response

from coder.api.base.refusals import Forbidden
from coder.base.json_types import Json
from coder.coderd.http.server.auth import subject
from coder.coderd.http.server.json import reply
from coder.coderd.http.server.route import route
from coder.coderd.services.access.authorization import require
from coder.domain.access.policy import Class
from coder.domain.access.route_scopes import ANY_KEY

blueprint = Blueprint("unsupported", __name__)

_ANY = ["GET", "POST", "PUT", "PATCH", "DELETE"]


@route(blueprint, "GET", "/api/v2/ai/providers", scope="deployment_config:read", answers=list[Json])
async def get_ai_providers() -> Response:
    require(subject(), "read", Class("deployment_config"), hidden=False)
    return reply([])


@route(blueprint, "GET", "/api/experimental/chats", scope="chat:read", answers=list[Json])
async def get_chats() -> Response:
    return reply([])


@route(blueprint, "GET", "/api/experimental/chats/by-workspace", scope="chat:read", answers=dict[str, Json])
async def get_chats_by_workspace() -> Response:
    """Return the latest chat of each requested workspace: none."""
    return reply({})


@route(blueprint, _ANY, "/api/v2/ai-gateway/<path:_rest>", scope=ANY_KEY, refuses=(403,))
async def ai_gateway(_rest: str) -> Response:
    raise Forbidden("The AI gateway is not part of this server.")


@route(blueprint, _ANY, "/api/v2/agent-firewall/<path:_rest>", scope=ANY_KEY, refuses=(403,))
async def agent_firewall(_rest: str) -> Response:
    raise Forbidden("The agent firewall is not part of this server.")
