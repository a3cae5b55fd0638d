"""Queries on provisioner jobs: the queue, workers, logs and timings.

Nothing here interprets a completed job; `services/provisioning/daemon_calls.py` and its neighbours do.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING, Literal, TypedDict, Unpack
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    ScalarSelect,
    Text,
    and_,
    any_,
    case,
    exists,
    func,
    literal,
    not_,
    or_,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import JSONB, insert

from coder.base.json_types import JsonObject, as_text
from coder.coderd.store.engine.rows import column_values
from coder.coderd.store.engine.sql_types import Query
from coder.coderd.store.engine.turns import insert_rows
from coder.coderd.store.tables.builds import workspace_builds
from coder.coderd.store.tables.jobs import provisioner_job_logs, provisioner_job_timings, provisioner_jobs
from coder.coderd.store.tables.provisioners import provisioner_daemons, provisioner_keys
from coder.coderd.store.tables.templates import template_versions, templates
from coder.coderd.store.tables.workspaces import workspaces
from coder.domain.provisioning.jobs import JobLogLine, JobStatus, derive_status
from coder.domain.provisioning.provisioners import RESERVED_KEYS, STALE_AFTER
from coder.domain.provisioning.queue import MAX_PREVIEWS, PREVIEW_PRIORITY, JobRequirements
from coder.domain.provisioning.tags import UNTAGGED, Tags, is_untagged

if TYPE_CHECKING:
    from coder.api.base.enums import LogLevel, WorkspaceTransition
    from coder.api.provisioning.jobs import LogSource
    from coder.coderd.store.engine.database import Tx
    from coder.domain.provisioning.jobs import JobErrorCode, JobType

_logs = provisioner_job_logs


@dataclass(frozen=True, slots=True)
class JobRow:
    """Provisioner job."""

    id: UUID
    created_at: datetime
    updated_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    canceled_at: datetime | None
    error: str
    error_code: JobErrorCode
    organization_id: UUID
    initiator_id: UUID
    provisioner: str
    file_id: UUID
    type: JobType
    input: JsonObject
    worker_id: UUID | None
    tags: dict[str, str]
    priority: int
    logs_length: int
    logs_overflowed: bool

    @property
    def status(self) -> JobStatus:
        return derive_status(
            started_at=self.started_at,
            completed_at=self.completed_at,
            canceled_at=self.canceled_at,
            error=self.error,
        )

    @property
    def version_id(self) -> UUID | None:
        """Return the template version of an import or dry run."""
        text = as_text(self.input.get("template_version_id"))
        return UUID(text) if text else None

    @property
    def build_id(self) -> UUID | None:
        """Return the workspace build of a build job."""
        text = as_text(self.input.get("workspace_build_id"))
        return UUID(text) if text else None

    @property
    def previewed_workspace(self) -> UUID | None:
        """Return the workspace of a dry run that previews its update."""
        text = as_text(self.input.get("workspace_id"))
        return UUID(text) if text else None


JOB_COLUMNS = tuple(provisioner_jobs.c[field.name] for field in fields(JobRow))

STATUS: ColumnElement[str] = case(
    (provisioner_jobs.c.error != "", "failed"),
    (and_(provisioner_jobs.c.completed_at.is_not(None), provisioner_jobs.c.canceled_at.is_not(None)), "canceled"),
    (provisioner_jobs.c.completed_at.is_not(None), "succeeded"),
    (provisioner_jobs.c.canceled_at.is_not(None), "canceling"),
    (provisioner_jobs.c.started_at.is_(None), "pending"),
    else_="running",
)
"""`derive_status` (coder/domain/provisioning/jobs.py) as SQL."""

_BATCH = 1000
"""Rows of one statement."""
_WAITING = and_(
    provisioner_jobs.c.started_at.is_(None),
    provisioner_jobs.c.completed_at.is_(None),
    provisioner_jobs.c.canceled_at.is_(None),
)


@dataclass(frozen=True, slots=True)
class LogRow:
    """Stored line of a job's log."""

    id: int
    created_at: datetime
    source: LogSource
    level: LogLevel
    stage: str
    output: str


