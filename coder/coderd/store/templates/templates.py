"""Queries on templates."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING, TypedDict, Unpack
from uuid import UUID

from sqlalchemy import Float, extract, func, insert, or_, select, update

from coder.coderd.store.engine.names import holds_text
from coder.coderd.store.engine.prepared_statements import PreparedStatement
from coder.coderd.store.engine.rows import column_values
from coder.coderd.store.engine.sql_types import Query
from coder.coderd.store.site.site_settings import PREBUILDS_USER_ID
from coder.coderd.store.tables.builds import workspace_builds
from coder.coderd.store.tables.jobs import provisioner_jobs
from coder.coderd.store.tables.people import organizations, users
from coder.coderd.store.tables.rollouts import template_rollouts
from coder.coderd.store.tables.templates import template_versions, templates
from coder.coderd.store.tables.workspaces import workspaces
from coder.domain.templates.rollouts import OPEN

if TYPE_CHECKING:
    from coder.api.base.enums import WorkspaceAgentPortShareLevel
    from coder.api.templates.templates import TemplateRole
    from coder.coderd.store.engine.database import Tx


@dataclass(frozen=True, slots=True)
class TemplateRow:
    """Template. Times to live are milliseconds, days are bit masks with Monday = 1."""

    id: UUID
    organization_id: UUID
    name: str
    display_name: str
    description: str
    icon: str
    provisioner: str
    active_version_id: UUID
    created_by: UUID
    created_at: datetime
    updated_at: datetime
    deleted: bool
    deprecated: str
    default_ttl_ms: int
    activity_bump_ms: int
    time_til_autostop_notify_ms: int
    autostop_days: int
    autostop_weeks: int
    autostart_days: int
    allow_user_cancel_workspace_jobs: bool
    allow_user_autostart: bool
    allow_user_autostop: bool
    failure_ttl_ms: int
    time_til_dormant_ms: int
    time_til_dormant_autodelete_ms: int
    require_active_version: bool
    max_port_share_level: WorkspaceAgentPortShareLevel
    cors_behavior: str
    use_classic_parameter_flow: bool
    disable_module_cache: bool
    agents_allowed: bool
    user_acl: Mapping[str, TemplateRole]
    group_acl: Mapping[str, TemplateRole]


@dataclass(frozen=True, slots=True)
class TemplateView:
    """Template with the names its page shows."""

    template: TemplateRow
    organization_name: str
    organization_display_name: str
    organization_icon: str
    created_by_name: str


@dataclass(frozen=True, slots=True)
class TemplateSearch:
    """Filter of templates; None or empty means any."""

    organization_id: UUID | None = None
    organization_name: str = ""
    exact_name: str = ""
    exact_display_name: str = ""
    name: str = ""
    "Part of the name."
    display_name: str = ""
    """Part of the display name, or of the name if it has none."""
    ids: Collection[UUID] = ()
    deleted: bool = False
    deprecated: bool | None = None
    has_ai_task: bool | None = None
    has_external_agent: bool | None = None
    author_id: UUID | None = None
    author_name: str = ""


@dataclass(frozen=True, slots=True)
class BuildTime:
    """Seconds that builds of one transition took."""

    template_id: UUID
    transition: str
    median: float
    p95: float


COLUMNS = tuple(templates.c[field.name] for field in fields(TemplateRow))
COUNT = len(COLUMNS)


async def insert_template(tx: Tx, template: TemplateRow) -> None:
    """Insert a template. Raises IntegrityError on `ix_templates_organization_id_name_living` when the name is taken."""
    await tx.execute(insert(templates).values(column_values(template)))


class TemplateChanges(TypedDict, total=False):
    """Columns of `templates` that may be set, by name."""

    organization_id: UUID
    name: str
    display_name: str
    description: str
    icon: str
    provisioner: str
    active_version_id: UUID
    created_by: UUID
    created_at: datetime
    updated_at: datetime
    deleted: bool
    deprecated: str
    default_ttl_ms: int
    activity_bump_ms: int
    time_til_autostop_notify_ms: int
    autostop_days: int
    autostop_weeks: int
    autostart_days: int
    allow_user_cancel_workspace_jobs: bool
    allow_user_autostart: bool
    allow_user_autostop: bool
    failure_ttl_ms: int
    time_til_dormant_ms: int
    time_til_dormant_autodelete_ms: int
    require_active_version: bool
    max_port_share_level: WorkspaceAgentPortShareLevel
    cors_behavior: str
    use_classic_parameter_flow: bool
    disable_module_cache: bool
    agents_allowed: bool
    user_acl: Mapping[str, TemplateRole]
    group_acl: Mapping[str, TemplateRole]


async def update_template(tx: Tx, template_id: UUID, **values: Unpack[TemplateChanges]) -> None:
    """Update a template. Raises IntegrityError like `insert_template`."""
    await tx.execute(update(templates).where(templates.c.id == template_id).values(**values))


def select_views() -> Query:
    return select(
        *COLUMNS, organizations.c.name, organizations.c.display_name, organizations.c.icon, users.c.username
    ).select_from(
        templates.join(organizations, organizations.c.id == templates.c.organization_id).join(
            users, users.c.id == templates.c.created_by
        )
    )


async def list_views(tx: Tx, which: TemplateSearch) -> list[TemplateView]:
    """Return templates by name."""
    rows = await (_ALL.fetch(tx) if which == TemplateSearch() else tx.execute(_ordered(which)))
    return [TemplateView(TemplateRow(*row[:COUNT]), *row[COUNT:]) for row in rows]


def _ordered(which: TemplateSearch) -> Query:
    return _filtered(select_views(), which).order_by(func.lower(templates.c.name), templates.c.id)


def _filtered(query: Query, which: TemplateSearch) -> Query:
    display_name = func.coalesce(func.nullif(templates.c.display_name, ""), templates.c.name)
    conditions = [templates.c.deleted == which.deleted]
    if which.organization_id is not None:
        conditions.append(templates.c.organization_id == which.organization_id)
    if which.organization_name:
        conditions.append(func.lower(organizations.c.name) == func.lower(which.organization_name))
    if which.exact_name:
        conditions.append(func.lower(templates.c.name) == func.lower(which.exact_name))
    if which.exact_display_name:
        conditions.append(func.lower(templates.c.display_name) == func.lower(which.exact_display_name))
    if which.name:
        conditions.append(holds_text(templates.c.name, which.name))
    if which.display_name:
        conditions.append(holds_text(display_name, which.display_name))
    if which.ids:
        conditions.append(templates.c.id.in_(which.ids))
    if which.deprecated is not None:
        conditions.append((templates.c.deprecated != "") == which.deprecated)
    if which.author_id is not None:
        conditions.append(templates.c.created_by == which.author_id)
    if which.author_name:
        conditions.append(func.lower(users.c.username) == func.lower(which.author_name))
    if which.has_ai_task is not None or which.has_external_agent is not None:
        active = template_versions.alias("active")
        query = query.join(active, active.c.id == templates.c.active_version_id)
        if which.has_ai_task is not None:
            conditions.append(active.c.has_ai_task == which.has_ai_task)
        if which.has_external_agent is not None:
            conditions.append(active.c.has_external_agent == which.has_external_agent)
    return query.where(*conditions)


_ALL = PreparedStatement(_ordered(TemplateSearch()))  # the query of dashboards


async def count_living_workspaces(tx: Tx, template_id: UUID) -> int:
    query = select(func.count()).where(workspaces.c.template_id == template_id, workspaces.c.deleted.is_(False))
    return int((await tx.execute(query)).scalar_one())


async def list_workspace_places(tx: Tx, template_id: UUID) -> list[tuple[UUID, UUID]]:
    """Return owner and id of each workspace of a template that is not deleted."""
    query = select(workspaces.c.owner_id, workspaces.c.id)
    rows = await tx.execute(query.where(workspaces.c.template_id == template_id, workspaces.c.deleted.is_(False)))
    return [(owner, workspace) for owner, workspace in rows]


async def list_build_times(tx: Tx, since: datetime) -> list[BuildTime]:
    """Return medians of every template's successful builds that ended after `since`. Reads all of them: call rarely."""
    took = extract("epoch", provisioner_jobs.c.completed_at - provisioner_jobs.c.started_at).cast(Float)
    query = (
        select(
            workspaces.c.template_id,
            workspace_builds.c.transition,
            func.percentile_cont(0.5).within_group(took),
            func.percentile_cont(0.95).within_group(took),
        )
        .select_from(
            workspace_builds.join(workspaces, workspaces.c.id == workspace_builds.c.workspace_id).join(
                provisioner_jobs, provisioner_jobs.c.id == workspace_builds.c.job_id
            )
        )
        .where(
            provisioner_jobs.c.completed_at > since,
            provisioner_jobs.c.started_at.is_not(None),
            provisioner_jobs.c.error == "",
            provisioner_jobs.c.canceled_at.is_(None),
        )
        .group_by(workspaces.c.template_id, workspace_builds.c.transition)
    )
    return [BuildTime(*row) for row in await tx.execute(query)]


