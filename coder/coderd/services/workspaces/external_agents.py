"""Machines that somebody attaches by hand: the command that does it, and the token it needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from coder.coderd.services.access.authorization import require
from coder.coderd.services.access.workspace_access import load_workspace, workspace_resource
from coder.coderd.services.foundation.errors import NotFound
from coder.coderd.store.agents import agents as agent_store
from coder.domain.agents.init_scripts import attach_command

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.domain.access.policy import Subject


@dataclass(frozen=True, slots=True)
class AttachInstructions:
    """Whoever has these can pose as the machine."""

    command: str
    agent_token: str


async def get_credentials(ctx: Context, subject: Subject, workspace_id: UUID, agent_name: str) -> AttachInstructions:
    """For those who may change the workspace.

    Raises NotFound (no external agent, no agent of that name, or one that proves itself by its cloud), Forbidden.
    """
    view = await load_workspace(ctx, subject, workspace_id)
    require(subject, "update", workspace_resource(view.workspace))
    if not view.latest.build.has_external_agent:
        raise NotFound("Workspace does not have an external agent.")
    details = await ctx.db.read(agent_store.list_agents_of_jobs, [view.latest.job.id])
    agent = next((detail.agent for detail in details if detail.agent.name == agent_name), None)
    if agent is None:
        raise NotFound(f"External agent '{agent_name}' not found in workspace.")
    if agent.auth_instance_id is not None:
        raise NotFound(f"External agent '{agent_name}' is authenticated with an instance ID.")
    token = str(agent.auth_token)
    command = attach_command(ctx.access_url, agent.operating_system, agent.architecture, token)
    return AttachInstructions(command, token)
