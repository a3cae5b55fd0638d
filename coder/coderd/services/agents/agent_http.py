"""Requests to an agent over the mesh: its HTTP API on overlay port 4.

Upgrades of agents to this server's program are requests, too: the agent downloads the program, verifies it, and waits
until it is idle (`coder/agent/upgrade/upgrader.py`). A disconnected agent is rejected before dialing, with upstream's
text; an agent that does not answer is a bad gateway. Dialing is `appproxy/agents/dialing.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from uuid import UUID

import h11
import trio

from coder.api.agents.agent_ports import WorkspaceAgentListeningPortsResponse
from coder.api.agents.upgrades import AgentUpgrade
from coder.api.base import codec
from coder.api.base.refusals import BadGateway, Conflict, Invalid
from coder.appproxy.agents.dialing import dial
from coder.base.version import BUILD_VERSION
from coder.coderd.services.agents.agent_access import load_agent
from coder.coderd.services.agents.agent_view import status_of
from coder.coderd.services.network.stream_http import AgentAnswer, exchange
from coder.coderd.store.agents import agent_apps as app_store
from coder.coderd.store.agents.agents import CurrentAgent
from coder.domain.access.policy import Subject
from coder.domain.agents.agents import HIDDEN_PORTS

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

HTTP_PORT = 4
_ANSWER_TIMEOUT = 20.0
_PASSED = frozenset({200, 201, 202, 204, 400, 403, 404, 405, 409, 412, 424, 429, 500, 501, 502, 503, 504})
"Statuses of an agent that are passed on."
_UPGRADE = "/api/v0/upgrade"
_MANUALLY = "Run its attach command again on the machine, which installs the server's program."


def require_connected(ctx: Context, current: CurrentAgent) -> None:
    """Require a connected agent. Raises Invalid with the agent's state."""
    status = status_of(current.agent, ctx.clock.now())
    if status != "connected":
        raise Invalid(f'Agent state is "{status}", it must be in the "connected" state.')


async def listening_ports(ctx: Context, subject: Subject, agent_id: UUID) -> WorkspaceAgentListeningPortsResponse:
    """Return open TCP ports of the workspace, except the agent's own, well-known non-HTTP ports, and ports of apps."""
    current = await load_agent(ctx, subject, agent_id)
    require_connected(ctx, current)
    answer = await fetch(ctx, agent_id, "GET", "/api/v0/listening-ports")
    if answer.status != 200:
        raise BadGateway("Internal error fetching listening ports.", f"the agent answered {answer.status}")
    try:
        listening = codec.decode(answer.body, WorkspaceAgentListeningPortsResponse)
    except ValueError as error:
        raise BadGateway("The agent's answer could not be read.", "it is no list of ports") from error
    apps = await ctx.db.read(app_store.list_apps, [agent_id])
    taken = HIDDEN_PORTS | {port for detail in apps if (port := _port_of(detail.app.url)) is not None}
    ports = [port for port in listening.ports if port.port not in taken]
    return WorkspaceAgentListeningPortsResponse(ports=ports)


def _port_of(url: str) -> int | None:
    try:
        return urlsplit(url).port
    except ValueError:
        return None


async def pass_through(ctx: Context, subject: Subject, agent_id: UUID, method: str, path: str) -> AgentAnswer:
    """Return the agent's answer to `path`. Raises BadGateway also for a status that says something about this server:
    a browser would take 401 for the end of its session, and follow a redirect."""
    action = "read" if method == "GET" else "update"
    current = await load_agent(ctx, subject, agent_id, action)
    require_connected(ctx, current)
    answer = await fetch(ctx, agent_id, method, path)
    if answer.status not in _PASSED:
        raise BadGateway("The agent's answer could not be read.", f"it answered {answer.status}")
    return AgentAnswer(204, b"", "application/json") if answer.status == 204 else answer


async def fetch(
    ctx: Context, agent_id: UUID, method: str, path: str, *, port: int = HTTP_PORT, content: bytes = b""
) -> AgentAnswer:
    """Send a request to the agent's HTTP API, or to another port of its machine. Raises BadGateway."""
    stream = await dial(ctx, agent_id, port)
    try:
        with trio.fail_after(_ANSWER_TIMEOUT):
            host = "agent" if port == HTTP_PORT else f"localhost:{port}"
            return await exchange(stream, method, path, host=host, content=content)
    except (h11.RemoteProtocolError, trio.BrokenResourceError, trio.TooSlowError) as error:
        raise BadGateway("The agent's answer could not be read.") from error
    finally:
        with trio.CancelScope(shield=True, deadline=trio.current_time() + 1):
            await trio.aclose_forcefully(stream)


async def get_upgrade(ctx: Context, subject: Subject, agent_id: UUID) -> AgentUpgrade:
    """Return what the agent's upgrade is doing. Raises NotFound, Invalid (not connected), BadGateway."""
    current = await load_agent(ctx, subject, agent_id)
    require_connected(ctx, current)
    answer = await fetch(ctx, agent_id, "GET", _UPGRADE)
    if answer.status == 404:
        return AgentUpgrade(state="unsupported", detail="", version=current.agent.version, server_version=BUILD_VERSION)
    return read_upgrade_untrusted(answer)


async def request_upgrade(ctx: Context, subject: Subject, agent_id: UUID) -> AgentUpgrade:
    """Ask the agent to upgrade now; return its state after that.

    Raises NotFound, Forbidden, Invalid (not connected), BadGateway; Conflict for an agent that does not upgrade itself.
    """
    require_connected(ctx, await load_agent(ctx, subject, agent_id, "update"))
    answer = await fetch(ctx, agent_id, "POST", _UPGRADE)
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
