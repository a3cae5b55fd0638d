"""The link of agents: `GET /api/v2/workspaceagents/me/rpc` (docs/protocol/rpc.md#agents).

Both services share one session: `services/agents/agent_api/agent_service.py` and `services/network/tailnet_rpc.py`;
`services/agents/agent_connections.py` tracks the agent's presence.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

import trio
from google.protobuf.message import Message

from coder.appproxy.http.rate_limits import counted
from coder.appproxy.upgrades.raw_links import EndpointTable
from coder.base.exception_groups import single_failure
from coder.base.log import get_logger
from coder.coderd.rpc_endpoints.versions import agent_api_version
from coder.coderd.services.agents.agent_access import CurrentAgent, authenticate_agent, is_token
from coder.coderd.services.agents.agent_api.agent_service import AgentService
from coder.coderd.services.agents.agent_connections import check_token_during, track_connection
from coder.coderd.services.network.agent_admission import HOLD, Arrival
from coder.coderd.services.network.node_keys import workspace_owner
from coder.coderd.services.network.tailnet_rpc import TailnetPeer, TailnetService
from coder.domain.access.route_scopes import AGENT as AGENT_SCOPE
from coder.domain.network.coordination_rules import AgentAccess
from coder.rpc.calls import Handler, Handlers, Unary
from coder.rpc.services import AGENT
from coder.rpc.session import Session, open_session

if TYPE_CHECKING:
    from coder.appproxy.upgrades.raw_links import Upgrade
    from coder.coderd.services.foundation.context import Context

_LAST_OF_ARRIVAL = AGENT + "GetManifest"
"""The call that every agent makes first; its answer is the dearest part of an arrival."""
OUTDATED_AFTER = 1.0
"""Seconds in the queue after which the agent's token is checked again: its workspace may have been stopped."""
_log = get_logger("agents")


def register(table: EndpointTable) -> None:
    table.add("/api/v2/workspaceagents/me/rpc", serve_agent, scope=AGENT_SCOPE, refuses=(400,))


async def serve_agent(ctx: Context, upgrade: Upgrade) -> None:
    """Serve one agent until it disconnects, times out, or loses its authorization."""
    admission, request = ctx.services.api.agent_admission, upgrade.request
    # Before it waits: a stranger's connection gives way to others, and that of a known agent keeps its place.
    async with admission.checking() if is_token(request.credentials.token) else nullcontext():
        authentication = authenticate_agent(ctx, request.credentials)
        agent = await counted(authentication, lambda result: f"agent {result.agent.id}", upgrade.count)
    began = trio.current_time()
    arrival = await admission.enter(agent.agent.id)
    try:
        if trio.current_time() - began > OUTDATED_AFTER:
            agent = await authenticate_agent(ctx, request.credentials)
        await _serve_agent(ctx, upgrade, agent, arrival)
    finally:
        arrival.end()


async def _serve_agent(ctx: Context, upgrade: Upgrade, agent: CurrentAgent, arrival: Arrival) -> None:
    request = upgrade.request
    version = agent_api_version(request, "2.0")
    is_agent = request.first("role") in {"", "agent"}
    del request  # its headers are a kilobyte
    websocket = await upgrade.accept_websocket(binary_only=True)
    peer = TailnetPeer(agent.agent.id, AgentAccess(agent.agent.id), owner=workspace_owner(agent.workspace_id))
    handlers = AgentService(ctx, agent)
    handlers.add({_LAST_OF_ARRIVAL: _ending(arrival, handlers[_LAST_OF_ARRIVAL])})
    handlers.add(TailnetService(ctx, peer).handlers())
    # `track_connection` pings an agent more often than a keepalive would.
    async with open_session(websocket, role="server", keepalive=not is_agent) as session:
        if is_agent:
            _log.info("an agent connected", agent=agent.agent.id, workspace=agent.workspace_name, version=version)
            async with track_connection(ctx, agent, session, version):
                await _serve(session, handlers, arrival)
            _log.info("an agent disconnected", agent=agent.agent.id, reason=session.reason)
        else:
            async with check_token_during(ctx, agent, session):
                await _serve(session, handlers, arrival)


def _ending(arrival: Arrival, handler: Handler) -> Handler:
    """Return a handler that also ends an arrival, once it has answered."""
    if not isinstance(handler, Unary):
        raise TypeError(f"{handler} is not unary")

    async def answer(request: Message) -> Message:
        try:
            return await handler.fn(request)
        finally:
            arrival.end()

    return Unary(answer, handler.request)


async def _serve(session: Session, handlers: Handlers, arrival: Arrival) -> None:
    async def end_arrival() -> None:
        await trio.sleep(HOLD)
        arrival.end()

    with single_failure():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(end_arrival)
            await session.serve(handlers)
            nursery.cancel_scope.cancel()
