"""Build report of a template: results and times of each version, the commonest errors, agents that never connected.

Counts cover all builds, since `view_insights` is the right to figures. Builds themselves, and the errors that quote
their values, are limited to workspaces that the caller may read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import NotFound
from coder.api.templates.build_report import (
    BuildErrorReport,
    BuildReportStage,
    BuildStageReport,
    ReportedBuild,
    TemplateBuildReport,
    VersionBuildReport,
)
from coder.coderd.services.access.authorization import may
from coder.coderd.services.access.workspace_access import load_template, template_resource, workspace_resource
from coder.coderd.store.templates import build_report as store
from coder.coderd.store.templates.build_report import BuildRow, Range, StageTimes, VersionCounts
from coder.coderd.store.workspaces.workspaces import WorkspaceRow, list_with_owners
from coder.domain.access.policy import Subject
from coder.domain.provisioning.jobs import JobStatus, derive_status

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

_SINCE = timedelta(days=30)
_MOST_BUILDS = 5000
"""Ours: builds that a report covers at most; it is counted for each request."""
_MOST_FAILED = 500
_SHOWN = 100
_OF_ERROR = 5
_ERRORS = 20
_LONGEST = 300
"""Characters of an error."""
_STAGES: tuple[BuildReportStage, ...] = ("queue", "init", "plan", "graph", "apply", "total", "connect", "start")


async def get_build_report(ctx: Context, subject: Subject, template_id: UUID) -> TemplateBuildReport:
    """Return the report of the last 30 days. Raises NotFound, also without `view_insights`."""
    template = await load_template(ctx, subject, template_id)
    if not may(subject, "view_insights", template_resource(template)):
        raise NotFound
    now = ctx.clock.now()
    return await ctx.db.read(
        _report, subject, template.active_version_id, Range(template_id, now - _SINCE, _MOST_BUILDS, now)
    )


async def _report(tx: Tx, subject: Subject, active: UUID, range_: Range) -> TemplateBuildReport:
    counts = await store.count_builds(tx, range_)
    times = await store.list_stage_times(tx, range_)
    silent = await store.count_unconnected(tx, range_)
    failed = await store.list_builds(tx, range_, "failed", _MOST_FAILED)
    unconnected = await store.list_builds(tx, range_, "unconnected", _SHOWN)
    latest = await store.list_builds(tx, range_, "latest", _SHOWN)
    ids = {row.workspace_id for row in (*failed, *unconnected, *latest)}
    readable = {
        workspace.id: (workspace, owner)
        for workspace, owner in await list_with_owners(tx, sorted(ids))
        if not workspace.deleted and may(subject, "read", workspace_resource(workspace))
    }
    builds = sum(count.builds for count in counts)
    versions = [_version(count, times, silent, active) for count in counts]
    return TemplateBuildReport(
        since=range_.since,
        builds=builds,
        limited=builds >= range_.most,
        versions=sorted(versions, key=lambda version: not version.active),
        errors=group_errors(_present(failed, readable)),
        unconnected=_present(unconnected, readable),
        latest=_present(latest, readable),
    )


def _version(
    count: VersionCounts, times: Sequence[StageTimes], silent: Mapping[UUID, int], active: UUID
) -> VersionBuildReport:
    own = {time.stage: time for time in times if time.version_id == count.version_id}
    return VersionBuildReport(
        template_version_id=count.version_id,
        template_version_name=count.name,
        active=count.version_id == active,
        succeeded=count.succeeded,
        failed=count.failed,
        canceled=count.canceled,
        never_connected=silent.get(count.version_id, 0),
        stages=[
            BuildStageReport(stage=time.stage, samples=time.samples, p50_ms=_ms(time.p50), p95_ms=_ms(time.p95))
            for stage in _STAGES
            if (time := own.get(stage)) is not None
        ],
    )


def _ms(number: float) -> int:
    """Round; clocks of agents and provisioners may be behind the server's."""
    return max(0, round(number))


def _present(rows: Sequence[BuildRow], readable: Mapping[UUID, tuple[WorkspaceRow, str]]) -> list[ReportedBuild]:
    return [
        ReportedBuild(
            workspace_owner_name=found[1],
            workspace_name=found[0].name,
            build_number=row.build_number,
            template_version_id=row.version_id,
            template_version_name=row.version_name,
            transition=row.transition,
            created_at=row.created_at,
            status=_status(row),
            duration_ms=_ms((row.completed_at - row.started_at).total_seconds() * 1000)
            if row.completed_at and row.started_at
            else None,
            error=first_line(row.error),
            never_connected=row.never_connected,
        )
        for row in rows
        if (found := readable.get(row.workspace_id)) is not None
    ]


def _status(row: BuildRow) -> JobStatus:
    """Return the result as the report counts it: a canceled build that failed was canceled."""
    error = row.error if row.canceled_at is None else ""
    return derive_status(
        started_at=row.started_at, completed_at=row.completed_at, canceled_at=row.canceled_at, error=error
    )


def first_line(error: str) -> str:
    """Return the first line with text, at most 300 characters."""
    return next((line.strip()[:_LONGEST] for line in error.splitlines() if line.strip()), "")


def group_errors(failed: Sequence[ReportedBuild]) -> list[BuildErrorReport]:
    """Return the errors of builds, the commonest first, each with its latest builds. `failed` is newest first."""
    groups: dict[str, list[ReportedBuild]] = defaultdict(list)
    for build in failed:
        groups[build.error].append(build)
    common = sorted(groups.items(), key=lambda group: -len(group[1]))[:_ERRORS]
    return [BuildErrorReport(error=error, count=len(builds), builds=builds[:_OF_ERROR]) for error, builds in common]
