"""Provisioner jobs as users see them: cancellation, queue positions, and JSON.

Jobs are created by `new_jobs.py` and assigned by `job_queue.py`; daemons report on them by `daemon_calls.py`; logs are
`job_logs.py`. Functions with a transaction run inside the caller's, so that a version or a build and its job appear
together.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, cast
from uuid import UUID

from msgspec import UNSET

from coder.api.base.refusals import Invalid
from coder.api.provisioning.jobs import (
    JobErrorCode,
    MatchedProvisioners,
    ProvisionerJob,
    ProvisionerJobInput,
    ProvisionerJobMetadata,
)
from coder.coderd.services.provisioning.tag_rules import load_tag_rule
from coder.coderd.store.engine.pubsub import notify
from coder.coderd.store.provisioning import jobs as job_store
from coder.coderd.store.provisioning import provisioners as daemon_store
from coder.coderd.store.provisioning import system_jobs
from coder.coderd.store.provisioning.jobs import JobDetail, JobRow
from coder.coderd.store.provisioning.provisioners import DaemonRow
from coder.coderd.store.workspaces.change_feed import notify_change
from coder.domain.provisioning.provisioners import STALE_AFTER, is_stale
from coder.domain.provisioning.queue import (
    NO_POSITION,
    DaemonOffer,
    JobRequirements,
    QueuePosition,
    fits,
    queue_positions,
)

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx

JOB_CHANGES = "provisioner_job_news"
"""NOTIFY channel of changes to a job or its log: the job's id."""

_NIL = UUID(int=0)


async def notify_job_change(tx: Tx, job: JobRow) -> None:
    """Notify followers of the job, and watchers of its workspace, when `tx` commits."""
    await notify(tx, JOB_CHANGES, str(job.id))
    if job.type == "workspace_build":
        position = await job_store.get_job_workspace(tx, job.id)
        if position is not None:
            await notify_change(tx, "state", owner_id=position[0], workspace_id=position[1])


async def cancel_job(tx: Tx, job_id: UUID, now: datetime) -> JobRow:
    """Cancel a job: its daemon is asked to stop; a job without a daemon ends immediately.

    Raises Invalid when the job already ended or was canceled.
    """
    job = await system_jobs.get_job(tx, job_id, lock=True)
    if job is None or job.completed_at is not None:
        raise Invalid("Job has already completed!")
    if job.canceled_at is not None:
        raise Invalid("Job has already been marked as canceled!")
    completed_at = now if job.started_at is None else None
    await job_store.update_job(tx, job.id, canceled_at=now, completed_at=completed_at, updated_at=now)
    await notify_job_change(tx, job)
    changed = await system_jobs.get_job(tx, job_id)
    assert changed is not None  # noqa: S101 - this transaction locked the row
    return changed


def as_offer(daemon: DaemonRow) -> DaemonOffer:
    return DaemonOffer(daemon.organization_id, frozenset(daemon.provisioners), daemon.tags)


def requirements_of(job: JobRow) -> JobRequirements:
    return JobRequirements(job.id, job.organization_id, job.provisioner, job.tags, job.priority, job.created_at)


async def load_queue_positions(
    tx: Tx, jobs: Collection[JobRow], now: datetime, *, strict: bool
) -> dict[UUID, QueuePosition]:
    """Return the queue positions of the pending `jobs`; others are omitted."""
    waiting = [job for job in jobs if job.status == "pending"]
    if not waiting:
        return {}
    organizations = {job.organization_id for job in waiting}
    queued = await job_store.list_waiting(tx, organizations)
    daemons = await daemon_store.list_seen_daemons(tx, organizations, now - STALE_AFTER)
    rule = await load_tag_rule(tx, organizations, now, strict=strict)
    positions = queue_positions(queued, map(as_offer, daemons), rule=rule)
    return {job.id: positions.get(job.id, NO_POSITION) for job in waiting}


async def match_provisioners(tx: Tx, job: JobRow, now: datetime, *, strict: bool) -> MatchedProvisioners:
    """Count the daemons with a job's tags, and the connected ones. Provisioner types do not count (recorded)."""
    requirements = requirements_of(job)
    rule = await load_tag_rule(tx, [job.organization_id], now, strict=strict)
    daemons = await daemon_store.list_daemons(tx, job.organization_id)
    offers = [(daemon, as_offer(daemon)) for daemon in daemons if daemon.provisioners]  # others are draining
    matching = [
        daemon
        for daemon, offer in offers
        if fits(requirements, replace(offer, provisioners=frozenset({requirements.provisioner})), rule=rule)
    ]
    seen = [daemon.last_seen_at for daemon in matching if daemon.last_seen_at is not None]
    return MatchedProvisioners(
        count=len(matching),
        available=sum(not is_stale(at, now) for at in seen),
        most_recently_seen=max(seen, default=None),
    )


def present_job(
    job: JobRow,
    position: QueuePosition = NO_POSITION,
    *,
    worker_name: str = "",
    metadata: ProvisionerJobMetadata | None = None,
    available_workers: list[str] | None = None,
) -> ProvisionerJob:
    """Return a job as JSON. Only lists of jobs have the names in `metadata`; elsewhere they are empty, as upstream."""
    return ProvisionerJob(
        id=job.id,
        created_at=job.created_at,
        started_at=job.started_at or UNSET,
        completed_at=job.completed_at or UNSET,
        canceled_at=job.canceled_at or UNSET,
        error=job.error or UNSET,
        error_code=cast("JobErrorCode", job.error_code) if job.error_code else UNSET,
        status=job.status,
        worker_id=job.worker_id or UNSET,
        worker_name=worker_name or UNSET,
        file_id=job.file_id,
        tags=job.tags,
        queue_position=position.position,
        queue_size=position.size,
        organization_id=job.organization_id,
        initiator_id=job.initiator_id,
        input=ProvisionerJobInput(
            template_version_id=job.version_id or UNSET, workspace_build_id=job.build_id or UNSET
        ),
        type=job.type,
        available_workers=available_workers if available_workers is not None else UNSET,
        metadata=metadata or _NO_METADATA,
        logs_overflowed=job.logs_overflowed,
    )


_NO_METADATA = ProvisionerJobMetadata(
    template_version_name="", template_id=_NIL, template_name="", template_display_name="", template_icon=""
)


def present_detail(
    detail: JobDetail, position: QueuePosition, available_workers: list[str] | None = None
) -> ProvisionerJob:
    """Return a job of a list as JSON, with the names of its template, version and workspace."""
    metadata = ProvisionerJobMetadata(
        template_version_name=detail.template_version_name,
        template_id=detail.template_id or _NIL,
        template_name=detail.template_name,
        template_display_name=detail.template_display_name,
        template_icon=detail.template_icon,
        workspace_id=detail.workspace_id or UNSET,
        workspace_name=detail.workspace_name or UNSET,
        workspace_build_transition=detail.transition or UNSET,
    )
    return present_job(
        detail.job,
        position,
        worker_name=detail.worker_name,
        metadata=metadata,
        available_workers=available_workers,
    )
