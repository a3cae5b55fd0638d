"""No job waits in silence: for a waiting job, what every daemon lacks, its place, and when it should start.

Those who look after the queue see every daemon of organizations they look after; whoever posted the job (or owns its
workspace) learns the same without the names of daemons. The reasons themselves are
`domain/provisioning/queue_reasons.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast
from uuid import UUID

from msgspec import UNSET

from coder.api.base.refusals import Invalid, NotFound
from coder.api.provisioning.job_reasons import ExpectedStart, ProvisionerJobWhy, WaitingDaemon, WaitingRemedy
from coder.api.provisioning.jobs import ProvisionerJobStatus
from coder.coderd.services.access.authorization import may
from coder.coderd.services.provisioning.waiting_jobs import WaitExplanation, load_waiting
from coder.coderd.store.provisioning import jobs as job_store
from coder.coderd.store.provisioning import queue_forecast_queries as store
from coder.domain.access.policy import Resource, Subject
from coder.domain.provisioning.queue_forecast import Forecast, NoForecast
from coder.domain.provisioning.queue_reasons import (
    COMES,
    Reason,
    Remedy,
    explain_text,
)

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx


_NOBODY = "a provisioner"


async def explain_job(ctx: Context, subject: Subject, organization_id: UUID, job_id: UUID) -> ProvisionerJobWhy:
    """Raises NotFound when the caller has nothing to do with the job."""
    await _require(ctx, subject, organization_id, job_id)
    found = await ctx.db.read(load_waiting, job_id, ctx.clock.now(), ctx.config.provisioner_strict_tags)
    sees = {
        one.daemon.offer.organization_id
        for one in found.reasons
        if may(subject, "update", Resource("provisioner_jobs", organization_id=one.daemon.offer.organization_id))
    }
    return _present(found, sees)


async def park_job(ctx: Context, subject: Subject, organization_id: UUID, job_id: UUID, *, parked: bool) -> None:
    """Lets a waiting job wait without limit, or not. Raises NotFound, Invalid (it does not wait)."""
    await _require(ctx, subject, organization_id, job_id)
    await ctx.db.run(_park, job_id, parked)


async def _park(tx: Tx, job_id: UUID, parked: bool) -> None:
    job = await job_store.get_job(tx, job_id, lock=True)
    if job is None or job.status != "pending":
        raise Invalid("The job does not wait for a provisioner.", "Only pending jobs can be parked.")
    await store.set_parked(tx, job_id, parked=parked)


async def _require(ctx: Context, subject: Subject, organization_id: UUID, job_id: UUID) -> None:
    found = await ctx.db.read(_people, job_id)
    if found is None or found[0] != organization_id:
        raise NotFound
    steers = may(subject, "update", Resource("provisioner_jobs", organization_id=organization_id))
    if not steers and subject.user_id not in found[1]:
        raise NotFound


async def _people(tx: Tx, job_id: UUID) -> tuple[UUID, set[UUID]] | None:
    """The organization of a job, and those whose job it is."""
    job = await job_store.get_job(tx, job_id)
    if job is None:
        return None
    place = await job_store.get_job_workspace(tx, job_id)
    return job.organization_id, {job.initiator_id} | ({place[0]} if place else set())


def _present(found: WaitExplanation, sees: set[UUID]) -> ProvisionerJobWhy:
    job, start = found.job, found.start
    # Daemons of organizations the caller has no business with are nobody's news, not even as a number.
    shown = [one for one in found.reasons if one.daemon.offer.organization_id in {*sees, job.organization_id}]
    named = job.organization_id in sees
    return ProvisionerJobWhy(
        job_id=job.id,
        status=cast("ProvisionerJobStatus", job.status),
        verdict=found.verdict,
        summary=summarize(found),
        provisioner=job.provisioner,
        tags=job.tags,
        parked=bool(job.input.get(store.PARKED)),
        queue_position=found.place.position,
        queue_size=found.place.size,
        daemons=[_present_reason(one, named=named) for one in shown],
        expected_start=ExpectedStart(start.earliest, start.latest, start.samples)
        if isinstance(start, Forecast)
        else None,
        no_expected_start=start.reason if isinstance(start, NoForecast) else "",
        remedy=_present_remedy(found.remedy, named=named) if found.remedy else None,
        worker_id=job.worker_id or UNSET,
        worker_name=found.worker_name or UNSET,
    )


def _present_reason(reason: Reason, *, named: bool) -> WaitingDaemon:
    daemon = reason.daemon
    return WaitingDaemon(
        daemon_id=daemon.id if named else UUID(int=0),
        daemon_name=daemon.name if named else _NOBODY,
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


def summarize(found: WaitExplanation) -> str:
    """One sentence."""
    fitting = sum(1 for one in found.reasons if one.code in COMES)
    match found.verdict:
        case "not_waiting":
            by = f" by {found.worker_name}" if found.worker_name else ""
            return f"The job does not wait: it is {found.job.status}{by}."
        case "starts_now":
            return "An idle provisioner takes the job at once."
        case "queued":
            return (
                f"The job is number {found.place.position} of {found.place.size} for {fitting} "
                f"provisioner{'s' if fitting != 1 else ''} that may run it; all are busy or have others to run first."
            )
        case "all_offline":
            if fitting == 1:
                return "The only provisioner that may run it is offline or out of reach; it runs when that comes back."
            return f"All {fitting} provisioners that may run it are offline or out of reach; it runs when one is back."
        case "nobody":
            return "No provisioner may run this job: start one with the tags it wants, or change the tags."
