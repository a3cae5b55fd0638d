"""Lists of provisioner jobs, for administrators of the queue."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import NotFound
from coder.api.provisioning.jobs import ProvisionerJob
from coder.coderd.services.access.authorization import may
from coder.coderd.services.provisioning.jobs import as_offer, load_queue_positions, present_detail, requirements_of
from coder.coderd.services.provisioning.tag_rules import load_tag_rule
from coder.coderd.store.provisioning import jobs as store
from coder.coderd.store.provisioning import provisioners as daemon_store
from coder.coderd.store.provisioning.jobs import JobFilter as JobFilter
from coder.domain.access.policy import Class, Object, Subject, key_allows
from coder.domain.provisioning.provisioners import STALE_AFTER
from coder.domain.provisioning.queue import DEFAULT_RULE, NO_POSITION, fits

if TYPE_CHECKING:
    from datetime import datetime

    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx


def require_queue(subject: Subject, organization_id: UUID) -> None:
    """Require permission to update jobs, for the queue and its daemons. Raises NotFound (recorded: 404)."""
    if not may(subject, "update", Class("provisioner_jobs", organization_id=organization_id)):
        raise NotFound


def lists_daemon(subject: Subject, daemon_id: UUID) -> bool:
    """Return whether the caller's key includes this daemon. `require_queue` asks about the caller's roles."""
    return key_allows(subject, "read", Object("provisioner_daemon", str(daemon_id)))


async def list_jobs(ctx: Context, subject: Subject, organization_id: UUID, which: JobFilter) -> list[ProvisionerJob]:
    """Return jobs, newest first. Raises NotFound without permission to update jobs of the organization."""
    require_queue(subject, organization_id)
    strict = ctx.config.provisioner_strict_tags
    return await ctx.db.read(_list, organization_id, which, ctx.clock.now(), strict)


async def get_job(ctx: Context, subject: Subject, organization_id: UUID, job_id: UUID) -> ProvisionerJob:
    jobs = await list_jobs(ctx, subject, organization_id, JobFilter(ids=[job_id]))
    if not jobs:
        raise NotFound
    return jobs[0]


async def _list(tx: Tx, organization_id: UUID, which: JobFilter, now: datetime, strict: bool) -> list[ProvisionerJob]:
    details = await store.list_jobs(tx, organization_id, which)
    places = await load_queue_positions(tx, [detail.job for detail in details], now, strict=strict)
    daemons = await daemon_store.list_seen_daemons(tx, [organization_id], now - STALE_AFTER) if places else []
    rule = await load_tag_rule(tx, [organization_id], now, strict=strict) if places else DEFAULT_RULE
    return [
        present_detail(
            detail,
            places.get(detail.job.id, NO_POSITION),
            # Daemons that could take a pending job.
            [str(daemon.id) for daemon in daemons if fits(requirements_of(detail.job), as_offer(daemon), rule=rule)]
            if detail.job.status == "pending"
            else None,
        )
        for detail in details
    ]
