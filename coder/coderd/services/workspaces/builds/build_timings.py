"""Durations of a build: of every Terraform step, of the agents' scripts, and until each agent connected."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast
from uuid import UUID

from coder.api.agents.agent_timings import AgentConnectionTiming, AgentScriptTiming
from coder.api.base.enums import TimingStage
from coder.api.provisioning.job_timings import ProvisionerTiming
from coder.api.workspaces.build_timings import WorkspaceBuildTimings
from coder.coderd.services.access.workspace_access import (
    load_workspace,
)
from coder.coderd.services.workspaces.builds.builds import load_build
from coder.coderd.store.agents import agent_scripts as script_store
from coder.coderd.store.agents import agents as agent_store
from coder.coderd.store.provisioning import jobs as job_store
from coder.domain.access.policy import Subject

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx
    from coder.coderd.store.provisioning.jobs import JobRow


async def get_timings(ctx: Context, subject: Subject, build_id: UUID) -> WorkspaceBuildTimings:
    """Return the duration of every Terraform step, agent script and agent connection."""
    view = await load_build(ctx, subject, build_id)
    return await ctx.db.read(_timings, view.job)


async def get_workspace_timings(ctx: Context, subject: Subject, workspace_id: UUID) -> WorkspaceBuildTimings:
    """Return the timings of the workspace's latest build."""
    view = await load_workspace(ctx, subject, workspace_id)
    return await ctx.db.read(_timings, view.latest.job)


async def _timings(tx: Tx, job: JobRow) -> WorkspaceBuildTimings:
    provisioner = await job_store.list_timings(tx, job.id)
    scripts = await script_store.list_script_timings(tx, job.id)
    agents = await agent_store.list_agents_of_jobs(tx, [job.id])
    return WorkspaceBuildTimings(
        provisioner_timings=[
            ProvisionerTiming(
                job_id=row.job_id,
                started_at=row.started_at,
                ended_at=row.ended_at,
                stage=cast("TimingStage", row.stage),
                source=row.source,
                action=row.action,
                resource=row.resource,
            )
            for row in provisioner
        ],
        agent_script_timings=[
            AgentScriptTiming(
                started_at=run.started_at,
                ended_at=run.ended_at,
                exit_code=run.exit_code,
                stage=run.stage,
                status=run.status,
                display_name=run.display_name,
                workspace_agent_id=run.agent_id,
                workspace_agent_name=run.agent_name,
            )
            for run in scripts
        ],
        agent_connection_timings=[
            AgentConnectionTiming(
                started_at=agent.created_at,
                ended_at=agent.first_connected_at,
                stage="connect",
                workspace_agent_id=agent.id,
                workspace_agent_name=agent.name,
            )
            for agent in (detail.agent for detail in agents)
            if agent.first_connected_at is not None
        ],
    )
