"""Queries on tasks: the joined view for every response, their list, and their last conversations."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import JSON, ColumnElement, and_, func, insert, literal_column, or_, select, true, update
from sqlalchemy.dialects.postgresql import insert as upsert

from coder.base.json_types import JsonObject
from coder.coderd.store.agents.agent_apps import AppStatusRow, app_status_from
from coder.coderd.store.agents.agents import AGENT_COLUMNS, AgentRow
from coder.coderd.store.engine.rows import column_values
from coder.coderd.store.engine.sql_types import Query, SqlRow
from coder.coderd.store.provisioning.jobs import STATUS
from coder.coderd.store.tables.agents import workspace_agents, workspace_apps
from coder.coderd.store.tables.builds import workspace_builds
from coder.coderd.store.tables.jobs import provisioner_jobs
from coder.coderd.store.tables.people import users
from coder.coderd.store.tables.tasks import task_snapshots, tasks
from coder.coderd.store.tables.templates import template_versions, templates
from coder.coderd.store.tables.workspaces import workspaces
from coder.domain.workspaces.builds import WorkspaceStatus, build_status

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx
    from coder.domain.provisioning.jobs import JobStatus


@dataclass(frozen=True, slots=True)
class TaskRow:
    id: UUID
    organization_id: UUID
    owner_id: UUID
    name: str
    display_name: str
    workspace_id: UUID | None
    template_version_id: UUID
    prompt: str
    created_at: datetime
    deleted_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class TaskBuild:
    """The latest build of a task's workspace."""

    number: int
    transition: str
    job_status: JobStatus
    created_at: datetime

    @property
    def status(self) -> WorkspaceStatus:
        """Return the workspace's status."""
        return build_status(self.transition, self.job_status)


@dataclass(frozen=True, slots=True)
class TaskApp:
    """App that reports for a task, in the latest build, with its agent."""

    id: UUID
    slug: str
    url: str
    health: str
    agent: AgentRow


@dataclass(frozen=True, slots=True)
class TaskView:
    """Task with everything a response shows of it."""

    task: TaskRow
    owner_username: str
    owner_avatar_url: str
    template_id: UUID
    template_name: str
    template_display_name: str
    template_icon: str
    workspace_name: str
    workspace_updated_at: datetime | None
    build: TaskBuild | None
    app: TaskApp | None
    app_status: AppStatusRow | None
    """Newest status since the latest build began."""


@dataclass(frozen=True, slots=True)
class TaskReaders:
    """Tasks a caller may see: all, those of some organizations, or its own."""

    everything: bool
    organization_ids: Collection[UUID]
    user_id: UUID
    own_in: Collection[UUID]
    """Organizations where the caller may read its own tasks: a role may deny it."""


@dataclass(frozen=True, slots=True)
class TaskFilter:
    owner_id: UUID | None = None
    organization_id: UUID | None = None
    ids: Collection[UUID] | None = None
    """Ids; None for any."""


@dataclass(frozen=True, slots=True)
class SnapshotRow:
    """Stored conversation, in the form of the app's API."""

    messages: list[JsonObject]
    created_at: datetime


