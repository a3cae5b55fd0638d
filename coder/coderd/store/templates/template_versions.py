"""Queries on template versions and the results of their imports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING, TypedDict, Unpack
from uuid import UUID

from sqlalchemy import and_, delete, exists, func, insert, or_, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from coder.base.json_types import JsonObject
from coder.coderd.store.engine.rows import column_values
from coder.coderd.store.engine.sql_types import ColumnValues, Query, SqlRow
from coder.coderd.store.engine.turns import insert_rows
from coder.coderd.store.provisioning.jobs import STATUS
from coder.coderd.store.tables.builds import workspace_builds
from coder.coderd.store.tables.jobs import provisioner_jobs
from coder.coderd.store.tables.people import users
from coder.coderd.store.tables.rollouts import template_rollouts
from coder.coderd.store.tables.templates import (
    template_version_parameters,
    template_version_presets,
    template_version_terraform,
    template_version_variables,
    template_version_workspace_tags,
    template_versions,
    templates,
)
from coder.coderd.store.tables.workspaces import workspaces
from coder.domain.templates.rollouts import OPEN

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx

_parameters = template_version_parameters
_variables = template_version_variables
_tags = template_version_workspace_tags


@dataclass(frozen=True, slots=True)
class VersionRow:
    """Version of a template, or of none yet."""

    id: UUID
    template_id: UUID | None
    organization_id: UUID
    name: str
    message: str
    readme: str
    job_id: UUID
    created_by: UUID
    created_at: datetime
    updated_at: datetime
    archived: bool
    has_ai_task: bool
    has_external_agent: bool
    source_example_id: str
    external_auth_providers: list[JsonObject]


@dataclass(frozen=True, slots=True)
class VersionView:
    """Version with its author."""

    version: VersionRow
    username: str
    name: str
    avatar_url: str


@dataclass(frozen=True, slots=True)
class ParameterRow:
    """Parameter from an import."""

    template_version_id: UUID
    name: str
    display_name: str
    description: str
    type: str
    form_type: str
    mutable: bool
    default_value: str
    icon: str
    options: list[dict[str, str]]
    validation_regex: str
    validation_error: str
    validation_min: int | None
    validation_max: int | None
    validation_monotonic: str
    required: bool
    ephemeral: bool
    display_order: int


@dataclass(frozen=True, slots=True)
class VariableRow:
    """Terraform variable with its effective value."""

    template_version_id: UUID
    name: str
    description: str
    type: str
    value: str
    default_value: str
    required: bool
    sensitive: bool


@dataclass(frozen=True, slots=True)
class PresetRow:
    """Preset: a named set of parameter values."""

    id: UUID
    template_version_id: UUID
    name: str
    description: str
    icon: str
    is_default: bool
    parameters: list[dict[str, str]]
    desired_instances: int | None
    expire_after_seconds: int
    scheduling_timezone: str
    schedules: list[JsonObject]
    created_at: datetime


COLUMNS = tuple(template_versions.c[field.name] for field in fields(VersionRow))
_COUNT = len(COLUMNS)


async def insert_version(tx: Tx, version: VersionRow) -> None:
    """Insert a version. Raises IntegrityError on `uq_template_versions_template_id_name` when the template has that
    name."""
    await tx.execute(insert(template_versions).values(column_values(version)))


class VersionChanges(TypedDict, total=False):
    """Columns of `template_versions` that may be set, by name."""

    template_id: UUID | None
    organization_id: UUID
    name: str
    message: str
    readme: str
    job_id: UUID
    created_by: UUID
    created_at: datetime
    updated_at: datetime
    archived: bool
    has_ai_task: bool
    has_external_agent: bool
    source_example_id: str
    external_auth_providers: list[JsonObject]


async def update_version(tx: Tx, version_id: UUID, **values: Unpack[VersionChanges]) -> None:
    """Update a version. Raises IntegrityError like `insert_version`."""
    await tx.execute(update(template_versions).where(template_versions.c.id == version_id).values(**values))


def select_views() -> Query:
    return select(*COLUMNS, users.c.username, users.c.name, users.c.avatar_url).join(
        users, users.c.id == template_versions.c.created_by
    )


def version_view(row: SqlRow) -> VersionView:
    return VersionView(VersionRow(*row[:_COUNT]), *row[_COUNT:])


async def list_views(
    tx: Tx,
    template_id: UUID,
    *,
    include_archived: bool = False,
    after: VersionRow | None = None,
    limit: int = 0,
    offset: int = 0,
) -> list[VersionView]:
    """Return versions, oldest first; `after` starts behind that one."""
    query = select_views().where(template_versions.c.template_id == template_id)
    if not include_archived:
        query = query.where(template_versions.c.archived.is_(False))
    if after is not None:
        later = template_versions.c.created_at > after.created_at
        same = and_(template_versions.c.created_at == after.created_at, template_versions.c.id > after.id)
        query = query.where(or_(later, same))
    query = query.order_by(template_versions.c.created_at, template_versions.c.id)
    if limit:
        query = query.limit(limit)
    return [version_view(row) for row in await tx.execute(query.offset(offset))]


async def archive_unused(tx: Tx, template_id: UUID, *, only_failed: bool, now: datetime) -> list[UUID]:
    """Archive inactive versions that no workspace's latest build needs; return them by name."""
    newest = (
        select(func.max(workspace_builds.c.build_number))
        .where(workspace_builds.c.workspace_id == workspaces.c.id)
        .correlate(workspaces)
        .scalar_subquery()
    )
    in_use = exists(
        select(workspace_builds.c.id)
        .select_from(workspace_builds.join(workspaces, workspaces.c.id == workspace_builds.c.workspace_id))
        .where(
            workspaces.c.deleted.is_(False),
            workspace_builds.c.template_version_id == template_versions.c.id,
            workspace_builds.c.build_number == newest,
        )
        .correlate(template_versions)
    )
    unfinished = exists(
        select(provisioner_jobs.c.id)
        .where(provisioner_jobs.c.id == template_versions.c.job_id, STATUS.in_(("pending", "running", "canceling")))
        .correlate(template_versions)
    )
    active = exists(
        select(templates.c.id)
        .where(templates.c.active_version_id == template_versions.c.id)
        .correlate(template_versions)
    )
    staged = exists(
        select(template_rollouts.c.id)
        .where(template_rollouts.c.template_version_id == template_versions.c.id, template_rollouts.c.status.in_(OPEN))
        .correlate(template_versions)
    )
    conditions = [
        template_versions.c.template_id == template_id,
        template_versions.c.archived.is_(False),
        ~in_use,
        ~unfinished,
        ~active,
        ~staged,
    ]
    if only_failed:
        conditions.append(
            exists(
                select(provisioner_jobs.c.id)
                .where(provisioner_jobs.c.id == template_versions.c.job_id, STATUS == "failed")
                .correlate(template_versions)
            )
        )
    query = (
        update(template_versions)
        .where(*conditions)
        .values(archived=True, updated_at=now)
        .returning(template_versions.c.id, template_versions.c.name)
    )
    rows = (await tx.execute(query)).all()
    return [row.id for row in sorted(rows, key=lambda row: row.name)]


