"""Reasons why a job is pending: what every daemon lacks, the queue position, and the expected start.

Administrators of a queue see every daemon of their organizations. The job's initiator and the owner of its workspace
get the same reasons without names of daemons. The reasons are `domain/provisioning/queue_reasons.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from msgspec import UNSET

from coder.api.base.refusals import Invalid, NotFound
from coder.api.provisioning.job_reasons import ExpectedStart, ProvisionerJobWhy, WaitingDaemon, WaitingRemedy
from coder.coderd.services.access.authorization import may
from coder.coderd.services.provisioning.waiting_jobs import WaitExplanation, load_waiting
from coder.coderd.store.provisioning import jobs as job_store
from coder.coderd.store.provisioning import queue_forecast_queries as store
from coder.coderd.store.provisioning import system_jobs
from coder.domain.access.policy import Class, Subject
from coder.domain.provisioning.queue_forecast import Forecast, NoForecast
from coder.domain.provisioning.queue_reasons import (
    TEMPORARY_REASONS,
    Reason,
    Remedy,
    explain_text,
)

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx


_UNNAMED = "a provisioner"


async def explain_job(ctx: Context, subject: Subject, organization_id: UUID, job_id: UUID) -> ProvisionerJobWhy:
    """Return why a job is pending. Raises NotFound for users other than the job's and administrators."""
    await _require(ctx, subject, organization_id, job_id)
    explanation = await ctx.db.read(load_waiting, job_id, ctx.clock.now(), ctx.config.provisioner_strict_tags)
    visible = {
        reason.daemon.offer.organization_id
        for reason in explanation.reasons
        if may(subject, "update", Class("provisioner_jobs", organization_id=reason.daemon.offer.organization_id))
    }
    return _present(explanation, visible)


async def park_job(ctx: Context, subject: Subject, organization_id: UUID, job_id: UUID, *, parked: bool) -> None:
    """Exempt a pending job from the time limit, or end the exemption. Raises NotFound, Invalid (not pending)."""
    await _require(ctx, subject, organization_id, job_id)
    await ctx.db.run(_park, job_id, parked)


async def _park(tx: Tx, job_id: UUID, parked: bool) -> None:
    job = await system_jobs.get_job(tx, job_id, lock=True)
    if job is None or job.status != "pending":
        raise Invalid("The job does not wait for a provisioner.", "Only pending jobs can be parked.")
    await store.set_parked(tx, job_id, parked=parked)


async def _require(ctx: Context, subject: Subject, organization_id: UUID, job_id: UUID) -> None:
    owners = await ctx.db.read(_load_owners, job_id)
    if owners is None or owners[0] != organization_id:
        raise NotFound
    is_administrator = may(subject, "update", Class("provisioner_jobs", organization_id=organization_id))
    if not is_administrator and subject.user_id not in owners[1]:
        raise NotFound


async def _load_owners(tx: Tx, job_id: UUID) -> tuple[UUID, set[UUID]] | None:
    """Return the organization of a job, and its initiator with the owner of its workspace."""
    job = await system_jobs.get_job(tx, job_id)
    if job is None:
        return None
    workspace = await job_store.get_job_workspace(tx, job_id)
    return job.organization_id, {job.initiator_id} | ({workspace[0]} if workspace else set())


def _present(explanation: WaitExplanation, visible: set[UUID]) -> ProvisionerJobWhy:
    job, start = explanation.job, explanation.start
    # Daemons of other organizations are hidden, even their number.
    listed = {*visible, job.organization_id}
    reasons = [reason for reason in explanation.reasons if reason.daemon.offer.organization_id in listed]
    named = job.organization_id in visible
    return ProvisionerJobWhy(
        job_id=job.id,
        status=job.status,
        verdict=explanation.verdict,
        summary=summarize(explanation),
        provisioner=job.provisioner,
        tags=job.tags,
        parked=bool(job.input.get(store.PARKED)),
        queue_position=explanation.position.position,
        queue_size=explanation.position.size,
        daemons=[_present_reason(reason, named=named) for reason in reasons],
        expected_start=ExpectedStart(start.earliest, start.latest, start.samples)
        if isinstance(start, Forecast)
        else None,
        no_expected_start=start.reason if isinstance(start, NoForecast) else "",
        remedy=_present_remedy(explanation.remedy, named=named) if explanation.remedy else None,
        worker_id=job.worker_id or UNSET,
        worker_name=explanation.worker_name or UNSET,
    )


def _present_reason(reason: Reason, *, named: bool) -> WaitingDaemon:
    daemon = reason.daemon
    return WaitingDaemon(
        daemon_id=daemon.id if named else UUID(int=0),
        daemon_name=daemon.name if named else _UNNAMED,
        organization_id=daemon.offer.organization_id,
        code=reason.code,
        message=explain_text(reason),
        may_take=reason.may_take,
        last_seen_at=daemon.last_seen_at,
        tag=reason.key or UNSET,
        wanted=reason.wanted or UNSET,
        found=reason.found or UNSET,
        busy_with=daemon.job_id if reason.code == "busy" and daemon.job_id else UNSET,
        busy_since=daemon.job_started_at if reason.code == "busy" and daemon.job_started_at else UNSET,
    )


def _present_remedy(remedy: Remedy, *, named: bool) -> WaitingRemedy:
    return WaitingRemedy(
        tags=dict(remedy.tags),
        command=remedy.command,
        nearest=remedy.nearest if named else "",
        notes=list(remedy.notes),
    )


def summarize(explanation: WaitExplanation) -> str:
    """Return the explanation in one sentence."""
    matching = sum(1 for reason in explanation.reasons if reason.code in TEMPORARY_REASONS)
    match explanation.verdict:
        case "not_waiting":
            by = f" by {explanation.worker_name}" if explanation.worker_name else ""
            return f"The job does not wait: it is {explanation.job.status}{by}."
        case "starts_now":
            return "An idle provisioner takes the job immediately."
        case "queued":
            return (
                f"The job is number {explanation.position.position} of {explanation.position.size} for {matching} "
                f"provisioner{'s' if matching != 1 else ''} that may run it; all are busy or have others to run first."
            )
        case "all_offline":
            if matching == 1:
                return "The only provisioner that may run it is offline or out of reach; it runs once that reconnects."
            return (
                f"All {matching} provisioners that may run it are offline or out of reach; it runs once one reconnects."
            )
        case "nobody":
            return "No provisioner may run this job: start one with its required tags, or change the tags."
