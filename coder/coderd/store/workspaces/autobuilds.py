"""Queries of automatic actions on workspaces: due workspaces, deadlines moved by activity and templates.

The SQL list is a superset; the decision is `domain/workspaces/autobuild.py`, repeated under the row's lock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import ColumnElement, and_, func, literal_column, or_, select, text, update

from coder.coderd.store.engine.sql_types import ColumnValue, ColumnValues, Query, SqlColumn
from coder.coderd.store.provisioning.jobs import STATUS
from coder.coderd.store.site.site_settings import PREBUILDS_USER_ID
from coder.coderd.store.tables.builds import workspace_builds
from coder.coderd.store.tables.jobs import provisioner_jobs
from coder.coderd.store.tables.people import users
from coder.coderd.store.tables.templates import templates
from coder.coderd.store.tables.workspaces import workspaces
from coder.coderd.store.workspaces.workspaces import WorkspaceRow
from coder.domain.workspaces.autobuild import AutobuildCandidate
from coder.domain.workspaces.workspaces import MAX_TTL_MS

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx

_builds, _jobs = workspace_builds, provisioner_jobs
_MS: SqlColumn = literal_column("interval '1 millisecond'")


def _bounded(milliseconds: ColumnElement[int]) -> ColumnElement[int]:
    """Return a template's setting, at most a century: PostgreSQL refuses the whole statement for one row whose interval
    or time is out of range. Rows of earlier releases and imported ones have any number."""
    return func.least(milliseconds, MAX_TTL_MS)


_CANDIDATE: Query = (
    select(
        _builds.c.transition,
        STATUS,
        _jobs.c.completed_at,
        _builds.c.created_at,
        _builds.c.deadline,
        users.c.status,
        workspaces.c.owner_id == PREBUILDS_USER_ID,
        workspaces.c.autostart_schedule,
        workspaces.c.last_used_at,
        workspaces.c.dormant_at,
        workspaces.c.deleting_at,
        templates.c.allow_user_autostart,
        templates.c.autostart_days,
        _bounded(templates.c.failure_ttl_ms),
        _bounded(templates.c.time_til_dormant_ms),
        _bounded(templates.c.time_til_dormant_autodelete_ms),
    )
    .select_from(workspaces)
    .join(_builds, _builds.c.id == workspaces.c.latest_build_id)
    .join(_jobs, _jobs.c.id == _builds.c.job_id)
    .join(users, users.c.id == workspaces.c.owner_id)
    .join(templates, templates.c.id == workspaces.c.template_id)
    .where(~workspaces.c.deleted)
)


async def list_due(tx: Tx, now: datetime) -> list[tuple[UUID, AutobuildCandidate]]:
    """Return workspaces that may have a step due at `now`: every stopped one with a schedule is among them."""
    due = or_(
        and_(_builds.c.transition == "start", or_(_builds.c.deadline <= now, users.c.status == "suspended")),
        and_(_builds.c.transition == "stop", workspaces.c.autostart_schedule.is_not(None)),
        and_(_builds.c.transition == "start", templates.c.failure_ttl_ms > 0, STATUS == "failed"),
        and_(
            workspaces.c.dormant_at.is_(None),
            templates.c.time_til_dormant_ms > 0,
            workspaces.c.last_used_at + _bounded(templates.c.time_til_dormant_ms) * _MS <= now,
        ),
        workspaces.c.deleting_at <= now,
    )
    statement = _CANDIDATE.where(_jobs.c.completed_at.is_not(None), due).add_columns(workspaces.c.id)
    return [(row[-1], AutobuildCandidate(*row[:-1])) for row in await tx.execute(statement)]


async def lock_candidate(tx: Tx, workspace_id: UUID) -> tuple[WorkspaceRow, AutobuildCandidate] | None:
    """Return the row, locked; None when another user or replica is changing it just now."""
    columns = [workspaces.c[field.name] for field in fields(WorkspaceRow)]
    statement = (
        _CANDIDATE.where(workspaces.c.id == workspace_id)
        .add_columns(*columns)
        .with_for_update(of=workspaces, skip_locked=True)
    )
    row = (await tx.execute(statement)).one_or_none()
    if row is None:
        return None
    count = len(fields(AutobuildCandidate))
    return WorkspaceRow(*row[count:]), AutobuildCandidate(*row[:count])


# ---- effects of a template's new schedule on its workspaces


async def touch_all(tx: Tx, template_id: UUID, now: datetime) -> None:
    """Set every workspace's last use to now."""
    statement = update(workspaces).where(workspaces.c.template_id == template_id, ~workspaces.c.deleted)
    await tx.execute(statement.values(last_used_at=now))