@dataclass(frozen=True, slots=True)
class TimingRow:
    """Duration of one action of a job."""

    job_id: UUID
    started_at: datetime
    ended_at: datetime
    stage: str
    source: str
    action: str
    resource: str


@dataclass(frozen=True, slots=True)
class JobDetail:
    """Job with the names of its objects. Missing ones are empty."""

    job: JobRow
    worker_name: str
    template_version_name: str
    template_id: UUID | None
    template_name: str
    template_display_name: str
    template_icon: str
    workspace_id: UUID | None
    workspace_name: str
    transition: WorkspaceTransition | Literal[""]


async def insert_job(tx: Tx, job: JobRow) -> None:
    await tx.execute(insert(provisioner_jobs).values(column_values(job)))


def _tags_match(tags: Tags, now: datetime, *, strict: bool) -> ColumnElement[bool]:
    # `explain_mismatch` (coder/domain/provisioning/tags.py) with `TagRule` (queue.py beside it) as SQL;
    # tests/unit/coderd/store/provisioning/test_queue_as_sql.py holds the two equal.
    included: ColumnElement[bool] = provisioner_jobs.c.tags.contained_by(literal(dict(tags), JSONB))
    if is_untagged(tags):
        return included
    has_tags = provisioner_jobs.c.tags != literal(dict(UNTAGGED), JSONB)
    if strict:
        return and_(included, has_tags)
    serving = exists().where(
        _serves_untagged(now),
        provisioner_daemons.c.organization_id == provisioner_jobs.c.organization_id,
        provisioner_jobs.c.provisioner == any_(provisioner_daemons.c.provisioners),
    )
    return and_(included, or_(has_tags, not_(serving)))


def _serves_untagged(now: datetime) -> ColumnElement[bool]:
    """Return the condition of a connected untagged daemon: its heartbeat is fresh, and its key exists."""
    key_exists = exists().where(provisioner_keys.c.id == provisioner_daemons.c.key_id)
    return and_(
        provisioner_daemons.c.tags == literal(dict(UNTAGGED), JSONB),
        provisioner_daemons.c.last_seen_at > now - STALE_AFTER,
        or_(provisioner_daemons.c.key_id.in_(list(RESERVED_KEYS)), key_exists),
    )


async def list_served(tx: Tx, organization_ids: Collection[UUID], now: datetime) -> frozenset[tuple[UUID, str]]:
    """Return the organizations and provisioner types that connected untagged daemons serve (`TagRule.served`)."""
    query = select(provisioner_daemons.c.organization_id, func.unnest(provisioner_daemons.c.provisioners)).where(
        _serves_untagged(now), provisioner_daemons.c.organization_id.in_(organization_ids)
    )
    return frozenset((row[0], row[1]) for row in await tx.execute(query))


def _running_previews() -> ScalarSelect[int]:
    running = provisioner_jobs.alias("running_previews")
    query = select(func.count()).select_from(running)
    return query.where(
        running.c.completed_at.is_(None), running.c.started_at.is_not(None), running.c.priority == PREVIEW_PRIORITY
    ).scalar_subquery()


async def acquire_job(
    tx: Tx,
    *,
    organization_id: UUID,
    provisioners: Collection[str],
    tags: Tags,
    worker_id: UUID,
    now: datetime,
    strict: bool = False,
) -> JobRow | None:
    """Assign the next matching job to `worker_id` and mark it started; None when no job is pending.

    SKIP LOCKED: daemons never wait for each other. The same statement reads whether an untagged daemon is connected, so
    that the tag rule holds across replicas.
    """
    chosen = (
        select(provisioner_jobs.c.id)
        .where(
            _WAITING,
            provisioner_jobs.c.organization_id == organization_id,
            provisioner_jobs.c.provisioner.in_(provisioners),
            _tags_match(tags, now, strict=strict),
            or_(provisioner_jobs.c.priority != PREVIEW_PRIORITY, _running_previews() < MAX_PREVIEWS),
        )
        .order_by(provisioner_jobs.c.priority, provisioner_jobs.c.created_at, provisioner_jobs.c.id)
        .limit(1)
        .with_for_update(skip_locked=True)
        .scalar_subquery()
    )
    query = (
        update(provisioner_jobs)
        .where(provisioner_jobs.c.id == chosen)
        .values(started_at=now, updated_at=now, worker_id=worker_id)
        .returning(*JOB_COLUMNS)
    )
    row = (await tx.execute(query)).one_or_none()
    return JobRow(*row) if row else None


