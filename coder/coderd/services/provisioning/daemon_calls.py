"""Calls of a provisioner daemon about a job it holds: reports of progress, and the quota of a build.

Reference: docs/protocol/provisioners.md#calls. Every function takes the calling `Worker`; a job answers only to the
worker that holds it. A job's content is `acquired_jobs.py`, its end `job_endings.py`, its kind `job_handlers.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from uuid import UUID

from google.protobuf.message import Message

from coder.api.base.refusals import Invalid
from coder.coderd.services.foundation.outages import run_once
from coder.coderd.services.people import quotas
from coder.coderd.services.provisioning.connected_daemon import Worker
from coder.coderd.services.provisioning.job_handlers import JobHandlers
from coder.coderd.services.provisioning.job_logs import append_logs
from coder.coderd.store.engine.turns import Turns
from coder.coderd.store.provisioning import jobs as job_store
from coder.coderd.store.provisioning import system_jobs
from coder.coderd.store.provisioning.jobs import JobRow
from coder.domain.provisioning.jobs import (
    JobLogLine,
    LogLevel,
    clean_text,
)
from coder.rpc.proto import provisionerd_pb2

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx


_LEVELS: tuple[LogLevel, ...] = ("trace", "debug", "info", "warn", "error")


async def update_job(
    ctx: Context, worker: Worker, request: provisionerd_pb2.UpdateJobRequest
) -> provisionerd_pb2.UpdateJobResponse:
    """Store a heartbeat with its log lines and the parts for the job's handler."""
    # A daemon repeats it after an outage: its lines would be stored twice.
    update = await run_once(ctx.db, _update, ctx.services.api.job_handlers, worker, request, ctx.clock.now())
    if update.missing:
        # The variables are stored even so: a page shows which values are required.
        raise Invalid(f"required template variables need values: {', '.join(update.missing)}")
    return update.response


@dataclass(frozen=True, slots=True)
class _Update:
    response: provisionerd_pb2.UpdateJobResponse
    missing: list[str]


async def _update(
    tx: Tx, handlers: JobHandlers, worker: Worker, request: provisionerd_pb2.UpdateJobRequest, now: datetime
) -> _Update:
    job = await require_own_job(tx, worker, request.job_id)
    if path := await find_zero_byte(request, Turns()):
        raise Invalid(f"{path} contains a zero byte")
    await job_store.update_job(tx, job.id, updated_at=now)
    await append_logs(tx, job, (_log_line(log, now) for log in request.logs))
    response = provisionerd_pb2.UpdateJobResponse(canceled=job.canceled_at is not None)
    result = await handlers.of(job).update(tx, job, request, now)
    response.variable_values.extend(result.values)
    return _Update(response, result.missing)


async def commit_quota(
    ctx: Context, worker: Worker, request: provisionerd_pb2.CommitQuotaRequest
) -> provisionerd_pb2.CommitQuotaResponse:
    """Return whether the build is within its owner's quota; if so, its cost counts from now on."""
    return await ctx.db.run(_commit_quota, worker, request)


async def _commit_quota(
    tx: Tx, worker: Worker, request: provisionerd_pb2.CommitQuotaRequest
) -> provisionerd_pb2.CommitQuotaResponse:
    job = await require_own_job(tx, worker, request.job_id)
    quota = await quotas.commit(tx, job.id, request.daily_cost)
    return provisionerd_pb2.CommitQuotaResponse(ok=quota.granted, credits_consumed=quota.consumed, budget=quota.budget)


_CLEANED = frozenset({"logs", "description", "timings"})
"""Fields from which zero bytes are removed before they are stored."""


async def find_zero_byte(message: Message, turns: Turns) -> str:
    """Return the dotted path of a text with a zero byte, which Postgres cannot store; empty when there is none."""
    await turns.rest()
    for field, value in message.ListFields():
        if field.name in _CLEANED:
            continue
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            items: Iterable[object] = [*value.keys(), *value.values()]
        else:
            items = value if field.is_repeated else (value,)
        for item in items:
            if isinstance(item, str) and "\x00" in item:
                return field.name
            nested = await find_zero_byte(item, turns) if isinstance(item, Message) else ""
            if nested:
                return f"{field.name}.{nested}"
    return ""


async def require_own_job(tx: Tx, worker: Worker, job_id: str) -> JobRow:
    """Return the locked job of a worker. Raises Invalid with the protocol's texts for any other job."""
    try:
        parsed_id = UUID(job_id)
    except ValueError as error:
        raise Invalid("parse job id: not a UUID") from error
    job = await system_jobs.get_job(tx, parsed_id, lock=True)
    # Another worker's job, or a pending one, is answered like a missing job, so that its id reveals nothing.
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


def _from_unix_ms(value: int, now: datetime) -> datetime:
    """Return a time of a daemon's clock; `now` for a time out of range."""
    try:
        return datetime.fromtimestamp(value / 1000, UTC) if value > 0 else now
    except (OverflowError, ValueError, OSError):
        return now
