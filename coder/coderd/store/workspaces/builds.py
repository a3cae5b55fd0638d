"""Queries on builds: rows, parameters, state, and the joined view for every response.

A build is always read with its job (which decides its status) and related names, in one statement.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING, TypedDict, Unpack
from uuid import UUID

from sqlalchemy import and_, func, insert, or_, select, update
from sqlalchemy.dialects.postgresql import distinct_on

from coder.coderd.store.engine.rows import column_values
from coder.coderd.store.engine.sql_types import Query, SqlRow, SqlValues
from coder.coderd.store.provisioning.jobs import JobRow
from coder.coderd.store.tables.builds import workspace_build_parameters, workspace_builds
from coder.coderd.store.tables.jobs import provisioner_jobs
from coder.coderd.store.tables.people import users
from coder.coderd.store.tables.templates import template_versions
from coder.coderd.store.tables.workspaces import workspaces
from coder.domain.workspaces.builds import WorkspaceStatus, build_status

if TYPE_CHECKING:
    from coder.api.base.enums import WorkspaceTransition
    from coder.coderd.store.engine.database import Tx

_jobs = provisioner_jobs
_parameters = workspace_build_parameters


@dataclass(frozen=True, slots=True)
class BuildRow:
    """Build without its Terraform state (`get_state`)."""

    id: UUID
    created_at: datetime
    updated_at: datetime
    workspace_id: UUID
    template_version_id: UUID
    build_number: int
    transition: WorkspaceTransition
    initiator_id: UUID
    job_id: UUID
    reason: str
    log_level: str
    deadline: datetime | None
    max_deadline: datetime | None
    daily_cost: int
    template_version_preset_id: UUID | None
    has_ai_task: bool | None
    has_external_agent: bool | None
    ai_task_app_id: UUID | None = None
    """App that reports for the workspace's task; known when the build ended."""
    requested_within: UUID | None = None
    """`Subject.narrowed_to` of the token that requested this build; None for all other requests."""


@dataclass(frozen=True, slots=True)
class BuildView:
    """Build with its job and the names a response shows."""

    build: BuildRow
    job: JobRow
    template_version_name: str
    initiator_username: str
    workspace_name: str
    owner_id: UUID
    owner_username: str
    owner_avatar_url: str

    @property
    def status(self) -> WorkspaceStatus:
        return build_status(self.build.transition, self.job.status)


BUILD_COLUMNS = tuple(workspace_builds.c[field.name] for field in fields(BuildRow))
JOB_COLUMNS = tuple(provisioner_jobs.c[field.name] for field in fields(JobRow))
_BUILD_COUNT, _JOB_COUNT = len(BUILD_COLUMNS), len(JOB_COLUMNS)
initiators = users.alias("initiator")
owners = users.alias("owner")

VIEW_COLUMNS = (
    *BUILD_COLUMNS,
    *JOB_COLUMNS,
    template_versions.c.name,
    initiators.c.username,
    workspaces.c.name,
    workspaces.c.owner_id,
    owners.c.username,
    owners.c.avatar_url,
)
"""Columns of `make_view`, in order; the view of a workspace selects them, too."""

VIEW: Query = (
    select(*VIEW_COLUMNS)
    .select_from(workspace_builds)
    .join(provisioner_jobs, provisioner_jobs.c.id == workspace_builds.c.job_id)
    .join(template_versions, template_versions.c.id == workspace_builds.c.template_version_id)
    .join(initiators, initiators.c.id == workspace_builds.c.initiator_id)
    .join(workspaces, workspaces.c.id == workspace_builds.c.workspace_id)
    .join(owners, owners.c.id == workspaces.c.owner_id)
)


def make_view(row: SqlRow | SqlValues) -> BuildView:
    """Return a view from a row of VIEW_COLUMNS."""
    jobs_end = _BUILD_COUNT + _JOB_COUNT
    return BuildView(BuildRow(*row[:_BUILD_COUNT]), JobRow(*row[_BUILD_COUNT:jobs_end]), *row[jobs_end:])


async def list_views(
    tx: Tx,
    workspace_id: UUID,
    *,
    since: datetime | None = None,
    after: UUID | None = None,
    limit: int = 0,
    offset: int = 0,
) -> list[BuildView]:
    """Return builds, newest first. `after`: only builds with a higher number than that one. `limit` 0 is all."""
    query = VIEW.where(workspace_builds.c.workspace_id == workspace_id).order_by(workspace_builds.c.build_number.desc())
    if since is not None:
        query = query.where(workspace_builds.c.created_at > since)
    if after is not None:
        earlier = workspace_builds.alias("earlier")
        number = select(earlier.c.build_number).where(earlier.c.id == after).scalar_subquery()
        query = query.where(workspace_builds.c.build_number > number)
    if limit:
        query = query.limit(limit)
    return [make_view(row) for row in await tx.execute(query.offset(offset))]


