"""Handler of workspace build jobs, for the job queue.

`build_description.py` describes a build to its daemon, `build_results.py` stores the result, `build_events.py` records
the events that follow.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from coder.coderd.services.provisioning.connected_daemon import Worker
from coder.coderd.services.provisioning.job_handlers import AfterCommit, JobUpdate
from coder.coderd.services.workspaces.builds import build_description, build_events, build_results
from coder.coderd.store.provisioning.jobs import JobRow
from coder.rpc.proto import provisionerd_pb2

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx


class BuildJobs:
    """`JobHandler` of workspace builds."""

    result = "workspace_build"

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx

    async def describe(self, job: JobRow, acquired: provisionerd_pb2.AcquiredJob) -> None:
        acquired.workspace_build.CopyFrom(await build_description.describe_build(self._ctx, job))

    async def update(self, tx: Tx, job: JobRow, request: provisionerd_pb2.UpdateJobRequest, now: datetime) -> JobUpdate:
        if request.workspace_state:
            await build_results.keep_state(tx, job, request.workspace_state)
        return JobUpdate()

    async def complete(
        self, tx: Tx, worker: Worker, job: JobRow, request: provisionerd_pb2.CompletedJob, now: datetime
    ) -> str:
        quiet_hours = self._ctx.config.default_quiet_hours_schedule
        await build_results.complete_build(tx, job, request.workspace_build, now, quiet_hours)
        await build_results.insert_timings(tx, job, request.workspace_build.timings)
        return ""

    async def fail(self, tx: Tx, job: JobRow, request: provisionerd_pb2.FailedJob | None, now: datetime) -> None:
        await build_results.fail_build(tx, job, request.workspace_build if request is not None else None, now)
        if request is not None:
            await build_results.insert_timings(tx, job, request.workspace_build.timings)

    async def ended(
        self,
        tx: Tx,
        job_id: UUID,
        worker: Worker | None = None,
        completed: provisionerd_pb2.CompletedJob | None = None,
    ) -> AfterCommit:
        replaced = completed.workspace_build.resource_replacements if completed is not None else ()
        return await build_events.record_build_end(
            self._ctx, tx, job_id, {replacement.resource: list(replacement.paths) for replacement in replaced}
        )