async def set_deleting(tx: Tx, template_id: UUID, delete_after_ms: int, now: datetime, *, restart: bool) -> None:
    """Set the deletion of dormant workspaces to that long after they became dormant; `restart` counts from now on."""
    sleeping = and_(
        workspaces.c.template_id == template_id, ~workspaces.c.deleted, workspaces.c.dormant_at.is_not(None)
    )
    values: ColumnValues = {"dormant_at": now} if restart else {}
    deleting_at: ColumnValue = None
    if delete_after_ms:
        since = now + timedelta(milliseconds=delete_after_ms)
        deleting_at = since if restart else workspaces.c.dormant_at.op("+")(_MS * delete_after_ms)
    values["deleting_at"] = deleting_at
    await tx.execute(update(workspaces).where(sleeping).values(**values))


async def list_marked(tx: Tx, template_id: UUID) -> list[WorkspaceRow]:
    """Return dormant workspaces of a template that will be deleted."""
    statement = select(*(workspaces.c[field.name] for field in fields(WorkspaceRow))).where(
        workspaces.c.template_id == template_id, ~workspaces.c.deleted, workspaces.c.deleting_at.is_not(None)
    )
    return [WorkspaceRow(*row) for row in await tx.execute(statement)]


async def list_schedules(tx: Tx, template_id: UUID) -> list[str]:
    """Return the distinct autostart schedules of a template's workspaces."""
    statement = (
        select(workspaces.c.autostart_schedule)
        .distinct()
        .where(
            workspaces.c.template_id == template_id, ~workspaces.c.deleted, workspaces.c.autostart_schedule.is_not(None)
        )
    )
    return list((await tx.execute(statement)).scalars())


_MOVE_STARTS = text(
    "UPDATE workspaces SET next_start_at = moved.at "
    "FROM unnest(CAST(:schedules AS text[]), CAST(:moments AS timestamptz[])) AS moved(schedule, at) "
    "WHERE template_id = :template_id AND NOT deleted AND autostart_schedule = moved.schedule"
)


async def move_next_starts(tx: Tx, template_id: UUID, moments: Mapping[str, datetime | None]) -> None:
    """Set the next starts of a template's workspaces, by their schedules: one statement for any number."""
    values = {"schedules": list(moments), "moments": list(moments.values())}
    await tx.execute(_MOVE_STARTS, {"template_id": template_id, **values})


@dataclass(frozen=True, slots=True)
class RunningBuild:
    """Build whose deadlines depend on its template and its owner."""

    id: UUID
    workspace_id: UUID
    owner_id: UUID
    quiet_hours: str


async def list_running(tx: Tx, template_id: UUID) -> list[RunningBuild]:
    """Return latest builds of a template that started successfully."""
    statement = (
        select(_builds.c.id, workspaces.c.id, workspaces.c.owner_id, users.c.quiet_hours_schedule)
        .select_from(workspaces)
        .join(_builds, _builds.c.id == workspaces.c.latest_build_id)
        .join(_jobs, _jobs.c.id == _builds.c.job_id)
        .join(users, users.c.id == workspaces.c.owner_id)
        .where(
            workspaces.c.template_id == template_id,
            ~workspaces.c.deleted,
            _builds.c.transition == "start",
            STATUS == "succeeded",
        )
    )
    return [RunningBuild(*row) for row in await tx.execute(statement)]


