"""Previews of updates, read and canceled by the user who started them.

Each request checks the rights again, and renews the lease: without requests the jobs are canceled
(`preview_jobs.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import Forbidden, NotFound
from coder.api.workspaces.update_previews import (
    PreviewStatus,
    TemplateUpdatePreview,
    UpdatePreview,
    UpdatePreviewAgent,
    UpdatePreviewAttribute,
    UpdatePreviewPlan,
    UpdatePreviewResource,
    VersionChanges,
)
from coder.base.duration import format_duration
from coder.base.json_types import as_list, as_object, as_text
from coder.coderd.services.access.workspace_access import load_template, load_workspace
from coder.coderd.services.provisioning.jobs import cancel_job, load_queue_positions
from coder.coderd.services.workspaces.builds.build_checks import may_use
from coder.coderd.services.workspaces.previews.preview_input import (
    MAX_DURATION,
    is_hung,
    is_renewable,
    members_of,
    planned_of,
)
from coder.coderd.store.provisioning import jobs as job_store
from coder.coderd.store.provisioning import previews as preview_store
from coder.coderd.store.provisioning import resources as resource_store
from coder.coderd.store.provisioning import system_jobs
from coder.coderd.store.provisioning.jobs import JobRow
from coder.coderd.store.templates import system_template_versions, system_templates
from coder.coderd.store.workspaces.workspaces import WorkspaceView
from coder.domain.provisioning.queue import NO_POSITION, QueuePosition
from coder.domain.workspaces.planned_update import (
    PlannedResource,
    count_actions,
    disk_verdict,
    explain,
    stopped_first,
)

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx
    from coder.domain.access.policy import Subject

MAX_ERROR_LINES, MAX_ERROR = 20, 4000
"""Lines of a failed plan's log, and characters of its error, that are shown."""

_STATUSES: dict[str, PreviewStatus] = {
    "pending": "pending",
    "running": "running",
    "canceling": "canceled",
    "canceled": "canceled",
    "succeeded": "succeeded",
    "failed": "failed",
}


async def get_preview(ctx: Context, subject: Subject, workspace_id: UUID, preview_id: UUID) -> UpdatePreview:
    """Return a preview with its plan once there is one. Raises NotFound, Forbidden."""
    view, job = await _load(ctx, subject, workspace_id, preview_id)
    await _renew(ctx, job)
    return await present_preview(ctx, view, job, None)


async def cancel_preview(ctx: Context, subject: Subject, workspace_id: UUID, preview_id: UUID) -> None:
    """Cancel a preview, unless it has ended. Raises NotFound, Forbidden."""
    _, job = await _load(ctx, subject, workspace_id, preview_id)
    await ctx.db.run(_cancel, [job.id], ctx.clock.now())


async def _load(ctx: Context, subject: Subject, workspace_id: UUID, preview_id: UUID) -> tuple[WorkspaceView, JobRow]:
    """Load a preview of a workspace that the caller started, and may still update."""
    view = await load_workspace(ctx, subject, workspace_id, "update")
    job = await ctx.db.read(system_jobs.get_job, preview_id)
    if job is None or job.previewed_workspace != workspace_id or job.initiator_id != subject.user_id:
        raise NotFound
    template = await ctx.db.read(system_templates.get_template, view.workspace.template_id)
    if template is None or not may_use(subject, template):
        raise NotFound
    return view, job


async def get_template_preview(
    ctx: Context, subject: Subject, template_id: UUID, preview_id: UUID
) -> TemplateUpdatePreview:
    """Return the previews of a template's workspaces; those that the caller lost the right to are left out.

    Raises NotFound, Forbidden.
    """
    leader = await _load_leader(ctx, subject, template_id, preview_id)
    await _renew(ctx, leader)
    jobs = await ctx.db.read(system_jobs.get_jobs, members_of(leader))
    previews: list[UpdatePreview] = []
    errors = {
        UUID(as_text(item.get("workspace_id"))): as_text(item.get("error"))
        for item in map(as_object, as_list(leader.input.get("refused")))
    }
    by_workspace = {job.previewed_workspace: job for job in jobs.values() if job.previewed_workspace is not None}
    lost = 0
    for workspace_id in (*by_workspace, *errors):
        try:
            view = await load_workspace(ctx, subject, workspace_id, "update")
        except (NotFound, Forbidden):
            lost += 1
            continue
        if workspace_id in errors:
            previews.append(refused_preview(view, errors[workspace_id], None))
        else:
            previews.append(await present_preview(ctx, view, by_workspace[workspace_id], None))
    others = leader.input.get("not_previewed")
    if leader.version_id is None:
        raise NotFound
    return TemplateUpdatePreview(
        id=leader.id,
        template_id=template_id,
        template_version_id=leader.version_id,
        previews=previews,
        not_previewed=lost + (others if isinstance(others, int) else 0),
        changes=None,
    )


async def cancel_template_preview(ctx: Context, subject: Subject, template_id: UUID, preview_id: UUID) -> None:
    """Cancel the previews of a template's workspaces that have not ended. Raises NotFound, Forbidden."""
    leader = await _load_leader(ctx, subject, template_id, preview_id)
    await ctx.db.run(_cancel, members_of(leader), ctx.clock.now())


