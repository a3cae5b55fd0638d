"""Starting previews of updates, for one workspace and for those of a template.

A preview needs what the update needs: `update` on the workspace, and the right to use the template. The plan gets no
session token, key or provider token, and nothing of it is written to the workspace.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import Conflict, Forbidden, Invalid, NotAcceptable, NotFound, Refusal
from coder.api.workspaces.update_previews import (
    CreateTemplateUpdatePreviewRequest,
    CreateUpdatePreviewRequest,
    TemplateUpdatePreview,
    UpdatePreview,
)
from coder.base.ids import new_uuid
from coder.base.json_types import JsonObject
from coder.coderd.services.access.authorization import may
from coder.coderd.services.access.workspace_access import (
    load_template,
    load_workspace,
    lock_workspace,
    workspace_resource,
)
from coder.coderd.services.provisioning.new_jobs import NewJob, enqueue_job
from coder.coderd.services.templates.versions.loaded_versions import load_version
from coder.coderd.services.workspaces.builds.build_checks import check_template_access, select_version
from coder.coderd.services.workspaces.builds.build_input import optional_id, parameter_values
from coder.coderd.services.workspaces.builds.build_parameters import BuildTarget, enqueue_with_values
from coder.coderd.services.workspaces.builds.build_requests import BuildRequest
from coder.coderd.services.workspaces.builds.build_values import resolve_tags, resolve_values
from coder.coderd.services.workspaces.builds.new_builds import ACTIVE
from coder.coderd.services.workspaces.previews.preview_input import new_input
from coder.coderd.services.workspaces.previews.previews import present_preview, refused_preview
from coder.coderd.services.workspaces.previews.version_comparison import compare_versions
from coder.coderd.store.provisioning import jobs as job_store
from coder.coderd.store.provisioning import system_jobs
from coder.coderd.store.provisioning.jobs import JobRow
from coder.coderd.store.templates import system_templates
from coder.coderd.store.templates.templates import TemplateRow
from coder.coderd.store.workspaces import system_builds
from coder.coderd.store.workspaces.outdated import list_outdated
from coder.coderd.store.workspaces.workspaces import WorkspaceRow, WorkspaceView
from coder.domain.provisioning.queue import PREVIEW_PRIORITY
from coder.domain.workspaces.builds import is_active

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx
    from coder.domain.access.policy import Subject

MAX_SAMPLE = 20
"""Workspaces of a template that one preview plans."""


@dataclass(frozen=True, slots=True)
class _Started:
    job: JobRow
    values: Mapping[str, str]


async def preview_workspace(
    ctx: Context, subject: Subject, workspace_id: UUID, body: CreateUpdatePreviewRequest
) -> UpdatePreview:
    """Queue the preview of a workspace's update. Raises NotFound, Forbidden, Conflict (a build is active), Invalid.

    Missing values of new parameters are no error: the response has no plan then, and says which values are missing.
    """
    view = await load_workspace(ctx, subject, workspace_id, "update")
    if view.workspace.deleted:
        raise Conflict(f'Workspace "{view.workspace.name}" was deleted.')
    template = await _usable_template(ctx, subject, view)
    version_id = optional_id(body.template_version_id) or template.active_version_id
    await _require_version(ctx, subject, template, version_id)
    given = parameter_values(body.rich_parameter_values)
    refusal: Invalid | None = None
    started: _Started | None = None
    try:
        started = await _start(ctx, subject, view, version_id, given, new_uuid())
    except Invalid as error:
        if not error.validations:
            raise
        refusal = error
    values = started.values if started is not None else None
    changes = await compare_versions(ctx, subject, view.latest.build.template_version_id, version_id, values)
    if started is None:
        return refused_preview(view, explain_refusal(refusal), changes)
    return await present_preview(ctx, view, started.job, changes)


async def _usable_template(ctx: Context, subject: Subject, view: WorkspaceView) -> TemplateRow:
    """Return the workspace's template. Raises NotFound, Forbidden without access to it."""
    template = await ctx.db.read(system_templates.get_template, view.workspace.template_id)
    if template is None:
        raise NotFound
    check_template_access(subject, template, BuildRequest("start", subject.user_id), None)
    return template


async def _require_version(ctx: Context, subject: Subject, template: TemplateRow, version_id: UUID) -> None:
    """Require a version of the template. Raises NotFound, also for versions of other templates."""
    loaded = await load_version(ctx, subject, version_id)
    if loaded.version.template_id != template.id:
        raise NotFound


def explain_refusal(refusal: Refusal | None) -> str:
    """Return the reason why there is no plan, with the fields that it is about."""
    if refusal is None:
        return ""
    fields = "; ".join(f"{field}: {fault}" for field, fault in refusal.validations)
    return f"{refusal.message.rstrip('.')}: {fields}" if fields else refusal.message


async def _start(
    ctx: Context,
    subject: Subject,
    view: WorkspaceView,
    version_id: UUID,
    given: Mapping[str, str],
    job_id: UUID,
    leader_id: UUID | None = None,
) -> _Started:
    request = BuildRequest("start", subject.user_id, version_id=version_id, parameters=given)
    target = BuildTarget(view.workspace.owner_id, view.workspace.template_id, view.workspace.id)

    async def enqueue(request: BuildRequest) -> _Started:
        new = _NewPreview(job_id, leader_id or job_id, view.workspace.id, request)
        return await ctx.db.run(_enqueue, subject, new, ctx.clock.now())

    return await enqueue_with_values(ctx, request, target, enqueue, with_logins=False)


