"""Queries on staged rollouts of template versions."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING, TypedDict, Unpack
from uuid import UUID

from sqlalchemy import and_, case, func, insert, literal, select, update

from coder.coderd.store.engine.rows import column_values
from coder.coderd.store.engine.sql_types import Query, SqlRow
from coder.coderd.store.provisioning.jobs import STATUS
from coder.coderd.store.site.site_settings import PREBUILDS_USER_ID
from coder.coderd.store.tables.builds import workspace_builds
from coder.coderd.store.tables.jobs import provisioner_jobs
from coder.coderd.store.tables.people import group_members, groups, users
from coder.coderd.store.tables.rollouts import template_rollouts
from coder.coderd.store.tables.templates import template_versions, templates
from coder.coderd.store.tables.workspaces import workspaces
from coder.domain.templates.rollouts import OPEN, Offer, RolloutStatus

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx


@dataclass(frozen=True, slots=True)
class RolloutRow:
    """Rollout of a template's version."""

    id: UUID
    template_id: UUID
    template_version_id: UUID
    former_version_id: UUID
    group_id: UUID | None
    stages: Sequence[int]
    percent: int
    status: RolloutStatus
    message: str
    failure_percent: int
    minimum_builds: int
    created_by: UUID
    created_at: datetime
    updated_at: datetime
    stage_started_at: datetime
    ended_at: datetime | None

    @property
    def offer(self) -> Offer:
        """Facts for `coder/domain/templates/rollouts.py`. The rollout is open."""
        return Offer(self.id, self.template_version_id, self.percent, self.status == "running")


@dataclass(frozen=True, slots=True)
class RolloutView:
    """Rollout with the names its page shows; empty for what no longer exists."""

    rollout: RolloutRow
    version_name: str
    former_version_name: str
    group_name: str
    created_by_name: str


class RolloutChanges(TypedDict, total=False):
    """Columns of `template_rollouts` that change, by name."""

    percent: int
    status: RolloutStatus
    message: str
    updated_at: datetime
    stage_started_at: datetime
    ended_at: datetime | None


_rollouts, _builds, _jobs = template_rollouts, workspace_builds, provisioner_jobs
COLUMNS = tuple(_rollouts.c[field.name] for field in fields(RolloutRow))
_COUNT = len(COLUMNS)
_IS_OPEN = _rollouts.c.status.in_(OPEN)
_former = template_versions.alias("former_versions")

_APPLIES = and_(
    _IS_OPEN,
    ~templates.c.deleted,
    templates.c.active_version_id == _rollouts.c.former_version_id,
    ~template_versions.c.archived,
)
"""Whether an open rollout still has what it began with. A server of an earlier version may have changed it."""

_WITH_TEMPLATE = (
    select(*COLUMNS)
    .join(templates, templates.c.id == _rollouts.c.template_id)
    .join(template_versions, template_versions.c.id == _rollouts.c.template_version_id)
)
_VIEWS = (
    select(
        *COLUMNS,
        template_versions.c.name,
        func.coalesce(_former.c.name, ""),
        func.coalesce(func.nullif(groups.c.display_name, ""), groups.c.name, ""),
        users.c.username,
    )
    .join(template_versions, template_versions.c.id == _rollouts.c.template_version_id)
    .outerjoin(_former, _former.c.id == _rollouts.c.former_version_id)
    .outerjoin(groups, groups.c.id == _rollouts.c.group_id)
    .join(users, users.c.id == _rollouts.c.created_by)
)


async def insert_rollout(tx: Tx, rollout: RolloutRow) -> None:
    """Insert a rollout. Raises IntegrityError on `ix_template_rollouts_open` while the template has an open one."""
    await tx.execute(insert(_rollouts).values(column_values(rollout)))


async def hold_group(tx: Tx, group_id: UUID) -> bool:
    """Return whether the group exists, and keep it until the transaction ends."""
    statement = select(groups.c.id).where(groups.c.id == group_id).with_for_update(read=True, key_share=True)
    return (await tx.execute(statement)).one_or_none() is not None


async def note_group_deleted(tx: Tx, group_id: UUID, message: str) -> None:
    """Set the message of open rollouts that begin with a group, which is about to be deleted."""
    await tx.execute(update(_rollouts).where(_rollouts.c.group_id == group_id, _IS_OPEN).values(message=message))


async def update_rollout(tx: Tx, rollout_id: UUID, **values: Unpack[RolloutChanges]) -> None:
    """Change a rollout. The transaction has locked its template."""
    await tx.execute(update(_rollouts).where(_rollouts.c.id == rollout_id).values(**values))


async def find_open(tx: Tx, template_id: UUID) -> RolloutRow | None:
    """Return the template's running or stopped rollout, also one that no longer applies."""
    statement = select(*COLUMNS).where(_rollouts.c.template_id == template_id, _IS_OPEN)
    row = (await tx.execute(statement)).one_or_none()
    return RolloutRow(*row) if row else None


