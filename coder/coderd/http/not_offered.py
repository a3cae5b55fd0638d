"""Routes of groups this product leaves out (AI gateway, agent firewall, chats): clients that ask are told so.

Lists that have nothing in them by their nature are answered empty; the rest is refused for everybody. Both want a
session first, like any route.
"""

from __future__ import annotations

from quart import Blueprint, Response

from coder.coderd.http.auth import authenticated, subject
from coder.coderd.http.json import reply
from coder.coderd.services.authorization import require
from coder.coderd.services.errors import Forbidden
from coder.domain.policy import Resource

blueprint = Blueprint("not_offered", __name__)

_ANY = ["GET", "POST", "PUT", "PATCH", "DELETE"]


@blueprint.get("/api/v2/ai/providers")
@authenticated
async def get_ai_providers() -> Response:
    require(subject(), "read", Resource("deployment_config"), hidden=False)
    return reply([])


@blueprint.get("/api/experimental/chats")
@authenticated
async def get_chats() -> Response:
    return reply([])


@blueprint.route("/api/v2/ai-gateway/<path:_rest>", methods=_ANY)
@authenticated
async def ai_gateway(_rest: str) -> Response:
    raise Forbidden("The AI gateway is not part of this server.")


@blueprint.route("/api/v2/agent-firewall/<path:_rest>", methods=_ANY)
@authenticated
async def agent_firewall(_rest: str) -> Response:
    raise Forbidden("The agent firewall is not part of this server.")