async def replace_parameters(tx: Tx, version_id: UUID, rows: Sequence[ParameterRow]) -> None:
    await tx.execute(delete(_parameters).where(_parameters.c.template_version_id == version_id))
    await insert_rows(tx, _parameters, (column_values(row) for row in rows))


async def list_parameters(tx: Tx, version_id: UUID) -> list[ParameterRow]:
    """Return parameters in the order of a form."""
    columns = [_parameters.c[field.name] for field in fields(ParameterRow)]
    query = (
        select(*columns)
        .where(_parameters.c.template_version_id == version_id)
        .order_by(_parameters.c.display_order, func.lower(_parameters.c.name))
    )
    return [ParameterRow(*row) for row in await tx.execute(query)]


async def replace_variables(tx: Tx, version_id: UUID, rows: Sequence[VariableRow]) -> None:
    await tx.execute(delete(_variables).where(_variables.c.template_version_id == version_id))
    await insert_rows(tx, _variables, (column_values(row) for row in rows))


async def list_variables(tx: Tx, version_id: UUID) -> list[VariableRow]:
    """Return variables by name."""
    columns = [_variables.c[field.name] for field in fields(VariableRow)]
    query = select(*columns).where(_variables.c.template_version_id == version_id).order_by(_variables.c.name)
    return [VariableRow(*row) for row in await tx.execute(query)]


