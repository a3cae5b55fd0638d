"""Requests to an agent over the mesh: its HTTP API on overlay port 4.

A disconnected agent is rejected before dialing, with upstream's text; an agent that does not answer is a bad gateway.
Dialing is `appproxy/agents/dialing.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from uuid import UUID

import h11
import trio

from coder.api.agents.agent_ports import WorkspaceAgentListeningPortsResponse
from coder.api.base import codec
from coder.api.base.refusals import BadGateway, Invalid
from coder.appproxy.agents.dialing import dial
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
    """Return the agent's answer to `path` unchanged."""
    action = "read" if method == "GET" else "update"
    current = await load_agent(ctx, subject, agent_id, action)
    require_connected(ctx, current)
    return await fetch(ctx, agent_id, method, path)


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
