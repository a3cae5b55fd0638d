"""Events after a build's job ended: an audit entry, notifications and metrics.

They are written in the transaction that ends the job: a lost answer to its commit, or a server that is killed after it,
loses none. Events of requests are in `services/audit/request_events.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from coder.coderd.services.audit import audit
from coder.coderd.services.audit.audit import AuditEvent, Origin
from coder.coderd.services.notifications import notifications, prebuild_notifications, task_notifications
from coder.coderd.services.notifications.notifications import Notification, NotificationSite
from coder.coderd.services.notifications.prebuild_notifications import ReplacedPaths
from coder.coderd.services.provisioning.job_handlers import AfterCommit, nothing_follows
from coder.coderd.services.telemetry.metrics import Metrics
from coder.coderd.store.audit import audit as store
from coder.coderd.store.audit.audit import AuditSnapshot, BuildFacts
from coder.coderd.store.engine.availability import DRIVER_ERRORS, means_temporary
from coder.coderd.store.notifications import notifications as notification_store
from coder.coderd.store.people import system_organizations, system_users
from coder.coderd.store.provisioning import system_jobs
from coder.coderd.store.site.site_settings import PREBUILDS_USER_ID
from coder.coderd.store.templates import system_template_versions, system_templates
from coder.coderd.store.workspaces import system_builds
from coder.domain.notifications import notification_templates

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx
    from coder.coderd.store.provisioning.jobs import JobRow

_AUTOMATIC_REASONS = frozenset({"autostart", "autostop", "dormancy", "autodelete", "task_auto_pause"})


async def record_build_end(ctx: Context, tx: Tx, job_id: UUID, replaced: ReplacedPaths | None = None) -> AfterCommit:
    """Record the end of a build's job, successful or not. Raises only what repeats the transaction: the build itself is
    complete."""
    try:
        async with tx.begin_nested():  # what fails in it undoes nothing else
            ended = await _record_build_end(tx, job_id, notifications.site_of(ctx), ctx.clock.now(), replaced or {})
    except Exception as error:
        if isinstance(error, DRIVER_ERRORS) and means_temporary(error):
            raise
        ctx.log.error("the events of a build's end could not be recorded", job=job_id, error=error)
        return nothing_follows
    return nothing_follows if ended is None else partial(_count_build, ctx.services.metrics, ended)


@dataclass(frozen=True, slots=True)
class _EndedBuild:
    """Metrics of a build that ended."""

    facts: BuildFacts
    provisioner: str
    template: str
    version: str
    status: str
    seconds: float
    created: _FirstStart | None = None


@dataclass(frozen=True, slots=True)
class _FirstStart:
    """Metrics of a workspace's first start, if it succeeded."""

    organization: str
    preset: str
    seconds: float
    "Time from creating the job to its end."
    is_prebuild: bool


def _count_build(metrics: Metrics, build: _EndedBuild) -> None:
    facts = build.facts
    metrics["coderd_workspace_builds_total"].add(
        build.status, build.template, build.version, facts.workspace_name, facts.owner_name, facts.transition.upper()
    )
    metrics["coderd_provisionerd_job_timings_seconds"].observe(build.seconds, build.provisioner, build.status)
    metrics["coderd_provisionerd_workspace_build_timings_seconds"].observe(
        build.seconds, build.status, build.template, build.version, facts.transition.upper()
    )
    created = build.created
    if created is None:
        return
    kind = "prebuild" if created.is_prebuild else "regular"
    metrics["coderd_workspace_creation_duration_seconds"].observe(
        created.seconds, created.organization, created.preset, build.template, kind
    )
    if not created.is_prebuild:
        metrics["coderd_workspace_creation_total"].add(created.organization, created.preset, build.template)


async def _first_start(tx: Tx, facts: BuildFacts, job: JobRow) -> _FirstStart:
    organization = await system_organizations.get_organization(tx, facts.organization_id)
    build = await system_builds.get_build(tx, facts.build_id)
    preset_id = build.template_version_preset_id if build else None
    preset = await system_template_versions.get_preset(tx, preset_id) if preset_id else None
    return _FirstStart(
        organization.name if organization else "",
        preset.name if preset else "",
        ((job.completed_at or job.created_at) - job.created_at).total_seconds(),
        facts.owner_id == PREBUILDS_USER_ID,
    )


