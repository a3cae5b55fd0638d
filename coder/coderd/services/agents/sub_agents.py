"""Sub-agents, which an agent creates, lists and deletes for its dev containers (docs/protocol/agents.md#sub-agents).

Sub-agents belong to their parent's resource and build, and end with it; a rotation of its token rotates theirs. Errors
are RpcErrors with upstream's texts where these are known. An invalid application is reported in the answer.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.agents.agents import DisplayApp
from coder.coderd.services.agents.agent_api.message_fields import uuid_untrusted
from coder.coderd.services.agents.new_sub_agents import insert_sub_agent
from coder.coderd.services.agents.sub_agent_apps import Request, explain_text, read_display_app
from coder.coderd.services.agents.sub_agent_records import (
    end_port_shares,
    lock_parent,
    present_sub_agent,
    record_change,
    require_right,
)
from coder.coderd.store.agents import agents as agent_store
from coder.coderd.store.agents.agents import AgentRow, CurrentAgent
from coder.coderd.store.audit import audit as audit_store
from coder.coderd.store.workspaces.change_feed import notify_change
from coder.domain.agents import sub_agents as rules
from coder.rpc.errors import RpcError
from coder.rpc.proto import agent_pb2

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

_NOT_ITS_OWN = "subagent does not belong to this parent agent"
_TEXTS = ("directory", "architecture", "operating_system")


async def create_sub_agent(ctx: Context, current: CurrentAgent, request: Request) -> agent_pb2.CreateSubAgentResponse:
    """Create a sub-agent, or fill one that the template declares. Raises RpcError."""
    if current.agent.parent_id is not None:
        raise RpcError(0, "an agent of a dev container cannot have sub-agents")
    for name in _TEXTS:
        if problem := explain_text(getattr(request, name)):
            raise RpcError(0, f"{name} {problem}")
    if len(request.display_apps) > rules.MAX_APPS or len(request.apps) > rules.MAX_APPS:
        raise RpcError(0, f"an agent may have {rules.MAX_APPS} applications")
    display_apps = [read_display_app(value) for value in request.display_apps]
    if request.HasField("id"):
        row = await ctx.db.run(_change, current, uuid_untrusted(request.id), request.directory, display_apps)
        return agent_pb2.CreateSubAgentResponse(agent=present_sub_agent(row))
    if problem := rules.explain_name(request.name):
        raise RpcError(0, problem)
    return await ctx.db.run(insert_sub_agent, current, request, display_apps, ctx.clock.now())


async def list_sub_agents(ctx: Context, current: CurrentAgent) -> agent_pb2.ListSubAgentsResponse:
    rows = await ctx.db.read(_list, current)
    return agent_pb2.ListSubAgentsResponse(agents=[present_sub_agent(row) for row in rows])


async def delete_sub_agent(ctx: Context, current: CurrentAgent, sub_agent_id: UUID) -> None:
    """Delete a sub-agent, which revokes its token and closes its link. Raises RpcError for any other agent."""
    await ctx.db.run(_delete, current, sub_agent_id, ctx.clock.now())


async def _list(tx: Tx, current: CurrentAgent) -> list[AgentRow]:
    rows = await agent_store.list_sub_agents(tx, current.agent.id)
    await require_right(tx, current)  # after the read: a concurrent rotation must not reveal new tokens to the old one
    return rows


async def _change(
    tx: Tx, current: CurrentAgent, ident: UUID, directory: str, display_apps: list[DisplayApp]
) -> AgentRow:
    """Fill a sub-agent that the template declares: the container sets only its directory and display apps."""
    await lock_parent(tx, current)
    row = await _child(tx, current, ident)
    changed = replace(row, display_apps=display_apps, directory=directory or row.directory)
    await agent_store.update_agent(tx, ident, display_apps=changed.display_apps, directory=changed.directory)
    await notify_change(tx, "startup", owner_id=current.owner_id, workspace_id=current.workspace_id, agent_id=ident)
    return changed


async def _delete(tx: Tx, current: CurrentAgent, ident: UUID, now: datetime) -> None:
    await lock_parent(tx, current)
    row = await _child(tx, current, ident)
    before = await audit_store.take_snapshot(tx, "workspace", current.workspace_id)
    await agent_store.delete_agent(tx, ident)
    await end_port_shares(tx, current, row)
    await record_change(tx, current, row, "its parent agent deleted it", before, now)


async def _child(tx: Tx, current: CurrentAgent, ident: UUID) -> AgentRow:
    rows = await agent_store.list_sub_agents(tx, current.agent.id)
    child = next((row for row in rows if row.id == ident), None)
    if child is None:
        raise RpcError(0, _NOT_ITS_OWN)
    return child
