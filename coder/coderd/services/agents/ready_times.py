"""Duration of a workspace's start: from the creation of the build until its last agent has started.

It is measured once per build, at the report of the last agent. An agent that starts again in the same build (after a
reboot of its machine) is not measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from coder.coderd.store.agents import agents as agent_store
from coder.coderd.store.audit import audit as facts_store
from coder.coderd.store.people import system_organizations
from coder.coderd.store.provisioning import system_jobs
from coder.coderd.store.site.site_settings import PREBUILDS_USER_ID
from coder.coderd.store.templates import system_templates

if TYPE_CHECKING:
    from datetime import datetime

    from coder.coderd.services.telemetry.metrics import Metrics
    from coder.coderd.store.agents.agents import CurrentAgent
    from coder.coderd.store.engine.database import Tx

ENDED = {"ready": "success", "start_timeout": "timeout", "start_error": "error"}
"""Result by state that ends a start; the worst result of several agents counts."""
_WORST_FIRST = ("error", "timeout", "success")


@dataclass(frozen=True, slots=True)
class ReadyTime:
    """Duration of a workspace's start, with its labels."""

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


async def measure(tx: Tx, current: CurrentAgent, ended_at: datetime) -> ReadyTime | None:
    """Return the duration after an agent's state was stored; None for a later start, or while another agent starts.

    Agents of dev containers come later and do not count.
    """
    if current.agent.parent_id is not None or not await agent_store.end_first_start(tx, current.agent.id, ended_at):
        return None
    # Locked, so that of two concurrent ends the second one sees the first.
    job = await system_jobs.get_job(tx, current.agent.job_id, lock=True)
    facts = await facts_store.get_build_facts(tx, current.agent.job_id)
    all_agents = [detail.agent for detail in await agent_store.list_agents_of_jobs(tx, [current.agent.job_id])]
    agents = [agent for agent in all_agents if agent.parent_id is None]
    if job is None or facts is None or any(agent.lifecycle_state not in ENDED for agent in agents):
        return None
    ends = [agent.ready_at for agent in agents if agent.ready_at is not None]
    template = await system_templates.get_template(tx, facts.template_id)
    organization = await system_organizations.get_organization(tx, facts.organization_id)
    statuses = {ENDED[agent.lifecycle_state] for agent in agents}
    return ReadyTime(
        is_prebuild=str(facts.initiator_id == PREBUILDS_USER_ID).lower(),
        organization=organization.name if organization else "",
        status=next(status for status in _WORST_FIRST if status in statuses),
        template=template.name if template else "",
        transition=facts.transition,
        seconds=max((max(ends) - job.created_at).total_seconds(), 0),
    )
