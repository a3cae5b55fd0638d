"""Creation of sub-agents, with the applications they ask for (docs/protocol/agents.md#sub-agents)."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from coder.api.agents.agents import DisplayApp
from coder.base.ids import new_uuid
from coder.coderd.services.agents.sub_agent_apps import Request, validate_apps
from coder.coderd.services.agents.sub_agent_records import (
    end_port_shares,
    lock_parent,
    present_sub_agent,
    record_change,
)
from coder.coderd.store.agents import agents as agent_store
from coder.coderd.store.agents.agents import AgentRow, CurrentAgent
from coder.coderd.store.audit import audit as audit_store
from coder.coderd.store.templates import system_templates
from coder.domain.agents import sub_agents as rules
from coder.rpc.errors import RpcError
from coder.rpc.proto import agent_pb2

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx


async def insert_sub_agent(
    tx: Tx, current: CurrentAgent, request: Request, display_apps: list[DisplayApp], now: datetime
) -> agent_pb2.CreateSubAgentResponse:
    """Insert a sub-agent with its valid applications. Raises RpcError."""
    parent = current.agent
    await lock_parent(tx, current)
    others = [detail.agent for detail in await agent_store.list_agents_of_jobs(tx, [parent.job_id])]
    if request.name.lower() in {other.name.lower() for other in others}:
        raise RpcError(0, f'workspace agent name "{request.name}" already exists in this workspace')
    if sum(other.parent_id == parent.id for other in others) >= rules.MAX_SUB_AGENTS:
        raise RpcError(0, f"an agent may have {rules.MAX_SUB_AGENTS} sub-agents")
    counts = await agent_store.count_sub_agents_made(tx, parent.job_id)
    if problem := rules.explain_total(*counts, len(request.apps)):
        raise RpcError(0, problem)
    template = await system_templates.get_template(tx, current.template_id)
    row = _row(parent, request, display_apps, now)
    apps, faults = validate_apps(request, row, template.max_port_share_level if template is not None else "owner", now)
    before = await audit_store.take_snapshot(tx, "workspace", current.workspace_id)
    await agent_store.insert_agents(tx, [row], apps=apps)
    # Shares of an agent with this name in an earlier build were granted for that agent's ports.
    await end_port_shares(tx, current, row)
    await record_change(tx, current, row, "its parent agent created it for a dev container", before, now)
    return agent_pb2.CreateSubAgentResponse(agent=present_sub_agent(row), app_creation_errors=faults)


def _row(parent: AgentRow, request: Request, display_apps: list[DisplayApp], now: datetime) -> AgentRow:
    """Return the row of a sub-agent; fields that the request lacks are the parent's, or empty."""
    return replace(
        parent,
        id=new_uuid(),
        parent_id=parent.id,
        created_at=now,
        updated_at=now,
        name=request.name,
        auth_token=new_uuid(),
        auth_instance_id=None,
        architecture=request.architecture,
        operating_system=request.operating_system,
        environment_variables=None,
        directory=request.directory,
        expanded_directory="",
        version="",
        api_version="",
        subsystems=[],
        first_connected_at=None,
        last_connected_at=None,
        disconnected_at=None,
        lifecycle_state="created",
        started_at=None,
        ready_at=None,
        motd_file="",
        display_apps=display_apps,
        display_order=0,
        logs_length=0,
        logs_overflowed=False,
        resources_monitoring={},
        devcontainers=[],
    )
