"""Ends of provisioner jobs: completed, failed, abandoned, lost with the daemon, canceled with its right.

The effect on the build or template version is the job's handler's (`job_handlers.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import Invalid
from coder.base.log import get_logger
from coder.coderd.services.access.token_masking import mask_build_tokens
from coder.coderd.services.provisioning.connected_daemon import Worker
from coder.coderd.services.provisioning.daemon_calls import find_zero_byte, require_own_job
from coder.coderd.services.provisioning.job_handlers import AfterCommit, JobHandlers, nothing_follows
from coder.coderd.services.provisioning.job_logs import append_logs
from coder.coderd.services.provisioning.jobs import notify_job_change
from coder.coderd.services.provisioning.resources import BadResultError
from coder.coderd.store.engine.errors import DBAPIError, is_value_refused
from coder.coderd.store.engine.turns import Turns
from coder.coderd.store.provisioning import jobs as job_store
from coder.coderd.store.provisioning import system_jobs
from coder.coderd.store.provisioning.jobs import JobRow
from coder.coderd.store.workspaces import builds as build_store
from coder.coderd.store.workspaces import system_builds
from coder.domain.provisioning.jobs import (
    LOST_AFTER,
    LOST_ERROR,
    REVOKED_ERROR,
    REVOKED_LINE,
    JobLogLine,
    clean_text,
    error_code,
    reap_error,
    shortened_error,
)
from coder.rpc.proto import provisionerd_pb2

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

_GIVEN_UP = frozenset({LOST_ERROR, reap_error("hung")})
"""Errors of jobs that ended without a report of their daemon."""
_log = get_logger("jobs")


async def fail_job(ctx: Context, worker: Worker, request: provisionerd_pb2.FailedJob) -> None:
    """End a job that its daemon reports as failed."""
    try:
        follow_up = await ctx.db.run(_fail, ctx.services.api.job_handlers, worker, request, ctx.clock.now())
    except Invalid:
        await ctx.db.run(_keep_late_state, worker, request.job_id, bytes(request.workspace_build.state))
        raise
    follow_up()


async def _fail(
    tx: Tx, handlers: JobHandlers, worker: Worker, request: provisionerd_pb2.FailedJob, now: datetime
) -> AfterCommit:
    job = await require_own_job(tx, worker, request.job_id)
    code = clean_text(request.error_code) or error_code(request.error)
    # A canceled job may end without an error: then it is `canceled`, not `failed`.
    fallback = "" if job.canceled_at is not None else "the provisioner failed without a reason"
    if job.logs_overflowed and request.error:
        # The log was truncated, but its last line still has the error.
        last = JobLogLine(now, "provisioner_daemon", "error", "Cleaning Up", shortened_error(request.error))
        await job_store.insert_logs(tx, job.id, [last])
    await end_with_error(tx, job, request.error or fallback, code, now)
    await handlers.of(job).fail(tx, job, request, now)
    return await handlers.of(job).ended(tx, job.id, worker)


async def complete_job(ctx: Context, worker: Worker, request: provisionerd_pb2.CompletedJob) -> None:
    """End a job that its daemon completed. A result that cannot be stored fails the job and keeps its state."""
    try:
        follow_up = await ctx.db.run(_complete, ctx.services.api.job_handlers, worker, request, ctx.clock.now())
    except Invalid:
        await ctx.db.run(_keep_late_state, worker, request.job_id, bytes(request.workspace_build.state))
        raise
    except (BadResultError, DBAPIError) as error:
        if isinstance(error, DBAPIError) and not is_value_refused(error):
            raise
        reason = error.message if isinstance(error, BadResultError) else "a value of the result cannot be stored"
        failed = provisionerd_pb2.FailedJob(job_id=request.job_id, error=f"complete job: {reason}")
        if request.WhichOneof("type") == "workspace_build":
            failed.workspace_build.state = request.workspace_build.state
            failed.workspace_build.timings.extend(request.workspace_build.timings)
        await fail_job(ctx, worker, failed)
        return
    follow_up()


async def _complete(
    tx: Tx, handlers: JobHandlers, worker: Worker, request: provisionerd_pb2.CompletedJob, now: datetime
) -> AfterCommit:
    job = await require_own_job(tx, worker, request.job_id)
    handler = handlers.of(job)
    if request.WhichOneof("type") != handler.result:
        raise Invalid(f"the job is a {job.type}, the result is not")
    if path := await find_zero_byte(request, Turns()):
        raise BadResultError(f"{path} contains a zero byte")
    error = await handler.complete(tx, worker, job, request, now)
    await job_store.update_job(tx, job.id, completed_at=now, updated_at=now, error=shortened_error(error))
    await notify_job_change(tx, job)
    return await handler.ended(tx, job.id, worker, request)


async def _keep_late_state(tx: Tx, worker: Worker, job_id: str, state: bytes) -> None:
    """Store the state of a build whose daemon was given up and reports after all: it stood still, and its Terraform
    created resources meanwhile. Not after a newer build, which began without it."""
    try:
        job = await system_jobs.get_job(tx, UUID(job_id), lock=True)
    except ValueError:
        return
    if not state or job is None or job.worker_id != worker.id or job.error not in _GIVEN_UP:
        return
    build = await system_builds.get_build_by_job(tx, job.id)
    latest = await system_builds.get_latest_build(tx, build.workspace_id) if build is not None else None
    if build is not None and latest is not None and latest.id == build.id:
        await build_store.set_state(tx, build.id, state)
        _log.warn("the state of a job that was given up has arrived", job=job.id, daemon=worker.name)


async def end_with_error(tx: Tx, job: JobRow, error: str, code: str, now: datetime) -> None:
    """Mark a locked job as failed; the caller handles the effect on its build."""
    (error,) = await mask_build_tokens(tx, [error])
    await job_store.update_job(
        tx,
        job.id,
        started_at=job.started_at or now,
        completed_at=now,
        updated_at=now,
        error=shortened_error(error),
        error_code=code,
    )
    await notify_job_change(tx, job)


async def abandon_job(ctx: Context, job_id: UUID, error: str) -> None:
    """Fail a job that its daemon never received or cannot finish, unless the job already ended."""
    follow_up = await ctx.db.run(_abandon, ctx.services.api.job_handlers, job_id, error, ctx.clock.now())
    follow_up()


async def _abandon(tx: Tx, handlers: JobHandlers, job_id: UUID, error: str, now: datetime) -> AfterCommit:
    job = await system_jobs.get_job(tx, job_id, lock=True)
    if job is None or job.completed_at is not None:
        return nothing_follows
    await end_with_error(tx, job, error, error_code(error), now)
    await handlers.of(job).fail(tx, job, None, now)
    return await handlers.of(job).ended(tx, job.id)


async def end_lost_jobs(ctx: Context, worker: Worker, current: Callable[[], UUID | None] = lambda: None) -> None:
    """Fail jobs of a daemon that it stopped reporting on, except its `current` one."""
    now = ctx.clock.now()
    for job in await ctx.db.read(job_store.list_worker_jobs, worker.id):
        if now - job.updated_at >= LOST_AFTER and job.id != current():
            await abandon_job(ctx, job.id, LOST_ERROR)


async def cancel_revoked(ctx: Context, worker: Worker) -> bool:
    """Cancel the jobs of a daemon that lost its permission, with a log line; return whether it has a job."""
    return await ctx.db.run(_cancel_revoked, worker.id, ctx.clock.now())


async def _cancel_revoked(tx: Tx, worker_id: UUID, now: datetime) -> bool:
    jobs = await job_store.list_worker_jobs(tx, worker_id)
    for candidate in jobs:
        job = await system_jobs.get_job(tx, candidate.id, lock=True)
        if job is None or job.completed_at is not None:
            continue
        await append_logs(tx, job, [JobLogLine(now, "provisioner_daemon", "error", "", REVOKED_LINE)])
        if job.canceled_at is None:
            await job_store.update_job(tx, job.id, canceled_at=now)
        await notify_job_change(tx, job)
    return bool(jobs)


async def end_revoked(ctx: Context, worker: Worker) -> None:
    """Fail jobs that a daemon without permission did not end in time."""
    for job in await ctx.db.read(job_store.list_worker_jobs, worker.id):
        await abandon_job(ctx, job.id, REVOKED_ERROR)
