"""Resources of jobs with their agents: loaded in few statements, and as JSON."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from msgspec import UNSET

from coder.api.workspaces.builds import WorkspaceResource, WorkspaceResourceMetadata
from coder.coderd.services.agents.agent_view import AgentParts, AgentViewContext, present_agent
from coder.coderd.store.agents import agent_apps as app_store
from coder.coderd.store.agents import agent_scripts as script_store
from coder.coderd.store.agents import agents as agent_store
from coder.coderd.store.provisioning import resources as resource_store
from coder.coderd.store.provisioning.resources import ResourceRow

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx


@dataclass(slots=True)
class LoadedResources:
    """Resources and agents of some jobs."""

    resources: dict[UUID, list[ResourceRow]]
    agents: dict[UUID, list[AgentParts]]
    "Agents by resource."
    agents_of_job: dict[UUID, list[AgentParts]]


async def load_resources(tx: Tx, job_ids: Sequence[UUID]) -> LoadedResources:
    """Load resources, agents, apps and scripts of these jobs in four statements (two without agents)."""
    resources: dict[UUID, list[ResourceRow]] = defaultdict(list)
    if job_ids:
        for row in await resource_store.list_resources(tx, job_ids):
            resources[row.job_id].append(row)
    agents: dict[UUID, list[AgentParts]] = defaultdict(list)
    of_job: dict[UUID, list[AgentParts]] = defaultdict(list)
    for parts in await load_agents(tx, job_ids) if resources else ():
        agents[parts.agent.resource_id].append(parts)
        of_job[parts.agent.job_id].append(parts)
    return LoadedResources(resources, agents, of_job)


async def load_agents(tx: Tx, job_ids: Sequence[UUID]) -> list[AgentParts]:
    """Load agents of these jobs with their apps and scripts, in display order."""
    details = await agent_store.list_agents_of_jobs(tx, job_ids)
    parts = {detail.agent.id: AgentParts(detail.agent, detail.log_sources) for detail in details}
    if parts:
        ids = list(parts)
        for app in await app_store.list_apps(tx, ids):
            parts[app.app.agent_id].apps.append(app)
        for script in await script_store.list_scripts(tx, ids):
            parts[script.agent_id].scripts.append(script)
    return sorted(parts.values(), key=lambda p: (p.agent.display_order, p.agent.name))


def present_resources(loaded: LoadedResources, job_id: UUID, context: AgentViewContext) -> list[WorkspaceResource]:
    """Return the resources of a job as JSON."""
    rows = sorted(loaded.resources.get(job_id, ()), key=lambda r: (r.transition, r.name, r.type, r.position))
    return [_present(row, loaded.agents.get(row.id, ()), context) for row in rows]


def _present(row: ResourceRow, agents: Sequence[AgentParts], context: AgentViewContext) -> WorkspaceResource:
    return WorkspaceResource(
        id=row.id,
        created_at=row.created_at,
        job_id=row.job_id,
        workspace_transition=row.transition,
        type=row.type,
        name=row.name,
        hide=row.hide,
        icon=row.icon,
        daily_cost=row.daily_cost,
        agents=[present_agent(parts, context) for parts in agents] or UNSET,
        metadata=[WorkspaceResourceMetadata(**item) for item in row.metadata] or UNSET,
    )