@dataclass(frozen=True, slots=True)
class _NewPreview:
    job_id: UUID
    leader_id: UUID
    workspace_id: UUID
    request: BuildRequest


async def _enqueue(tx: Tx, subject: Subject, new: _NewPreview, now: datetime) -> _Started:
    """Queue the dry run, with the checks of `enqueue_build` that a plan needs. Raises as it does."""
    workspace = (await lock_workspace(tx, subject, new.workspace_id, "update")).workspace
    template = await system_templates.get_template(tx, workspace.template_id)
    last = await system_builds.get_latest_build(tx, workspace.id)
    if template is None or last is None:
        raise NotFound
    last_job = await system_jobs.get_job(tx, last.job_id)
    if last_job is not None and is_active(last_job.status):
        raise Conflict(ACTIVE, "Wait until the build has ended: the plan depends on its result.")
    check_template_access(subject, template, new.request, last.template_version_id)
    # As for dry runs, any version may be planned; only a start may require the active one.
    version, version_job = await select_version(tx, template, new.request, last)
    values = await resolve_values(tx, template, version, new.request, last)
    job = await enqueue_job(
        tx,
        NewJob(
            organization_id=workspace.organization_id,
            initiator_id=subject.user_id,
            provisioner=template.provisioner,
            file_id=version_job.file_id,
            type="template_version_dry_run",
            input=new_input(version.id, workspace.id, values, new.leader_id, now),
            tags=await resolve_tags(tx, workspace, template, version_job, values, new.request, last),
            priority=PREVIEW_PRIORITY,
            id=new.job_id,
        ),
        now,
    )
    return _Started(job, values)


async def preview_template(
    ctx: Context, subject: Subject, template_id: UUID, body: CreateTemplateUpdatePreviewRequest
) -> TemplateUpdatePreview:
    """Queue previews of a template's workspaces. Raises NotFound, Forbidden, Invalid.

    Only outdated workspaces that the caller may update are sampled. A workspace whose plan cannot be started says why.
    """
    template = await load_template(ctx, subject, template_id, "update")
    version_id = body.template_version_id
    await _require_version(ctx, subject, template, version_id)
    rows = await ctx.db.read(list_outdated, template.id, version_id)
    allowed = [row for row in rows if may(subject, "update", workspace_resource(row))]
    sampled = sample(allowed)
    leader_id = new_uuid()
    started: list[JobRow] = []
    previews: list[UpdatePreview] = []
    for row in sampled:
        member = await _start_member(ctx, subject, row, version_id, leader_id, is_first=not started)
        if member is not None:
            preview, job = member
            previews.append(preview)
            started += [job] if job is not None else []
    refused = [preview for preview in previews if preview.id is None]
    not_previewed = len(rows) - len(previews)
    if started:
        await ctx.db.run(_record_members, leader_id, template.id, started, refused, not_previewed)
    return TemplateUpdatePreview(
        id=leader_id if started else None,
        template_id=template.id,
        template_version_id=version_id,
        previews=previews,
        not_previewed=not_previewed,
        changes=await compare_versions(ctx, subject, template.active_version_id, version_id, None),
    )


def sample(rows: Sequence[WorkspaceRow]) -> list[WorkspaceRow]:
    """Return at most `MAX_SAMPLE` rows, evenly spread: recently used workspaces and forgotten ones."""
    count = min(len(rows), MAX_SAMPLE)
    return [rows[index * len(rows) // count] for index in range(count)]


async def _start_member(
    ctx: Context, subject: Subject, row: WorkspaceRow, version_id: UUID, leader_id: UUID, *, is_first: bool
) -> tuple[UpdatePreview, JobRow | None] | None:
    """Start the preview of a sampled workspace; return None for one that the caller can no longer read."""
    try:
        view = await load_workspace(ctx, subject, row.id)
    except NotFound:
        return None
    job_id = leader_id if is_first else new_uuid()
    try:
        started = await _start(ctx, subject, view, version_id, {}, job_id, leader_id)
    except (Invalid, Conflict, Forbidden, NotFound, NotAcceptable) as refusal:
        return refused_preview(view, explain_refusal(refusal), None), None
    return await present_preview(ctx, view, started.job, None), started.job


async def _record_members(
    tx: Tx,
    leader_id: UUID,
    template_id: UUID,
    started: Sequence[JobRow],
    refused: Sequence[UpdatePreview],
    not_previewed: int,
) -> None:
    """Record in the first job what the preview of the template consists of."""
    leader = await system_jobs.get_job(tx, leader_id, lock=True)
    if leader is None:
        raise NotFound
    members: JsonObject = {
        "template_id": str(template_id),
        "jobs": [str(job.id) for job in started],
        "refused": [{"workspace_id": str(item.workspace_id), "error": item.error} for item in refused],
        "not_previewed": not_previewed,
    }
    await job_store.update_job(tx, leader_id, input={**leader.input, **members})
