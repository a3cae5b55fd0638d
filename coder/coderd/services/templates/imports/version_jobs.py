"""Handlers of template versions' jobs: imports and dry runs.

Messages of daemons are `import_messages.py`, results `import_results.py`.
"""

from __future__ import annotations

import io
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from coder.coderd.services.provisioning.connected_daemon import Worker
from coder.coderd.services.provisioning.job_handlers import AfterCommit, JobUpdate, nothing_follows
from coder.coderd.services.provisioning.resources import insert_resources
from coder.coderd.services.templates.imports import import_messages, import_results
from coder.coderd.store.provisioning.jobs import JobRow
from coder.rpc.proto import provisionerd_pb2

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.services.templates.imports.module_files import ModuleFiles
    from coder.coderd.store.engine.database import Tx


class ImportJobs:
    """The `JobHandler` of imports."""

    result = "template_import"

    def __init__(self, ctx: Context, files: ModuleFiles) -> None:
        self._ctx = ctx
        self._files = files

    async def describe(self, job: JobRow, acquired: provisionerd_pb2.AcquiredJob) -> None:
        described = await self._ctx.db.read(import_messages.describe_import, job, self._ctx.access_url)
        acquired.template_import.CopyFrom(described)

    async def update(self, tx: Tx, job: JobRow, request: provisionerd_pb2.UpdateJobRequest, now: datetime) -> JobUpdate:
        return await import_messages.record_parse(tx, job, request, now)

    async def complete(
        self, tx: Tx, worker: Worker, job: JobRow, request: provisionerd_pb2.CompletedJob, now: datetime
    ) -> str:
        completed = request.template_import
        inline = io.BytesIO(completed.module_files) if completed.module_files else None
        modules = inline or self._files.get(worker, completed.module_files_hash)
        configured = frozenset(provider.id for provider in self._ctx.config.external_auth_providers)
        return await import_results.complete_import(tx, job, completed, modules, now, configured)

    async def fail(self, tx: Tx, job: JobRow, request: provisionerd_pb2.FailedJob | None, now: datetime) -> None:
        pass  # the version shows its job's error, and keeps the results of parsing

    async def ended(
        self,
        tx: Tx,
        job_id: UUID,
        worker: Worker | None = None,
        completed: provisionerd_pb2.CompletedJob | None = None,
    ) -> AfterCommit:
        if worker is None:
            return nothing_follows
        return partial(self._files.forget, worker)


class DryRunJobs:
    """The `JobHandler` of dry runs, which store only resources."""

    result = "template_dry_run"

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx

    async def describe(self, job: JobRow, acquired: provisionerd_pb2.AcquiredJob) -> None:
        described = await self._ctx.db.read(import_messages.describe_dry_run, job, self._ctx.access_url)
        acquired.template_dry_run.CopyFrom(described)

    async def update(self, tx: Tx, job: JobRow, request: provisionerd_pb2.UpdateJobRequest, now: datetime) -> JobUpdate:
        return JobUpdate()

    async def complete(
        self, tx: Tx, worker: Worker, job: JobRow, request: provisionerd_pb2.CompletedJob, now: datetime
    ) -> str:
        await insert_resources(tx, job.id, "start", request.template_dry_run.resources, now)
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
        return nothing_follows  # the initiator follows the job