_builds = workspace_builds
COLUMNS = tuple(tasks.c[field.name] for field in fields(TaskRow))
_BUILD = (_builds.c.build_number, _builds.c.transition, STATUS, _builds.c.created_at)
_APP = (workspace_apps.c.id, workspace_apps.c.slug, workspace_apps.c.url, workspace_apps.c.health)
_AROUND = (
    users.c.username,
    users.c.avatar_url,
    templates.c.id,
    templates.c.name,
    templates.c.display_name,
    templates.c.icon,
    func.coalesce(workspaces.c.name, ""),
    workspaces.c.updated_at,
)
_SAID = literal_column(
    """(SELECT json_build_array(s.id, s.created_at, s.workspace_id, s.agent_id, s.app_id, s.state, s.message, s.uri)
        FROM workspace_app_statuses s
        WHERE s.workspace_id = tasks.workspace_id AND s.created_at >= workspace_builds.created_at
        ORDER BY s.created_at DESC LIMIT 1)""",
    JSON,
)
VIEW: Query = (
    select(*COLUMNS, *_AROUND, *_BUILD, *_APP, _SAID.label("said"), *AGENT_COLUMNS)
    .select_from(tasks)
    .join(users, users.c.id == tasks.c.owner_id)
    .join(template_versions, template_versions.c.id == tasks.c.template_version_id)
    .join(templates, templates.c.id == template_versions.c.template_id)
    .outerjoin(workspaces, workspaces.c.id == tasks.c.workspace_id)
    .outerjoin(_builds, _builds.c.id == workspaces.c.latest_build_id)
    .outerjoin(provisioner_jobs, provisioner_jobs.c.id == _builds.c.job_id)
    .outerjoin(workspace_apps, workspace_apps.c.id == _builds.c.ai_task_app_id)
    .outerjoin(
        workspace_agents,
        and_(workspace_agents.c.id == workspace_apps.c.agent_id, workspace_agents.c.job_id == _builds.c.job_id),
    )
)
LIVING = tasks.c.deleted_at.is_(None)


def task_row(row: SqlRow) -> TaskView:
    around = len(COLUMNS)
    build = around + len(_AROUND)
    app = build + len(_BUILD)
    status_at = app + len(_APP)
    owner, avatar, template_id, template, template_title, icon, workspace, updated_at = row[around:build]
    return TaskView(
        TaskRow(*row[:around]),
        owner,
        avatar,
        template_id,
        template,
        template_title,
        icon,
        workspace,
        updated_at,
        build=TaskBuild(*row[build:app]) if row[build] is not None else None,
        app=TaskApp(*[*row[app:status_at], AgentRow(*row[status_at + 1 :])])
        if row[status_at + 1] is not None
        else None,
        app_status=app_status_from(row[status_at]) if row[status_at] else None,
    )


async def list_views(tx: Tx, which: TaskFilter, readers: TaskReaders) -> list[TaskView]:
    """Return tasks, newest first."""
    conditions = [LIVING, _may_read(readers)]
    if which.owner_id is not None:
        conditions.append(tasks.c.owner_id == which.owner_id)
    if which.organization_id is not None:
        conditions.append(tasks.c.organization_id == which.organization_id)
    if which.ids is not None:
        conditions.append(tasks.c.id.in_(list(which.ids)))
    query = VIEW.where(*conditions).order_by(tasks.c.created_at.desc(), tasks.c.id)
    return [task_row(row) for row in await tx.execute(query)]


def _may_read(readers: TaskReaders) -> ColumnElement[bool]:
    if readers.everything:
        return true()
    own = and_(tasks.c.owner_id == readers.user_id, tasks.c.organization_id.in_(list(readers.own_in)))
    return or_(own, tasks.c.organization_id.in_(list(readers.organization_ids)))


async def insert_task(tx: Tx, row: TaskRow) -> None:
    await tx.execute(insert(tasks).values(**column_values(row)))


async def set_prompt(tx: Tx, task_id: UUID, prompt: str) -> None:
    await tx.execute(update(tasks).where(tasks.c.id == task_id).values(prompt=prompt))


async def forget_task(tx: Tx, task_id: UUID, now: datetime) -> None:
    await tx.execute(update(tasks).where(tasks.c.id == task_id, LIVING).values(deleted_at=now))


async def forget_task_of(tx: Tx, workspace_id: UUID, now: datetime) -> None:
    """Delete the task of a deleted workspace."""
    await tx.execute(update(tasks).where(tasks.c.workspace_id == workspace_id, LIVING).values(deleted_at=now))


async def put_snapshot(tx: Tx, task_id: UUID, row: SnapshotRow) -> None:
    values = {"messages": row.messages, "created_at": row.created_at}
    statement = upsert(task_snapshots).values(task_id=task_id, **values)
    await tx.execute(statement.on_conflict_do_update(index_elements=["task_id"], set_=values))