async def _load_leader(ctx: Context, subject: Subject, template_id: UUID, preview_id: UUID) -> JobRow:
    template = await load_template(ctx, subject, template_id, "update")
    leader = await ctx.db.read(system_jobs.get_job, preview_id)
    if leader is None or leader.initiator_id != subject.user_id:
        raise NotFound
    if leader.input.get("template_id") != str(template.id):
        raise NotFound
    return leader


async def _renew(ctx: Context, leader: JobRow) -> None:
    if leader.completed_at is None or leader.input.get("jobs"):
        now = ctx.clock.now()
        if is_renewable(leader, now):
            await ctx.db.run(_record_request, leader.id, now)


async def _record_request(tx: Tx, leader_id: UUID, now: datetime) -> None:
    leader = await system_jobs.get_job(tx, leader_id, lock=True)
    if leader is not None:
        await job_store.update_job(tx, leader_id, input={**leader.input, "asked_at": now.isoformat()})


async def _cancel(tx: Tx, job_ids: Sequence[UUID], now: datetime) -> None:
    for job_id in sorted(job_ids):
        job = await system_jobs.get_job(tx, job_id, lock=True)
        if job is not None and job.completed_at is None and job.canceled_at is None:
            await cancel_job(tx, job_id, now)


def refused_preview(view: WorkspaceView, error: str, changes: VersionChanges | None) -> UpdatePreview:
    """Return the preview of an update whose plan could not be started."""
    return _present(view, None, "failed", error, NO_POSITION, changes, None)


async def present_preview(
    ctx: Context, view: WorkspaceView, job: JobRow, changes: VersionChanges | None
) -> UpdatePreview:
    """Return a preview as JSON."""
    strict = ctx.config.provisioner_strict_tags
    facts = await ctx.db.read(_load_facts, view, job, ctx.clock.now(), strict)
    status = _STATUSES[job.status]
    plan = _plan(view, job, facts) if status == "succeeded" else None
    error = "\n".join(filter(None, [_explain_hung(job), *facts.first_errors, job.error]))[:MAX_ERROR]
    return _present(view, job.id, status, error, facts.position, changes, plan)


def _explain_hung(job: JobRow) -> str:
    if job.canceled_at is None or not is_hung(job, job.canceled_at):
        return ""
    return f"The plan took longer than {format_duration(MAX_DURATION)} and was canceled."


@dataclass(frozen=True, slots=True)
class _Facts:
    position: QueuePosition
    persistent: frozenset[tuple[str, str]] | None
    """(type, name) of the resources of the current version that stay while the workspace is stopped."""
    first_errors: list[str]
    """Of a plan that failed: Terraform tells the reason in the log, which has no page of its own."""


async def _load_facts(tx: Tx, view: WorkspaceView, job: JobRow, now: datetime, strict: bool) -> _Facts:
    positions = await load_queue_positions(tx, [job], now, strict=strict)
    version = await system_template_versions.get_version(tx, view.latest.build.template_version_id)
    rows = await resource_store.list_resources(tx, [version.job_id]) if version is not None else []
    kept = frozenset((row.type, row.name) for row in rows if row.transition == "stop")
    errors = await preview_store.list_first_errors(tx, job.id, MAX_ERROR_LINES) if job.status == "failed" else []
    return _Facts(positions.get(job.id, NO_POSITION), kept if rows else None, errors)


def _plan(view: WorkspaceView, job: JobRow, facts: _Facts) -> UpdatePreviewPlan:
    is_running = view.latest.build.transition == "start" and view.latest.job.status == "succeeded"
    planned = planned_of(job)
    if planned is None:
        return UpdatePreviewPlan(
            known=False,
            summary=explain(None, is_complete=False, is_running=is_running),
            disk="unknown",
            counts=None,
            resources=[],
            agents=[],
            omitted=0,
        )
    resources = stopped_first(planned.resources, is_running=is_running, persistent=facts.persistent)
    is_complete = not planned.omitted
    return UpdatePreviewPlan(
        known=True,
        summary=explain(resources, is_complete=is_complete, is_running=is_running),
        disk=disk_verdict(resources, is_complete=is_complete),
        counts={action: count for action, count in count_actions(resources).items() if count},
        resources=[_resource(item) for item in resources if not item.is_internal],
        agents=[
            UpdatePreviewAgent(
                name=item.name, action=item.action, restarts=is_running and item.action not in {"create", "delete"}
            )
            for item in resources
            if item.is_agent
        ],
        omitted=planned.omitted,
    )


def _resource(item: PlannedResource) -> UpdatePreviewResource:
    return UpdatePreviewResource(
        address=item.address,
        type=item.type,
        name=item.name,
        action=item.action,
        disk=item.is_disk,
        attributes=[
            UpdatePreviewAttribute(
                path=change.path,
                before=change.before,
                after=change.after,
                forces_replacement=change.forces_replacement,
            )
            for change in item.attributes
        ],
    )


def _present(
    view: WorkspaceView,
    preview_id: UUID | None,
    status: PreviewStatus,
    error: str,
    position: QueuePosition,
    changes: VersionChanges | None,
    plan: UpdatePreviewPlan | None,
) -> UpdatePreview:
    return UpdatePreview(
        id=preview_id,
        workspace_id=view.workspace.id,
        workspace_name=view.workspace.name,
        owner_name=view.owner_username,
        status=status,
        error=error,
        queue_position=position.position,
        queue_size=position.size,
        changes=changes,
        plan=plan,
    )