async def _record_build_end(
    tx: Tx, job_id: UUID, site: NotificationSite, now: datetime, replaced: ReplacedPaths
) -> _EndedBuild | None:
    job = await system_jobs.get_job(tx, job_id)
    facts = await store.get_build_facts(tx, job_id)
    if job is None or facts is None or job.completed_at is None:
        return None
    failed = bool(job.error) or job.status in {"failed", "canceled"}
    await audit.write(tx, _build_event(facts, failed=failed), now)
    notices = await _build_notices(tx, facts, job, failed=failed)
    if not failed:
        notices += await prebuild_notifications.replacement_notifications(tx, facts, replaced)
    for notice in notices:
        await notifications.enqueue(tx, site, notice, now)
    template = await system_templates.get_template(tx, facts.template_id)
    version = await system_template_versions.get_version(tx, facts.template_version_id)
    first = facts.build_number == 1 and facts.transition == "start" and not failed
    seconds = (job.completed_at - (job.started_at or job.completed_at)).total_seconds()
    return _EndedBuild(
        facts,
        job.provisioner,
        template.name if template else "",
        version.name if version else "",
        "failed" if failed else "success",
        seconds,
        await _first_start(tx, facts, job) if first else None,
    )


def _build_event(facts: BuildFacts, *, failed: bool) -> AuditEvent:
    additional = {
        "workspace_name": facts.workspace_name,
        "build_number": str(facts.build_number),
        "build_reason": facts.reason,
        "workspace_owner": facts.owner_name,
        "workspace_id": str(facts.workspace_id),
    }
    snapshot = AuditSnapshot(facts.build_id, facts.workspace_name, facts.organization_id, "", facts.owner_name, {})
    return AuditEvent(
        "workspace_build",
        facts.transition,
        Origin(user_id=facts.initiator_id),
        500 if failed else 200,
        after=snapshot,
        additional=additional,
    )


async def _build_notices(tx: Tx, facts: BuildFacts, job: JobRow, *, failed: bool) -> list[Notification]:
    about = (facts.workspace_id, facts.owner_id, facts.template_id, facts.organization_id)
    automatic = facts.reason in _AUTOMATIC_REASONS
    initiator = await system_users.get_user(tx, facts.initiator_id)
    initiator_name = "autobuild" if automatic else (initiator.username if initiator else "")
    if not failed:
        task_notices = await task_notifications.build_notifications(tx, facts, about)
        if task_notices:
            return task_notices
        if facts.transition != "delete" or (facts.initiator_id == facts.owner_id and not automatic):
            return []
        reason = "autodeleted due to dormancy" if automatic else "initiated by user"
        labels = {"name": facts.workspace_name, "reason": reason, "initiator": initiator_name}
        return [Notification(notification_templates.WORKSPACE_DELETED, facts.owner_id, labels, about)]
    if job.status == "canceled":
        return []
    if automatic:
        labels = {"name": facts.workspace_name, "reason": facts.reason}
        return [Notification(notification_templates.WORKSPACE_AUTOBUILD_FAILED, facts.owner_id, labels, about)]
    return await _manual_failure_notices(tx, facts, initiator_name, about)


async def _manual_failure_notices(
    tx: Tx, facts: BuildFacts, initiator: str, about: tuple[UUID, ...]
) -> list[Notification]:
    """Return notifications for the template admins about a failed build that a user started."""
    template = await system_templates.get_template(tx, facts.template_id)
    version = await system_template_versions.get_version(tx, facts.template_version_id)
    labels = {
        "name": facts.workspace_name,
        "template_name": template.name if template else "",
        "template_version_name": version.name if version else "",
        "initiator": initiator,
        "workspace_owner_username": facts.owner_name,
        "workspace_build_number": str(facts.build_number),
    }
    admins = await notification_store.list_admins(tx, ("template-admin",), facts.organization_id)
    return [
        Notification(notification_templates.WORKSPACE_MANUAL_BUILD_FAILED, admin, labels, about) for admin in admins
    ]
