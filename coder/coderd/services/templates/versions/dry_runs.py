"""Dry runs of template versions: a plan with given values, without a build.

A user who may create workspaces of a version may dry-run it; the run belongs to the user who started it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import Forbidden, NotFound, Precondition
from coder.api.provisioning.jobs import MatchedProvisioners, ProvisionerJob
from coder.api.templates.template_versions import CreateTemplateVersionDryRunRequest
from coder.api.workspaces.builds import WorkspaceResource
from coder.coderd.services.access.authorization import may
from coder.coderd.services.provisioning.jobs import cancel_job, load_queue_positions, match_provisioners, present_job
from coder.coderd.services.provisioning.new_jobs import NewJob, enqueue_job
from coder.coderd.services.templates.versions.loaded_versions import LoadedVersion, load_version
from coder.coderd.services.templates.versions.version_contents import show_resources
from coder.coderd.store.provisioning import system_jobs
from coder.coderd.store.provisioning.jobs import JobRow
from coder.domain.access.policy import Class, Subject, Target
from coder.domain.provisioning.queue import NO_POSITION

if TYPE_CHECKING:
    from datetime import datetime

    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx


async def start_dry_run(
    ctx: Context, subject: Subject, version_id: UUID, body: CreateTemplateVersionDryRunRequest
) -> ProvisionerJob:
    """Queue a dry run. Raises Precondition while the version's own import runs."""
    loaded = await load_version(ctx, subject, version_id)
    own = Class("workspace", owner_id=subject.user_id, organization_id=loaded.version.organization_id)
    if not may(subject, "create", own):
        raise NotFound  # users without permission to create workspaces have no dry runs
    if loaded.job.completed_at is None:
        raise Precondition("Template version import job hasn't completed!")
    new = NewJob(
        organization_id=loaded.version.organization_id,
        initiator_id=subject.user_id,
        provisioner=loaded.job.provisioner,
        file_id=loaded.job.file_id,
        type="template_version_dry_run",
        input={
            "template_version_id": str(loaded.version.id),
            "workspace_name": body.workspace_name,
            "rich_parameter_values": [
                {"name": item.name, "value": item.value} for item in body.rich_parameter_values or ()
            ],
            "user_variable_values": _variable_values(subject, loaded, body),
        },
        # The import fixed the tags; the same daemons take the dry run.
        tags=loaded.job.tags,
    )
    job = await ctx.db.run(enqueue_job, new, ctx.clock.now())
    return present_job(job)


def _variable_values(
    subject: Subject, loaded: LoadedVersion, body: CreateTemplateVersionDryRunRequest
) -> list[dict[str, str]]:
    """Return the template variables that the dry run overrides.

    Only a caller who may create versions of the template overrides variables: a variable may be the address that the
    template's credentials are sent to, and a plan reads data sources. The values of other callers are ignored, as
    upstream ignores those of every caller.
    """
    if not may(subject, "create", loaded.resource):
        return []
    return [{"name": item.name, "value": item.value} for item in body.user_variable_values or ()]


async def load_dry_run(
    ctx: Context, subject: Subject, version_id: UUID, job_id: UUID, *, previews: bool = False
) -> JobRow:
    """Load a dry run. Raises NotFound, Forbidden (another user's).

    `previews` admits previews of updates. They plan with the state of a workspace that may be another user's, so that
    their logs and resources are not shown as those of a dry run.
    """
    await load_version(ctx, subject, version_id)
    job = await ctx.db.read(system_jobs.get_job, job_id)
    if job is None or (job.previewed_workspace is not None and not previews):
        raise NotFound
    if job.type != "template_version_dry_run" or job.version_id != version_id:
        raise NotFound
    if not may(subject, "read", _as_workspace(job)):
        raise Forbidden
    return job


def _as_workspace(job: JobRow) -> Target:
    """Return the resource of a dry run, which is as private as a workspace of its initiator."""
    return Class("workspace", owner_id=job.initiator_id, organization_id=job.organization_id)


async def get_dry_run(ctx: Context, subject: Subject, version_id: UUID, job_id: UUID) -> ProvisionerJob:
    job = await load_dry_run(ctx, subject, version_id, job_id)
    strict = ctx.config.provisioner_strict_tags
    return await ctx.db.read(_present, job, ctx.clock.now(), strict)


async def _present(tx: Tx, job: JobRow, now: datetime, strict: bool) -> ProvisionerJob:
    places = await load_queue_positions(tx, [job], now, strict=strict)
    return present_job(job, places.get(job.id, NO_POSITION))


async def get_resources(ctx: Context, subject: Subject, version_id: UUID, job_id: UUID) -> list[WorkspaceResource]:
    """Return the resources that a dry run planned. Raises Invalid before its end."""
    job = await load_dry_run(ctx, subject, version_id, job_id)
    return await show_resources(ctx, job, reveals=may(subject, "ssh", _as_workspace(job)))


async def get_matched(ctx: Context, subject: Subject, version_id: UUID, job_id: UUID) -> MatchedProvisioners:
    job = await load_dry_run(ctx, subject, version_id, job_id)
    return await ctx.db.read(_match, job, ctx.clock.now(), ctx.config.provisioner_strict_tags)


async def _match(tx: Tx, job: JobRow, now: datetime, strict: bool) -> MatchedProvisioners:
    return await match_provisioners(tx, job, now, strict=strict)


async def cancel_dry_run(ctx: Context, subject: Subject, version_id: UUID, job_id: UUID) -> None:
    """Cancel a dry run. Raises Invalid when it already ended or was canceled, NotFound without permission."""
    job = await load_dry_run(ctx, subject, version_id, job_id, previews=True)
    if not may(subject, "update", _as_workspace(job)):
        raise NotFound
    await ctx.db.run(cancel_job, job.id, ctx.clock.now())