class JobChanges(TypedDict, total=False):
    """Columns of `provisioner_jobs` that may be set, by name."""

    created_at: datetime
    updated_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    canceled_at: datetime | None
    error: str
    error_code: str
    organization_id: UUID
    initiator_id: UUID
    provisioner: str
    file_id: UUID
    type: str
    input: JsonObject
    worker_id: UUID | None
    tags: dict[str, str]
    priority: int
    logs_length: int
    logs_overflowed: bool


async def update_job(tx: Tx, job_id: UUID, **values: Unpack[JobChanges]) -> None:
    await tx.execute(update(provisioner_jobs).where(provisioner_jobs.c.id == job_id).values(**values))


async def list_waiting(tx: Tx, organization_ids: Collection[UUID]) -> list[JobRequirements]:
    """Return every pending job of these organizations."""
    query = select(
        provisioner_jobs.c.id,
        provisioner_jobs.c.organization_id,
        provisioner_jobs.c.provisioner,
        provisioner_jobs.c.tags,
        provisioner_jobs.c.priority,
        provisioner_jobs.c.created_at,
    ).where(_WAITING, provisioner_jobs.c.organization_id.in_(organization_ids))
    return [JobRequirements(*row) for row in await tx.execute(query)]


async def list_worker_jobs(tx: Tx, worker_id: UUID) -> list[JobRow]:
    """Return the unfinished jobs of a daemon."""
    query = select(*JOB_COLUMNS).where(
        provisioner_jobs.c.worker_id == worker_id,
        provisioner_jobs.c.completed_at.is_(None),
        provisioner_jobs.c.started_at.is_not(None),
    )
    return [JobRow(*row) for row in await tx.execute(query)]


def _is_silent(hung_since: datetime, pending_since: datetime) -> ColumnElement[bool]:
    silent = or_(
        and_(provisioner_jobs.c.started_at.is_not(None), provisioner_jobs.c.updated_at <= hung_since),
        # A parked job waits for its daemon without limit (store/provisioning/queue_forecast_queries.py).
        and_(
            provisioner_jobs.c.started_at.is_(None),
            provisioner_jobs.c.updated_at <= pending_since,
            func.coalesce(provisioner_jobs.c.input["wait_for_provisioner"].astext, "false") != "true",
        ),
    )
    return and_(provisioner_jobs.c.completed_at.is_(None), silent)


async def list_silent_jobs(tx: Tx, hung_since: datetime, pending_since: datetime) -> list[UUID]:
    """Return jobs without updates for too long, the most silent first."""
    query = (
        select(provisioner_jobs.c.id)
        .where(_is_silent(hung_since, pending_since))
        .order_by(provisioner_jobs.c.updated_at)
    )
    return list((await tx.execute(query)).scalars())


async def lock_silent_job(tx: Tx, job_id: UUID, hung_since: datetime, pending_since: datetime) -> JobRow | None:
    """Lock a silent job, if it is still silent and not locked by another transaction."""
    query = select(*JOB_COLUMNS).where(provisioner_jobs.c.id == job_id, _is_silent(hung_since, pending_since))
    row = (await tx.execute(query.with_for_update(skip_locked=True))).one_or_none()
    return JobRow(*row) if row else None


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Filter of an organization's jobs; empty means all."""

    ids: Collection[UUID] = ()
    statuses: Collection[str] = ()
    tags: Mapping[str, str] | None = None
    """Tags of a daemon that could run the job (by inclusion)."""
    initiator_id: UUID | None = None
    limit: int = 0