async def insert_build(tx: Tx, build: BuildRow, *, state: bytes | None, parameters: Mapping[str, str]) -> None:
    """Insert the build with its parameters, and move the workspace's `latest_build_id` to it."""
    values = column_values(build)
    await tx.execute(insert(workspace_builds).values(**values, provisioner_state=state))
    if parameters:
        rows = [{"workspace_build_id": build.id, "name": name, "value": value} for name, value in parameters.items()]
        await tx.execute(insert(_parameters), rows)
    await tx.execute(update(workspaces).where(workspaces.c.id == build.workspace_id).values(latest_build_id=build.id))


class BuildChanges(TypedDict, total=False):
    """Columns of `workspace_builds` that may be set, by name."""

    created_at: datetime
    updated_at: datetime
    workspace_id: UUID
    template_version_id: UUID
    build_number: int
    transition: str
    initiator_id: UUID
    job_id: UUID
    reason: str
    provisioner_state: bytes | None
    log_level: str
    deadline: datetime | None
    max_deadline: datetime | None
    daily_cost: int
    template_version_preset_id: UUID | None
    has_ai_task: bool | None
    has_external_agent: bool | None
    ai_task_app_id: UUID | None
    granted_cost: int | None


async def update_build(tx: Tx, build_id: UUID, **values: Unpack[BuildChanges]) -> None:
    """Set columns by name."""
    await tx.execute(update(workspace_builds).where(workspace_builds.c.id == build_id).values(**values))


async def set_state(tx: Tx, build_id: UUID, state: bytes) -> None:
    await update_build(tx, build_id, provisioner_state=state)


async def list_parameters(tx: Tx, build_id: UUID) -> dict[str, str]:
    query = select(_parameters.c.name, _parameters.c.value).where(_parameters.c.workspace_build_id == build_id)
    return {row[0]: row[1] for row in await tx.execute(query.order_by(_parameters.c.name))}


async def list_last_parameters(tx: Tx, owner_id: UUID, template_id: UUID) -> dict[str, str]:
    """Return an owner's last value for each parameter of a template, over all workspaces."""
    query = (
        select(_parameters.c.name, _parameters.c.value)
        .ext(distinct_on(_parameters.c.name))
        .join(workspace_builds, workspace_builds.c.id == _parameters.c.workspace_build_id)
        .join(workspaces, workspaces.c.id == workspace_builds.c.workspace_id)
        .where(workspaces.c.owner_id == owner_id, workspaces.c.template_id == template_id)
        .order_by(_parameters.c.name, workspace_builds.c.created_at.desc())
    )
    return {row[0]: row[1] for row in await tx.execute(query)}


async def settle_cost(tx: Tx, build_id: UUID) -> None:
    """Set the build's cost to its granted quota, 0 if it requested none."""
    cost = func.coalesce(workspace_builds.c.granted_cost, 0)
    await tx.execute(update(workspace_builds).where(workspace_builds.c.id == build_id).values(daily_cost=cost))


_ABANDONED = (
    select(_jobs.c.id)
    .where(_jobs.c.id == workspace_builds.c.job_id, _jobs.c.completed_at.is_not(None), _jobs.c.worker_id.is_(None))
    .where(workspace_builds.c.transition == "delete")
    .correlate(workspace_builds)
    .exists()
)
"""A build that deleted a workspace without a daemon: an abandonment. It destroyed nothing."""


async def is_abandoned(tx: Tx, build_id: UUID) -> bool:
    """Return whether a workspace's last build was an abandonment."""
    return (
        await tx.execute(select(workspace_builds.c.id).where(workspace_builds.c.id == build_id, _ABANDONED))
    ).scalar() is not None


async def sum_daily_cost(tx: Tx, owner_id: UUID, organization_id: UUID) -> int:
    """Return the daily credits of an owner's living workspaces, and of abandoned ones without confirmation."""
    query = (
        select(func.coalesce(func.sum(workspace_builds.c.daily_cost), 0))
        .select_from(workspaces)
        .join(workspace_builds, workspace_builds.c.id == workspaces.c.latest_build_id)
        .where(
            workspaces.c.owner_id == owner_id,
            workspaces.c.organization_id == organization_id,
            or_(~workspaces.c.deleted, and_(workspace_builds.c.daily_cost > 0, _ABANDONED)),
        )
    )
    return int((await tx.execute(query)).scalar_one())