async def list_applying(tx: Tx, template_ids: Collection[UUID]) -> dict[UUID, RolloutRow]:
    """Return the open rollouts that decide what workspaces of these templates are offered, by template."""
    statement = _WITH_TEMPLATE.where(_rollouts.c.template_id.in_(template_ids), _APPLIES)
    return {row[1]: RolloutRow(*row) for row in await tx.execute(statement)}


async def list_open_templates(tx: Tx) -> list[UUID]:
    """Return the templates with an open rollout, oldest rollout first."""
    statement = select(_rollouts.c.template_id).where(_IS_OPEN).order_by(_rollouts.c.created_at)
    return list((await tx.execute(statement)).scalars())


async def list_views(tx: Tx, template_id: UUID, limit: int) -> list[RolloutView]:
    """Return the latest rollouts of a template, the latest first."""
    statement = _VIEWS.where(_rollouts.c.template_id == template_id)
    rows = await tx.execute(statement.order_by(_rollouts.c.created_at.desc(), _rollouts.c.id).limit(limit))
    return [_view(row) for row in rows]


def _view(row: SqlRow) -> RolloutView:
    return RolloutView(RolloutRow(*row[:_COUNT]), *row[_COUNT:])


@dataclass(frozen=True, slots=True)
class RolloutWorkspace:
    """Workspace of a template with a rollout."""

    id: UUID
    version_id: UUID | None
    "Version of its latest build."
    has_succeeded: bool
    "Whether the job of that build succeeded."
    in_group: bool
    "Whether its owner is in the rollout's group."


def _in_group(group_id: UUID | None) -> Query:
    """Return the subquery of the group's members; empty without a group."""
    return select(group_members.c.user_id).where(
        group_members.c.group_id == group_id if group_id is not None else literal(False)
    )


async def list_workspaces(tx: Tx, rollout: RolloutRow) -> list[RolloutWorkspace]:
    """Return the workspaces of the rollout's template.

    Deleted and unclaimed prebuilt workspaces are left out: the latter always have the active version.
    """
    statement = (
        select(
            workspaces.c.id,
            _builds.c.template_version_id,
            func.coalesce(STATUS == "succeeded", False),
            workspaces.c.owner_id.in_(_in_group(rollout.group_id)),
        )
        .outerjoin(_builds, _builds.c.id == workspaces.c.latest_build_id)
        .outerjoin(_jobs, _jobs.c.id == _builds.c.job_id)
        .where(
            workspaces.c.template_id == rollout.template_id,
            ~workspaces.c.deleted,
            workspaces.c.owner_id != PREBUILDS_USER_ID,
        )
    )
    return [RolloutWorkspace(*row) for row in await tx.execute(statement)]


@dataclass(frozen=True, slots=True)
class RolloutBuild:
    """Start with a rollout's version."""

    workspace_id: UUID
    in_group: bool
    status: str


_OUTCOME = case((_jobs.c.canceled_at.is_not(None), "canceled"), else_=STATUS)
"""A canceled build that failed tells nothing about its version."""


async def list_builds(tx: Tx, rollout: RolloutRow) -> list[RolloutBuild]:
    """Return starts with the rollout's version that were queued since its current stage began."""
    statement = (
        select(_builds.c.workspace_id, workspaces.c.owner_id.in_(_in_group(rollout.group_id)), _OUTCOME)
        .join(workspaces, workspaces.c.id == _builds.c.workspace_id)
        .join(_jobs, _jobs.c.id == _builds.c.job_id)
        .where(
            workspaces.c.template_id == rollout.template_id,
            _builds.c.template_version_id == rollout.template_version_id,
            _builds.c.transition == "start",
            _builds.c.created_at >= rollout.stage_started_at,
        )
    )
    return [RolloutBuild(*row) for row in await tx.execute(statement)]


async def list_members(tx: Tx, group_id: UUID) -> set[UUID]:
    """Return the users in a rollout's group."""
    return set((await tx.execute(_in_group(group_id))).scalars())


@dataclass(frozen=True, slots=True)
class CurrentVersion:
    """Workspace with the version of its latest build, and the active version of its template."""

    id: UUID
    template_id: UUID
    owner_id: UUID
    active_version_id: UUID
    version_id: UUID | None


async def list_current_versions(tx: Tx, workspace_ids: Collection[UUID]) -> list[CurrentVersion]:
    """Return those workspaces that are not deleted."""
    statement = (
        select(
            workspaces.c.id,
            workspaces.c.template_id,
            workspaces.c.owner_id,
            templates.c.active_version_id,
            _builds.c.template_version_id,
        )
        .join(templates, templates.c.id == workspaces.c.template_id)
        .outerjoin(_builds, _builds.c.id == workspaces.c.latest_build_id)
        .where(workspaces.c.id.in_(workspace_ids), ~workspaces.c.deleted)
    )
    return [CurrentVersion(*row) for row in await tx.execute(statement)]
