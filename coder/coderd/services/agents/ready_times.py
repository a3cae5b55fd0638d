"""How long a start takes until the workspace can be used: from the order of the build to the last agent's end of start.

Measured once a build, by whichever agent's report makes the set complete. An agent that starts again in the same
build (its machine came back) measures nothing, however often its connection was lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from coder.coderd.store.agents import agents as agent_store
from coder.coderd.store.audit import audit as facts_store
from coder.coderd.store.people import organizations as organization_store
from coder.coderd.store.provisioning import jobs as job_store
from coder.coderd.store.site.site_settings import PREBUILDS_USER_ID
from coder.coderd.store.templates import templates as template_store

if TYPE_CHECKING:
    from datetime import datetime

    from coder.coderd.services.telemetry.metrics import Metrics
    from coder.coderd.store.agents.agents import AgentPlace
    from coder.coderd.store.engine.database import Tx

ENDED = {"ready": "success", "start_timeout": "timeout", "start_error": "error"}
"""States that end a start, and how it is said to have ended; of several agents the worst counts."""
_WORST_FIRST = ("error", "timeout", "success")


@dataclass(frozen=True, slots=True)
class ReadyTime:
    """One start of a workspace."""

    is_prebuild: str
    organization: str
    status: str
    template: str
    transition: str
    seconds: float

    def observe(self, metrics: Metrics) -> None:
        metrics["coderd_template_workspace_build_duration_seconds"].observe(
            self.seconds, self.is_prebuild, self.organization, self.status, self.template, self.transition
        )


async def measure(tx: Tx, place: AgentPlace, ended_at: datetime) -> ReadyTime | None:
    """After the agent's state was written. None for a later start, and while another agent has not ended its first.

    Agents of dev containers, which come later, are none of a start's.
    """
    if place.agent.parent_id is not None or not await agent_store.end_first_start(tx, place.agent.id, ended_at):
        return None
    # Held, so that of two agents that end side by side the second sees the first.
    job = await job_store.get_job(tx, place.agent.job_id, lock=True)
    facts = await facts_store.get_build_facts(tx, place.agent.job_id)
    found = [detail.agent for detail in await agent_store.list_agents_of_jobs(tx, [place.agent.job_id])]
    agents = [agent for agent in found if agent.parent_id is None]
    if job is None or facts is None or any(agent.lifecycle_state not in ENDED for agent in agents):
        return None
    ends = [agent.ready_at for agent in agents if agent.ready_at is not None]
    template = await template_store.get_template(tx, facts.template_id)
    organization = await organization_store.get_organization(tx, facts.organization_id)
    statuses = {ENDED[agent.lifecycle_state] for agent in agents}
    return ReadyTime(
        is_prebuild=str(facts.initiator_id == PREBUILDS_USER_ID).lower(),
        organization=organization.name if organization else "",
        status=next(status for status in _WORST_FIRST if status in statuses),
        template=template.name if template else "",
        transition=facts.transition,
        seconds=max((max(ends) - job.created_at).total_seconds(), 0),
    )
