"""What a provisioner daemon may do with a job: receive it, report on it, end it.

Reference: docs/protocol/provisioners.md#calls. Every function takes the `Worker` that asks; a job answers only to
the worker that holds it. What the work is and what its end means is the job's handler's (`job_handlers.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from google.protobuf.message import Message

from coder.api.base.refusals import Invalid
from coder.coderd.services.people import quotas
from coder.coderd.services.provisioning.connected_daemon import Worker
from coder.coderd.services.provisioning.job_handlers import JobHandler, JobHandlers, handlers_of
from coder.coderd.services.provisioning.job_logs import append_logs
from coder.coderd.services.provisioning.jobs import tell
from coder.coderd.services.provisioning.resources import BadResultError
from coder.coderd.store.engine.errors import DBAPIError, refuses_the_value
from coder.coderd.store.engine.turns import Turns
from coder.coderd.store.people import users as user_store
from coder.coderd.store.provisioning import jobs as job_store
from coder.coderd.store.provisioning.jobs import JobRow as JobRow
from coder.coderd.store.templates import files as file_store
from coder.domain.provisioning.jobs import (
    LOST_AFTER,
    LOST_ERROR,
    REVOKED_ERROR,
    REVOKED_LINE,
    JobLogLine,
    LogLevel,
    clean_text,
    error_code,
    shortened_error,
)
from coder.rpc.proto import provisionerd_pb2

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

MAX_MESSAGE = 4 << 20
"""Bytes of one message of the protocol (dRPC's limit upstream, which genuine daemons keep)."""

_LEVELS: tuple[LogLevel, ...] = ("trace", "debug", "info", "warn", "error")


async def describe_job(ctx: Context, job: JobRow) -> provisionerd_pb2.AcquiredJob:
    """The job as a daemon gets it. Raises Invalid when it cannot be handed out."""
    acquired = await ctx.db.read(_describe, job)
    await handlers_of(ctx).of(job).describe(job, acquired)
    size = acquired.ByteSize()
    if size > MAX_MESSAGE:
        raise Invalid(f"payload was too big: {size} > {MAX_MESSAGE}")
    return acquired


async def _describe(tx: Tx, job: JobRow) -> provisionerd_pb2.AcquiredJob:
    size = await file_store.get_size(tx, job.file_id)
    if size is not None and size > MAX_MESSAGE:
        raise Invalid(f"payload was too big: {size} > {MAX_MESSAGE}")
    file = await file_store.get_file(tx, job.file_id)
    initiator = await user_store.get_user(tx, job.initiator_id)
    if file is None:
        raise Invalid("get template source archive: the file is gone")
    return provisionerd_pb2.AcquiredJob(
        job_id=str(job.id),
        created_at=_unix_ms(job.created_at),
        provisioner=job.provisioner,
        user_name=initiator.username if initiator else "",
        template_source_archive=file.data,
    )


async def update_job(
    ctx: Context, worker: Worker, request: provisionerd_pb2.UpdateJobRequest
) -> provisionerd_pb2.UpdateJobResponse:
    """A heartbeat with what is new: log lines, and what the job's handler takes of it."""
    update = await ctx.db.run(_update, handlers_of(ctx), worker, request, ctx.clock.now())
    if update.missing:
        # The variables are stored all the same: a page shows which values are asked for.
        raise Invalid(f"required template variables need values: {', '.join(update.missing)}")
    return update.response


@dataclass(frozen=True, slots=True)
class _Update:
    response: provisionerd_pb2.UpdateJobResponse
    missing: list[str]


async def _update(
    tx: Tx, handlers: JobHandlers, worker: Worker, request: provisionerd_pb2.UpdateJobRequest, now: datetime
) -> _Update:
    job = await _own_job(tx, worker, request.job_id)
    if place := await find_zero_byte(request, Turns()):
        raise Invalid(f"{place} contains a zero byte")
    await job_store.update_job(tx, job.id, updated_at=now)
    await append_logs(tx, job, (_log_line(log, now) for log in request.logs))
    response = provisionerd_pb2.UpdateJobResponse(canceled=job.canceled_at is not None)
    found = await handlers.of(job).update(tx, job, request, now)
    response.variable_values.extend(found.values)
    return _Update(response, found.missing)


async def commit_quota(
    ctx: Context, worker: Worker, request: provisionerd_pb2.CommitQuotaRequest
) -> provisionerd_pb2.CommitQuotaResponse:
    """Whether the owner may afford the build; if so, its cost counts from now on."""
    return await ctx.db.run(_commit_quota, worker, request)


async def _commit_quota(
    tx: Tx, worker: Worker, request: provisionerd_pb2.CommitQuotaRequest
) -> provisionerd_pb2.CommitQuotaResponse:
    job = await _own_job(tx, worker, request.job_id)
    found = await quotas.commit(tx, job.id, request.daily_cost)
    return provisionerd_pb2.CommitQuotaResponse(ok=found.granted, credits_consumed=found.consumed, budget=found.budget)


async def fail_job(ctx: Context, worker: Worker, request: provisionerd_pb2.FailedJob) -> None:
    """The work failed; that is the job's end."""
    job = await ctx.db.run(_fail, handlers_of(ctx), worker, request, ctx.clock.now())
    await handlers_of(ctx).of(job).ended(job.id, worker)


async def _fail(
    tx: Tx, handlers: JobHandlers, worker: Worker, request: provisionerd_pb2.FailedJob, now: datetime
) -> JobRow:
    job = await _own_job(tx, worker, request.job_id)
    code = clean_text(request.error_code) or error_code(request.error)
    # A canceled job may end without an error: then it is `canceled`, not `failed`.
    fallback = "" if job.canceled_at is not None else "the provisioner failed without a reason"
    if job.logs_overflowed and request.error:
        # The log was cut long ago; why the job failed is said at its end all the same.
        last = JobLogLine(now, "provisioner_daemon", "error", "Cleaning Up", shortened_error(request.error))
        await job_store.insert_logs(tx, job.id, [last])
    await end_with_error(tx, job, request.error or fallback, code, now)
    await handlers.of(job).fail(tx, job, request, now)
    return job


async def complete_job(ctx: Context, worker: Worker, request: provisionerd_pb2.CompletedJob) -> None:
    """The work is done; that is the job's end. A result that cannot be stored fails the job, with its state kept."""
    try:
        handler = await ctx.db.run(_complete, handlers_of(ctx), worker, request, ctx.clock.now())
    except (BadResultError, DBAPIError) as error:
        if isinstance(error, DBAPIError) and not refuses_the_value(error):
            raise
        reason = error.message if isinstance(error, BadResultError) else "a value of the result cannot be stored"
        failed = provisionerd_pb2.FailedJob(job_id=request.job_id, error=f"complete job: {reason}")
        if request.WhichOneof("type") == "workspace_build":
            failed.workspace_build.state = request.workspace_build.state
            failed.workspace_build.timings.extend(request.workspace_build.timings)
        await fail_job(ctx, worker, failed)
        return
    await handler.ended(UUID(request.job_id), worker, request)


async def _complete(
    tx: Tx, handlers: JobHandlers, worker: Worker, request: provisionerd_pb2.CompletedJob, now: datetime
) -> JobHandler:
    job = await _own_job(tx, worker, request.job_id)
    handler = handlers.of(job)
    if request.WhichOneof("type") != handler.result:
        raise Invalid(f"the job is a {job.type}, the result is not")
    if place := await find_zero_byte(request, Turns()):
        raise BadResultError(f"{place} contains a zero byte")
    error = await handler.complete(tx, worker, job, request, now)
    await job_store.update_job(tx, job.id, completed_at=now, updated_at=now, error=shortened_error(error))
    await tell(tx, job)
    return handler


async def end_with_error(tx: Tx, job: JobRow, error: str, code: str, now: datetime) -> None:
    """Marks a locked job as failed; what that means for its build is the caller's part."""
    await job_store.update_job(
        tx,
        job.id,
        started_at=job.started_at or now,
        completed_at=now,
        updated_at=now,
        error=shortened_error(error),
        error_code=code,
    )
    await tell(tx, job)


async def abandon_job(ctx: Context, job_id: UUID, error: str) -> None:
    """Fails a job its daemon never got or cannot finish; nothing when it ended already."""
    handlers = handlers_of(ctx)
    job = await ctx.db.run(_abandon, handlers, job_id, error, ctx.clock.now())
    if job is not None:
        await handlers.of(job).ended(job.id)


async def _abandon(tx: Tx, handlers: JobHandlers, job_id: UUID, error: str, now: datetime) -> JobRow | None:
    """The job, though it had ended; None when there is none."""
    job = await job_store.get_job(tx, job_id, lock=True)
    if job is None or job.completed_at is not None:
        return job
    await end_with_error(tx, job, error, error_code(error), now)
    await handlers.of(job).fail(tx, job, None, now)
    return job


async def end_lost_jobs(ctx: Context, worker: Worker) -> None:
    """Fails jobs that an idle daemon still holds and was silent about."""
    now = ctx.clock.now()
    for job in await ctx.db.read(job_store.list_worker_jobs, worker.id):
        if now - job.updated_at >= LOST_AFTER:
            await abandon_job(ctx, job.id, LOST_ERROR)


async def cancel_revoked(ctx: Context, worker: Worker) -> bool:
    """Asks a daemon that lost its right to stop, and says so in the log; whether it holds a job."""
    return await ctx.db.run(_cancel_revoked, worker.id, ctx.clock.now())


async def _cancel_revoked(tx: Tx, worker_id: UUID, now: datetime) -> bool:
    jobs = await job_store.list_worker_jobs(tx, worker_id)
    for found in jobs:
        job = await job_store.get_job(tx, found.id, lock=True)
        if job is None or job.completed_at is not None:
            continue
        await append_logs(tx, job, [JobLogLine(now, "provisioner_daemon", "error", "", REVOKED_LINE)])
        if job.canceled_at is None:
            await job_store.update_job(tx, job.id, canceled_at=now)
        await tell(tx, job)
    return bool(jobs)


async def end_revoked(ctx: Context, worker: Worker) -> None:
    """Fails what a daemon that lost its right did not end in time."""
    for job in await ctx.db.read(job_store.list_worker_jobs, worker.id):
        await abandon_job(ctx, job.id, REVOKED_ERROR)


_CLEANED = frozenset({"logs", "description", "timings"})
"""Parts that lose their zero bytes on the way to the database."""


async def find_zero_byte(message: Message, turns: Turns) -> str:
    """Where a text has a zero byte, which Postgres cannot store, as a dotted path; empty when none has."""
    await turns.rest()
    for field, value in message.ListFields():
        if field.name in _CLEANED:
            continue
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            items: Iterable[Any] = [*value.keys(), *value.values()]
        else:
            items = value if field.is_repeated else (value,)
        for item in items:
            if isinstance(item, str) and "\x00" in item:
                return field.name
            below = await find_zero_byte(item, turns) if isinstance(item, Message) else ""
            if below:
                return f"{field.name}.{below}"
    return ""


async def _own_job(tx: Tx, worker: Worker, job_id: str) -> JobRow:
    """The locked job. Raises Invalid with the protocol's words when the worker may not touch it."""
    try:
        wanted = UUID(job_id)
    except ValueError as error:
        raise Invalid("parse job id: not a UUID") from error
    job = await job_store.get_job(tx, wanted, lock=True)
    # Another's job, or one nobody has yet, is answered like one that does not exist: its number tells nothing.
    if job is None or job.worker_id != worker.id:
        raise Invalid("get job: no such job")
    if job.completed_at is not None:
        raise Invalid("job already completed")
    return job


def _log_line(log: provisionerd_pb2.Log, now: datetime) -> JobLogLine:
    return JobLogLine(
        created_at=_from_unix_ms(log.created_at, now),
        source="provisioner" if log.source == provisionerd_pb2.PROVISIONER else "provisioner_daemon",
        level=_level(log.level),
        stage=clean_text(log.stage),
        output=clean_text(log.output),
    )


def _level(level: int) -> LogLevel:
    return _LEVELS[level] if 0 <= level < len(_LEVELS) else "info"


def _unix_ms(at: datetime) -> int:
    return int(at.timestamp() * 1000)


def _from_unix_ms(value: int, now: datetime) -> datetime:
    """A daemon's clock may say anything; what no calendar holds becomes `now`."""
    try:
        return datetime.fromtimestamp(value / 1000, UTC) if value > 0 else now
    except (OverflowError, ValueError, OSError):
        return now
