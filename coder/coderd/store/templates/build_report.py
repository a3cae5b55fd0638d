"""Queries of a template's build report: counts and times over its latest builds."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal
from uuid import UUID

from sqlalchemy import bindparam, text
from sqlalchemy.sql.elements import TextClause

from coder.coderd.store.engine.metadata import Timestamp, Uuid

if TYPE_CHECKING:
    from coder.api.base.enums import WorkspaceTransition
    from coder.api.templates.build_report import BuildReportStage
    from coder.coderd.store.engine.database import Tx

Which = Literal["failed", "unconnected", "latest"]


@dataclass(frozen=True, slots=True)
class Range:
    """The builds of a report: the latest `most` of a template since a time."""

    template_id: UUID
    since: datetime
    most: int
    now: datetime


@dataclass(frozen=True, slots=True)
class VersionCounts:
    """Builds of a version by their result."""

    version_id: UUID
    name: str
    builds: int
    succeeded: int
    failed: int
    canceled: int


@dataclass(frozen=True, slots=True)
class StageTimes:
    """Percentiles of a stage's times, in milliseconds."""

    version_id: UUID
    stage: BuildReportStage
    samples: int
    p50: float
    p95: float


@dataclass(frozen=True, slots=True)
class BuildRow:
    """Build with the times of its job."""

    workspace_id: UUID
    build_number: int
    version_id: UUID
    version_name: str
    transition: WorkspaceTransition
    created_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    canceled_at: datetime | None
    error: str
    never_connected: list[str]


_RECENT = """WITH recent AS (
    SELECT b.job_id, b.workspace_id, b.build_number, b.transition, b.created_at,
        b.template_version_id AS version_id, v.name AS version_name
    FROM workspace_builds b JOIN template_versions v ON v.id = b.template_version_id
    WHERE v.template_id = :template AND b.created_at >= :since
    ORDER BY b.created_at DESC LIMIT :most
), started AS (
    SELECT r.*, j.created_at AS queued_at, j.started_at, j.completed_at
    FROM recent r JOIN provisioner_jobs j ON j.id = r.job_id
    WHERE r.transition = 'start' AND j.started_at IS NOT NULL AND j.completed_at IS NOT NULL
        AND j.error = '' AND j.canceled_at IS NULL
), silent AS (
    SELECT s.job_id, s.version_id, a.name FROM started s JOIN workspace_agents a ON a.job_id = s.job_id
    WHERE a.parent_id IS NULL AND NOT a.deleted AND a.first_connected_at IS NULL
        AND a.created_at + make_interval(secs => coalesce(nullif(a.connection_timeout_seconds, 0), 600)) < :now
)
"""
"""An agent without a connection timeout gets ten minutes here: it would wait for ever."""
_MS = "extract(epoch FROM {} - {})::float8 * 1000"
_ERROR = r"""CASE WHEN j.error ~ '(exit status [0-9]+|killed by signal [0-9]+)\s*$' THEN (
        SELECT l.output FROM provisioner_job_logs l
        WHERE l.job_id = j.id AND l.level = 'error' AND l.output !~ '^\s*([╷│├└╵]|[0-9]+\:|$)' ORDER BY l.id LIMIT 1
    ) END"""
"""First error of the log, where the job knows an exit status only. Terraform frames errors and quotes the template."""
_FAILED, _CANCELED = (
    "j.error <> '' AND j.canceled_at IS NULL",
    "j.completed_at IS NOT NULL AND j.canceled_at IS NOT NULL",
)
"""A canceled build that failed tells nothing about its version, as in rollouts."""


def _ranged(sql: str) -> TextClause:
    return text(_RECENT + sql).bindparams(
        bindparam("template", type_=Uuid), bindparam("since", type_=Timestamp), bindparam("now", type_=Timestamp)
    )


