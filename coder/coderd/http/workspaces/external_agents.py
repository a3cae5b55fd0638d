"""Machines attached by users. Ours, not upstream's; `workspaces.py` returns their credentials."""

from __future__ import annotations

from quart import Blueprint, Response

from coder.api.agents.external_agents import RotatedAgentToken
from coder.coderd.http.server.audit_rules import Audited
from coder.coderd.http.server.auth import context, subject
from coder.coderd.http.server.json import reply
from coder.coderd.http.server.query import path_uuid
from coder.coderd.http.server.route import route
from coder.coderd.services.workspaces import external_agents

blueprint = Blueprint("external_agents", __name__, url_prefix="/api/v2")


@route(
    blueprint,
    "POST",
    "/workspaces/<id:workspace>/external-agent/<agent>/rotate-token",
    scope="workspace:update",
    answers=RotatedAgentToken,
    refuses=(409,),
    audit=Audited("workspace", "write"),
)
async def post_rotate_token(workspace: str, agent: str) -> Response:
    """Create a new token; the one in use stays valid until the new one is used."""
    rotated = await external_agents.rotate_token(context(), subject(), path_uuid(workspace), agent)
    instructions = rotated.instructions
    return reply(
        RotatedAgentToken(
            command=instructions.command,
            agent_token=instructions.agent_token,
            generation=rotated.generation,
            good_generations=list(rotated.good_generations),
        )
    )
