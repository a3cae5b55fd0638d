"""Upgrades of agents to this server's program: their state, and requests of users to upgrade now.

The agent decides by itself (`coder/agent/upgrade/upgrader.py`): it downloads the program from this server, verifies it,
and waits until it is idle. A request only skips the random delay of its download, and that after a failure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.agents.upgrades import AgentUpgrade
from coder.api.base import codec
from coder.api.base.refusals import BadGateway, Conflict
from coder.base.version import BUILD_VERSION
from coder.coderd.services.agents.agent_access import load_agent
from coder.coderd.services.agents.agent_http import fetch, require_connected
from coder.domain.access.policy import Subject

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.services.network.stream_http import AgentAnswer

_PATH = "/api/v0/upgrade"
_MANUALLY = "Run its attach command again on the machine, which installs the server's program."


async def get_upgrade(ctx: Context, subject: Subject, agent_id: UUID) -> AgentUpgrade:
    """Return what the agent's upgrade is doing. Raises NotFound, Invalid (not connected), BadGateway."""
    current = await load_agent(ctx, subject, agent_id)
    require_connected(ctx, current)
    answer = await fetch(ctx, agent_id, "GET", _PATH)
    if answer.status == 404:
        return AgentUpgrade(state="unsupported", detail="", version=current.agent.version, server_version=BUILD_VERSION)
    return read_upgrade_untrusted(answer)


async def request_upgrade(ctx: Context, subject: Subject, agent_id: UUID) -> AgentUpgrade:
    """Ask the agent to upgrade now; return its state after that.

    Raises NotFound, Forbidden, Invalid (not connected), BadGateway; Conflict for an agent that does not upgrade itself.
    """
    require_connected(ctx, await load_agent(ctx, subject, agent_id, "update"))
    answer = await fetch(ctx, agent_id, "POST", _PATH)
    if answer.status == 404:
        raise Conflict("This agent is too old to be upgraded from here.", _MANUALLY)
    if answer.status == 409:
        raise Conflict("This agent does not upgrade itself: it was started without --self-upgrade.", _MANUALLY)
    return read_upgrade_untrusted(answer)


def read_upgrade_untrusted(answer: AgentAnswer) -> AgentUpgrade:
    """Read an agent's answer; the server's version is our own. Raises BadGateway."""
    if answer.status not in {200, 202}:
        raise BadGateway("The agent could not describe its upgrade.", f"it answered {answer.status}")
    try:
        upgrade = codec.decode(answer.body, AgentUpgrade)
    except ValueError as error:
        raise BadGateway("The agent's answer could not be read.", "it describes no upgrade") from error
    upgrade.server_version = BUILD_VERSION
    return upgrade