_COUNTS = _ranged(
    f"""SELECT r.version_id, r.version_name, count(*),
        count(*) FILTER (WHERE j.error = '' AND j.completed_at IS NOT NULL AND j.canceled_at IS NULL),
        count(*) FILTER (WHERE {_FAILED}), count(*) FILTER (WHERE {_CANCELED})
    FROM recent r JOIN provisioner_jobs j ON j.id = r.job_id
    GROUP BY r.version_id, r.version_name ORDER BY max(r.created_at) DESC, r.version_id"""  # noqa: S608 - constants
)
_STAGES = _ranged(
    f"""SELECT version_id, stage, count(*),
        percentile_cont(0.5) WITHIN GROUP (ORDER BY ms), percentile_cont(0.95) WITHIN GROUP (ORDER BY ms)
    FROM (
        SELECT version_id, 'queue' AS stage, {_MS.format("started_at", "queued_at")} AS ms FROM started
        UNION ALL
        SELECT version_id, 'total', {_MS.format("completed_at", "started_at")} FROM started
        UNION ALL
        SELECT s.version_id, t.stage, {_MS.format("max(t.ended_at)", "min(t.started_at)")}
        FROM started s JOIN provisioner_job_timings t ON t.job_id = s.job_id
        WHERE t.stage IN ('init', 'plan', 'graph', 'apply') GROUP BY s.version_id, s.job_id, t.stage
        UNION ALL
        SELECT s.version_id, 'connect', {_MS.format("a.first_connected_at", "a.created_at")}
        FROM started s JOIN workspace_agents a ON a.job_id = s.job_id
        WHERE a.parent_id IS NULL AND a.first_connected_at IS NOT NULL
        UNION ALL
        SELECT s.version_id, 'start', {_MS.format("a.first_ready_at", "a.started_at")}
        FROM started s JOIN workspace_agents a ON a.job_id = s.job_id
        WHERE a.parent_id IS NULL AND a.first_ready_at >= a.started_at
    ) times GROUP BY version_id, stage"""  # noqa: S608 - constants
)
_SILENT = _ranged("SELECT version_id, count(*) FROM silent GROUP BY version_id")
_CONDITIONS: dict[Which, str] = {
    "failed": _FAILED,
    "unconnected": "silent_names IS NOT NULL",
    "latest": "true",
}
_BUILDS = {
    which: _ranged(
        f"""SELECT r.workspace_id, r.build_number, r.version_id, r.version_name, r.transition, r.created_at,
            j.started_at, j.completed_at, j.canceled_at, left(ltrim(coalesce({_ERROR}, j.error), E' \\n\\r\\t'), 2000),
            coalesce(silent_names, '{{}}')
        FROM recent r JOIN provisioner_jobs j ON j.id = r.job_id
        LEFT JOIN (SELECT job_id, array_agg(name ORDER BY name) AS silent_names FROM silent GROUP BY job_id) s
            ON s.job_id = r.job_id
        WHERE {condition} ORDER BY r.created_at DESC LIMIT :limit"""  # noqa: S608 - constants of this file
    )
    for which, condition in _CONDITIONS.items()
}


def _parameters(range_: Range) -> dict[str, object]:
    return {"template": range_.template_id, "since": range_.since, "most": range_.most, "now": range_.now}


async def count_builds(tx: Tx, range_: Range) -> list[VersionCounts]:
    """Return the builds of each version by result, the version with the latest build first."""
    return [VersionCounts(*row) for row in await tx.execute(_COUNTS, _parameters(range_))]


async def list_stage_times(tx: Tx, range_: Range) -> list[StageTimes]:
    """Return the percentiles of each stage, over successful starts."""
    return [StageTimes(*row) for row in await tx.execute(_STAGES, _parameters(range_))]


async def count_unconnected(tx: Tx, range_: Range) -> dict[UUID, int]:
    """Return, by version, the number of agents that did not connect within their time."""
    return {row[0]: row[1] for row in await tx.execute(_SILENT, _parameters(range_))}


async def list_builds(tx: Tx, range_: Range, which: Which, limit: int) -> list[BuildRow]:
    """Return the latest builds of a kind, without a check of permissions."""
    rows = await tx.execute(_BUILDS[which], {**_parameters(range_), "limit": limit})
    return [BuildRow(*row) for row in rows]