# LEAST ignores NULL: without a latest stop the deadline stays, and without a deadline the latest stop applies.
_MOVE_STOPS = text(
    "UPDATE workspace_builds b "
    "SET max_deadline = moved.latest, deadline = LEAST(b.deadline, moved.latest), updated_at = :now "
    "FROM unnest(CAST(:ids AS uuid[]), CAST(:latest AS timestamptz[])) AS moved(id, latest) WHERE b.id = moved.id"
)


async def move_latest_stops(tx: Tx, latest: Mapping[UUID, datetime | None], now: datetime) -> None:
    """Set the latest stops of builds, by their ids: one statement for any number."""
    await tx.execute(_MOVE_STOPS, {"now": now, "ids": list(latest), "latest": list(latest.values())})


@dataclass(frozen=True, slots=True)
class UpcomingStop:
    """Workspace that will stop soon, of a template that notifies the owner."""

    build_id: UUID
    workspace_id: UUID
    name: str
    owner_id: UUID
    template_id: UUID
    organization_id: UUID
    deadline: datetime


async def list_soon_stopped(tx: Tx, now: datetime) -> list[UpcomingStop]:
    statement = (
        select(
            _builds.c.id,
            workspaces.c.id,
            workspaces.c.name,
            workspaces.c.owner_id,
            workspaces.c.template_id,
            workspaces.c.organization_id,
            _builds.c.deadline,
        )
        .select_from(workspaces)
        .join(_builds, _builds.c.id == workspaces.c.latest_build_id)
        .join(_jobs, _jobs.c.id == _builds.c.job_id)
        .join(templates, templates.c.id == workspaces.c.template_id)
        .where(
            ~workspaces.c.deleted,
            workspaces.c.owner_id != PREBUILDS_USER_ID,
            _builds.c.transition == "start",
            STATUS == "succeeded",
            templates.c.time_til_autostop_notify_ms > 0,
            _builds.c.deadline > now,
            _builds.c.deadline - _bounded(templates.c.time_til_autostop_notify_ms) * _MS <= now,
        )
    )
    return [UpcomingStop(*row) for row in await tx.execute(statement)]


# ---- activity


@dataclass(frozen=True, slots=True)
class Bumpable:
    """Facts that determine how activity moves a deadline."""

    deadline: datetime | None
    max_deadline: datetime | None
    activity_bump_ms: int
    autostart_schedule: str | None
    ttl_ms: int | None
    default_ttl_ms: int
    allow_user_autostart: bool
    allow_user_autostop: bool
    autostart_days: int


async def get_bumpable(tx: Tx, build_id: UUID) -> Bumpable | None:
    """Return them; None unless the build started successfully."""
    statement = (
        select(
            _builds.c.deadline,
            _builds.c.max_deadline,
            templates.c.activity_bump_ms,
            workspaces.c.autostart_schedule,
            workspaces.c.ttl_ms,
            templates.c.default_ttl_ms,
            templates.c.allow_user_autostart,
            templates.c.allow_user_autostop,
            templates.c.autostart_days,
        )
        .select_from(_builds)
        .join(workspaces, workspaces.c.latest_build_id == _builds.c.id)
        .join(templates, templates.c.id == workspaces.c.template_id)
        .where(_builds.c.id == build_id, _builds.c.transition == "start")
    )
    row = (await tx.execute(statement)).one_or_none()
    return Bumpable(*row) if row else None


async def touch_workspace(tx: Tx, workspace_id: UUID, now: datetime) -> None:
    """Record a use. The time never moves back (reports of replicas may cross)."""
    later = func.greatest(workspaces.c.last_used_at, now)
    await tx.execute(update(workspaces).where(workspaces.c.id == workspace_id).values(last_used_at=later))