async def count_owners(tx: Tx) -> dict[UUID, int]:
    """Return the number of users with a workspace of each template. Unclaimed prebuilds do not count. Reads all: call
    rarely."""
    query = (
        select(workspaces.c.template_id, func.count(workspaces.c.owner_id.distinct()))
        .where(~workspaces.c.deleted, workspaces.c.owner_id != PREBUILDS_USER_ID)
        .group_by(workspaces.c.template_id)
    )
    return {row[0]: row[1] for row in await tx.execute(query)}


async def uses_version(tx: Tx, version_id: UUID) -> bool:
    """Return whether a template, its open rollout or a living workspace's latest build needs this version."""
    latest = (
        select(func.max(workspace_builds.c.build_number))
        .where(workspace_builds.c.workspace_id == workspaces.c.id)
        .correlate(workspaces)
        .scalar_subquery()
    )
    by_workspace = (
        select(workspace_builds.c.id)
        .select_from(workspace_builds.join(workspaces, workspaces.c.id == workspace_builds.c.workspace_id))
        .where(
            workspaces.c.deleted.is_(False),
            workspace_builds.c.template_version_id == version_id,
            workspace_builds.c.build_number == latest,
        )
        .exists()
    )
    by_template = select(templates.c.id).where(templates.c.active_version_id == version_id).exists()
    by_rollout = (
        select(template_rollouts.c.id)
        .where(template_rollouts.c.template_version_id == version_id, template_rollouts.c.status.in_(OPEN))
        .exists()
    )
    return bool((await tx.execute(select(or_(by_template, by_workspace, by_rollout)))).scalar_one())


async def list_workspace_owners(tx: Tx, template_id: UUID) -> list[UUID]:
    """Return the users with a living workspace of the template."""
    statement = select(workspaces.c.owner_id).where(workspaces.c.template_id == template_id, ~workspaces.c.deleted)
    return list((await tx.execute(statement.distinct())).scalars())