async def replace_presets(tx: Tx, version_id: UUID, rows: Sequence[PresetRow]) -> None:
    await tx.execute(
        delete(template_version_presets).where(template_version_presets.c.template_version_id == version_id)
    )
    await insert_rows(tx, template_version_presets, (column_values(row) for row in rows))


async def list_presets(tx: Tx, version_id: UUID) -> list[PresetRow]:
    """Return presets by name."""
    columns = [template_version_presets.c[field.name] for field in fields(PresetRow)]
    query = (
        select(*columns)
        .where(template_version_presets.c.template_version_id == version_id)
        .order_by(func.lower(template_version_presets.c.name))
    )
    return [PresetRow(*row) for row in await tx.execute(query)]


async def replace_workspace_tags(tx: Tx, version_id: UUID, tags: Mapping[str, str]) -> None:
    await tx.execute(delete(_tags).where(_tags.c.template_version_id == version_id))
    rows: list[ColumnValues] = [
        {"template_version_id": version_id, "key": key, "value": value} for key, value in tags.items()
    ]
    await insert_rows(tx, _tags, rows)


async def list_workspace_tags(tx: Tx, version_id: UUID) -> dict[str, str]:
    """Return expression texts by tag."""
    query = select(_tags.c.key, _tags.c.value).where(_tags.c.template_version_id == version_id).order_by(_tags.c.key)
    return {row.key: row.value for row in await tx.execute(query)}


async def put_terraform(
    tx: Tx, version_id: UUID, *, cached_plan: bytes, module_files_id: UUID | None, now: datetime
) -> None:
    values = {"cached_plan": cached_plan, "module_files_id": module_files_id, "updated_at": now}
    query = upsert(template_version_terraform).values(template_version_id=version_id, **values)
    await tx.execute(query.on_conflict_do_update(index_elements=["template_version_id"], set_=values))


async def get_module_files_id(tx: Tx, version_id: UUID) -> UUID | None:
    """Return the file with the version's Terraform modules, if its import kept any."""
    table = template_version_terraform
    query = select(table.c.module_files_id).where(table.c.template_version_id == version_id)
    return (await tx.execute(query)).scalar_one_or_none()


async def get_terraform(tx: Tx, version_id: UUID) -> tuple[bool, UUID | None]:
    """Return whether the import left the inputs of rendering, and its file of modules if there is one."""
    table = template_version_terraform
    query = select(table.c.module_files_id).where(table.c.template_version_id == version_id)
    row = (await tx.execute(query)).one_or_none()
    return (False, None) if row is None else (True, row.module_files_id)


async def is_module_file_of_worker(tx: Tx, worker_id: UUID, file_id: UUID) -> bool:
    """Return whether this file of modules belongs to the version of a build that a daemon runs."""
    table, jobs = template_version_terraform, provisioner_jobs.c
    query = (
        select(table.c.template_version_id)
        .join(workspace_builds, workspace_builds.c.template_version_id == table.c.template_version_id)
        .join(provisioner_jobs, jobs.id == workspace_builds.c.job_id)
        .where(table.c.module_files_id == file_id, jobs.worker_id == worker_id, jobs.completed_at.is_(None))
        .limit(1)
    )
    return (await tx.execute(query)).one_or_none() is not None
