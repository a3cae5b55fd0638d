"""Handler of previews' jobs: a dry run with the state and the values of a workspace, and without any token or key.

A daemon of upstream ignores the state and reports no changes; then they are not known.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import Invalid
from coder.base.json_types import Json, as_list, as_object, as_text
from coder.coderd.services.access.token_masking import mask_build_tokens
from coder.coderd.services.provisioning.connected_daemon import Worker
from coder.coderd.services.provisioning.job_handlers import AfterCommit, JobUpdate, nothing_follows
from coder.coderd.services.provisioning.jobs import cancel_job
from coder.coderd.services.provisioning.new_jobs import wake_daemons
from coder.coderd.services.templates.imports.import_messages import variable_values
from coder.coderd.services.workspaces.builds.build_metadata import build_metadata
from coder.coderd.services.workspaces.previews.preview_input import has_expired, is_hung, leader_of, stored_changes
from coder.coderd.store.provisioning import jobs as job_store
from coder.coderd.store.provisioning import previews as preview_store
from coder.coderd.store.provisioning import system_jobs
from coder.coderd.store.provisioning.jobs import JobRow
from coder.coderd.store.workspaces import build_owner as owner_store
from coder.coderd.store.workspaces import builds as build_store
from coder.coderd.store.workspaces import system_builds, system_workspaces
from coder.rpc.proto import provisioner_pb2, provisionerd_pb2

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

_NOT_WAITED_FOR = "the page that asked for the preview was closed"


class PreviewJobs:
    """`JobHandler` of previews. They change nothing: the result is kept in the job itself."""

    result = "template_dry_run"

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx

    async def describe(self, job: JobRow, acquired: provisionerd_pb2.AcquiredJob) -> None:
        now = self._ctx.clock.now()
        acquired.template_dry_run.CopyFrom(await self._ctx.db.read(describe_preview, job, self._ctx.access_url, now))

    async def update(self, tx: Tx, job: JobRow, request: provisionerd_pb2.UpdateJobRequest, now: datetime) -> JobUpdate:
        """Cancel the job when nothing waits for it, or it hangs; the daemon learns it with the next heartbeat."""
        if job.canceled_at is None and (is_hung(job, now) or await _is_abandoned(tx, job, now)):
            await cancel_job(tx, job.id, now)
        return JobUpdate()

    async def complete(
        self, tx: Tx, worker: Worker, job: JobRow, request: provisionerd_pb2.CompletedJob, now: datetime
    ) -> str:
        result = request.template_dry_run
        if result.HasField("planned"):
            (masked,) = await mask_build_tokens(tx, [json.dumps(stored_changes(result.planned))])
            await job_store.update_job(tx, job.id, input={**job.input, "planned": json.loads(masked)})
        return ""

    async def fail(self, tx: Tx, job: JobRow, request: provisionerd_pb2.FailedJob | None, now: datetime) -> None:
        pass  # the job has the error

    async def ended(
        self,
        tx: Tx,
        job_id: UUID,
        worker: Worker | None = None,
        completed: provisionerd_pb2.CompletedJob | None = None,
    ) -> AfterCommit:
        await _wake_for_next(tx)
        return nothing_follows


async def _wake_for_next(tx: Tx) -> None:
    """Wake the daemons of the pending previews: one of the slots is free."""
    for organization_id, provisioner, tags in await preview_store.list_waiting(tx):
        await wake_daemons(tx, organization_id, provisioner, tags)


async def _is_abandoned(tx: Tx, job: JobRow, now: datetime) -> bool:
    leader_id = leader_of(job)
    leader = job if leader_id == job.id else await system_jobs.get_job(tx, leader_id)
    return leader is None or has_expired(leader, now)


async def describe_preview(
    tx: Tx, job: JobRow, access_url: str, now: datetime
) -> provisionerd_pb2.AcquiredJob.TemplateDryRun:
    """Return a preview as a daemon receives it. Raises Invalid when nothing waits for it, or the workspace is gone."""
    if await _is_abandoned(tx, job, now):
        raise Invalid(_NOT_WAITED_FOR)
    workspace = await system_workspaces.get_workspace(tx, job.previewed_workspace) if job.previewed_workspace else None
    last = await system_builds.get_latest_build(tx, workspace.id) if workspace is not None else None
    if workspace is None or workspace.deleted or last is None or job.version_id is None:
        raise Invalid("get workspace: not found")
    owner = await owner_store.get_owner_facts(tx, workspace.owner_id, workspace.organization_id)
    if owner is None:
        raise Invalid("get owner: not found")
    planned_build = replace(last, transition="start", template_version_id=job.version_id)
    metadata = await build_metadata(tx, planned_build, workspace, replace(owner, ssh_private_key=""), access_url)
    metadata.workspace_build_id = ""  # there is no such build
    metadata.template_version_modules_file = ""  # downloads are for builds
    return provisionerd_pb2.AcquiredJob.TemplateDryRun(
        rich_parameter_values=list(map(_value, as_list(job.input.get("rich_parameter_values")))),
        variable_values=await variable_values(tx, job.version_id),
        metadata=metadata,
        state=await system_builds.get_state(tx, last.id),
        previous_parameter_values=[
            provisioner_pb2.RichParameterValue(name=name, value=value)
            for name, value in (await build_store.list_parameters(tx, last.id)).items()
        ],
        preview=True,
    )


def _value(item: Json) -> provisioner_pb2.RichParameterValue:
    stored = as_object(item)
    return provisioner_pb2.RichParameterValue(name=as_text(stored.get("name")), value=as_text(stored.get("value")))