async def list_jobs(tx: Tx, organization_id: UUID, which: JobFilter) -> list[JobDetail]:
    """Return jobs, newest first."""
    query = _detail_query().where(provisioner_jobs.c.organization_id == organization_id)
    if which.ids:
        query = query.where(provisioner_jobs.c.id.in_(which.ids))
    if which.statuses:
        query = query.where(STATUS.in_(which.statuses))
    if which.tags:
        query = query.where(provisioner_jobs.c.tags.contained_by(literal(dict(which.tags), JSONB)))
    if which.initiator_id is not None:
        query = query.where(provisioner_jobs.c.initiator_id == which.initiator_id)
    query = query.order_by(provisioner_jobs.c.created_at.desc(), provisioner_jobs.c.id)
    if which.limit:
        query = query.limit(which.limit)
    count = len(JOB_COLUMNS)
    return [JobDetail(JobRow(*row[:count]), *row[count:]) for row in await tx.execute(query)]


def _detail_query() -> Query:
    version = template_versions.alias("version")
    by_input = provisioner_jobs.c.input["template_version_id"].astext
    build_job = workspace_builds.c.job_id == provisioner_jobs.c.id
    return select(
        *JOB_COLUMNS,
        func.coalesce(provisioner_daemons.c.name, ""),
        func.coalesce(version.c.name, ""),
        version.c.template_id,
        func.coalesce(templates.c.name, ""),
        func.coalesce(templates.c.display_name, ""),
        func.coalesce(templates.c.icon, ""),
        workspace_builds.c.workspace_id,
        func.coalesce(workspaces.c.name, ""),
        func.coalesce(workspace_builds.c.transition, ""),
    ).select_from(
        provisioner_jobs.outerjoin(provisioner_daemons, provisioner_daemons.c.id == provisioner_jobs.c.worker_id)
        .outerjoin(workspace_builds, build_job)
        .outerjoin(workspaces, workspaces.c.id == workspace_builds.c.workspace_id)
        .outerjoin(
            version,
            or_(
                version.c.id == workspace_builds.c.template_version_id,
                and_(workspace_builds.c.id.is_(None), version.c.id.cast(Text) == by_input),
            ),
        )
        .outerjoin(templates, templates.c.id == version.c.template_id)
    )


async def insert_logs(tx: Tx, job_id: UUID, lines: Sequence[JobLogLine]) -> None:
    """Store lines in order."""
    values = (
        {
            "job_id": job_id,
            "created_at": line.created_at,
            "source": line.source,
            "level": line.level,
            "stage": line.stage,
            "output": line.output,
        }
        for line in lines
    )
    await insert_rows(tx, _logs, values)


async def list_logs(tx: Tx, job_id: UUID, *, after: int = 0, limit: int = 0) -> list[LogRow]:
    """Return lines with ids above `after`, oldest first."""
    query = select(_logs.c.id, _logs.c.created_at, _logs.c.source, _logs.c.level, _logs.c.stage, _logs.c.output)
    query = query.where(_logs.c.job_id == job_id)
    if after:
        query = query.where(_logs.c.id > after)
    query = query.order_by(_logs.c.id)
    if limit:
        query = query.limit(limit)
    return [LogRow(*row) for row in await tx.execute(query)]


async def insert_timings(tx: Tx, timings: Iterable[TimingRow]) -> None:
    await insert_rows(tx, provisioner_job_timings, (column_values(timing) for timing in timings))


async def list_timings(tx: Tx, job_id: UUID) -> list[TimingRow]:
    """Return timings in the order of their start."""
    table = provisioner_job_timings
    columns = [table.c[field.name] for field in fields(TimingRow)]
    query = select(*columns).where(table.c.job_id == job_id).order_by(table.c.started_at, table.c.id)
    return [TimingRow(*row) for row in await tx.execute(query)]


async def get_job_workspace(tx: Tx, job_id: UUID) -> tuple[UUID, UUID] | None:
    """Return owner and id of the workspace of a build job; None for other jobs."""
    query = (
        select(workspaces.c.owner_id, workspaces.c.id)
        .join(workspace_builds, workspace_builds.c.workspace_id == workspaces.c.id)
        .where(workspace_builds.c.job_id == job_id)
    )
    row = (await tx.execute(query)).one_or_none()
    return (row[0], row[1]) if row else None
