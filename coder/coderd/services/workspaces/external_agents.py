"""Machines that users attach by hand: the attach command, its token, and rotating the token."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import Conflict, NotFound
from coder.base.ids import new_uuid
from coder.coderd.services.access.application_limits import refuse_applications
from coder.coderd.services.access.workspace_access import load_workspace, lock_workspace
from coder.coderd.store.agents import agent_tokens as token_store
from coder.coderd.store.agents import agents as agent_store
from coder.coderd.store.agents.agent_tokens import AgentTokenRow
from coder.domain.agents.init_scripts import attach_command
from coder.domain.agents.token_generations import Generation, good, newest

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.agents.agents import AgentRow
    from coder.coderd.store.engine.database import Tx
    from coder.coderd.store.workspaces.workspaces import WorkspaceView
    from coder.domain.access.policy import Subject


@dataclass(frozen=True, slots=True)
class AttachInstructions:
    """Command and token that attach a machine. Secret: they allow anyone to pose as the machine."""

    command: str
    agent_token: str


@dataclass(frozen=True, slots=True)
class Rotation:
    """A new token that has not been used yet."""

    instructions: AttachInstructions
    generation: int
    good_generations: tuple[int, ...]


async def get_credentials(ctx: Context, subject: Subject, workspace_id: UUID, agent_name: str) -> AttachInstructions:
    """Return the attach command with the newest token. Requires update permission on the workspace.

    Raises NotFound (no external agent, no agent of that name, or one that authenticates by its cloud), and Forbidden,
    also for applications.
    """
    view = await load_workspace(ctx, subject, workspace_id, "update")
    await refuse_applications(ctx, subject, "agent_token")
    agent = await ctx.db.read(_external_agent, view, agent_name)
    rows = await ctx.db.read(token_store.list_agent_tokens, workspace_id, agent)
    number = newest(_generations(rows))
    return _instructions(ctx, agent, next((row.token for row in rows if row.generation == number), agent.auth_token))


async def rotate_token(ctx: Context, subject: Subject, workspace_id: UUID, agent_name: str) -> Rotation:
    """Create a new token; the token in use stays valid until the new one is used.

    Raises what `get_credentials` does, and Conflict for a deleted workspace.
    """
    await load_workspace(ctx, subject, workspace_id, "update")
    await refuse_applications(ctx, subject, "agent_token")
    agent, rows = await ctx.db.run(_rotate, subject, workspace_id, agent_name, ctx.clock.now())
    generations = _generations(rows)
    return Rotation(_instructions(ctx, agent, rows[-1].token), newest(generations), good(generations))


async def _rotate(
    tx: Tx, subject: Subject, workspace_id: UUID, agent_name: str, now: datetime
) -> tuple[AgentRow, list[AgentTokenRow]]:
    view = await lock_workspace(tx, subject, workspace_id)  # serializes rotations
    agent = await _external_agent(tx, view, agent_name)
    if view.workspace.deleted:
        raise Conflict("The workspace is deleted, so its agent has no token.")
    rows = await token_store.list_agent_tokens(tx, workspace_id, agent)
    number = newest(_generations(rows)) + 1
    row = AgentTokenRow(new_uuid(), workspace_id, agent.name, agent.auth_token, number, now, None)
    await token_store.add_agent_token(tx, row)
    return agent, await token_store.list_agent_tokens(tx, workspace_id, agent)


def _generations(rows: list[AgentTokenRow]) -> list[Generation]:
    return [Generation(row.generation, used=row.used_at is not None) for row in rows]


def _instructions(ctx: Context, agent: AgentRow, token: UUID) -> AttachInstructions:
    command = attach_command(ctx.access_url, agent.operating_system, agent.architecture, str(token))
    return AttachInstructions(command, str(token))


async def _external_agent(tx: Tx, view: WorkspaceView, agent_name: str) -> AgentRow:
    if not view.latest.build.has_external_agent:
        raise NotFound("Workspace does not have an external agent.")
    details = await agent_store.list_agents_of_jobs(tx, [view.latest.job.id])
    # A dev container's sub-agent is attached by its parent agent, and ends with its parent's token.
    own = (detail.agent for detail in details if detail.agent.parent_id is None)
    agent = next((agent for agent in own if agent.name == agent_name), None)
    if agent is None:
        raise NotFound(f"External agent '{agent_name}' not found in workspace.")
    if agent.auth_instance_id is not None:
        raise NotFound(f"External agent '{agent_name}' is authenticated with an instance ID.")
    return agent
