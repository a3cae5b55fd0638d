"""Queries on workspaces: the joined view for every response, edits. Searching is in `workspace_search.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING, TypedDict, Unpack
from uuid import UUID

from sqlalchemy import JSON, func, literal_column, select, update
from sqlalchemy.dialects.postgresql import insert

from coder.coderd.store.agents.agent_apps import AppStatusRow, app_status_from
from coder.coderd.store.agents.agents import CurrentAgent, list_agents_where
from coder.coderd.store.engine.metadata import Uuid
from coder.coderd.store.engine.sql_types import Query, SqlRow
from coder.coderd.store.tables.builds import workspace_builds
from coder.coderd.store.tables.jobs import provisioner_jobs
from coder.coderd.store.tables.people import organizations
from coder.coderd.store.tables.templates import template_versions, templates
from coder.coderd.store.tables.workspaces import workspaces
from coder.coderd.store.workspaces.builds import VIEW_COLUMNS, BuildView, initiators, make_view, owners

if TYPE_CHECKING:
    from coder.api.base.enums import WorkspaceAgentPortShareLevel
    from coder.api.workspaces.workspaces import AutomaticUpdates, SharedWorkspaceActorType, WorkspaceRole
    from coder.coderd.store.engine.database import Tx


@dataclass(frozen=True, slots=True)
class WorkspaceRow:
    id: UUID
    created_at: datetime
    updated_at: datetime
    owner_id: UUID
    organization_id: UUID
    template_id: UUID
    name: str
    deleted: bool
    autostart_schedule: str | None
    ttl_ms: int | None
    last_used_at: datetime
    dormant_at: datetime | None
    deleting_at: datetime | None
    next_start_at: datetime | None
    automatic_updates: AutomaticUpdates
    favorite: bool
    user_acl: Mapping[str, WorkspaceRole]
    group_acl: Mapping[str, WorkspaceRole]
    latest_build_id: UUID | None


@dataclass(frozen=True, slots=True)
class TemplateBrief:
    """Fields of its template in a response about a workspace."""

    name: str
    display_name: str
    icon: str
    allow_user_cancel_workspace_jobs: bool
    active_version_id: UUID
    require_active_version: bool
    use_classic_parameter_flow: bool
    max_port_share_level: WorkspaceAgentPortShareLevel


@dataclass(frozen=True, slots=True)
class Actor:
    """User or group a workspace is shared with."""

    kind: SharedWorkspaceActorType
    id: UUID
    name: str
    avatar_url: str


@dataclass(frozen=True, slots=True)
class WorkspaceView:
    """Workspace with its latest build and related names."""

    workspace: WorkspaceRow
    organization_name: str
    template: TemplateBrief
    latest: BuildView
    shared_with: list[Actor]
    app_status: AppStatusRow | None
    """Newest status reported by any app of any build."""
    task_id: UUID | None = None
    """Task it was created for."""

    @property
    def owner_username(self) -> str:
        return self.latest.owner_username


COLUMNS = tuple(workspaces.c[f.name] for f in fields(WorkspaceRow))
_TEMPLATE_COLUMNS = tuple(templates.c[f.name] for f in fields(TemplateBrief))
_COUNT, _TEMPLATE_COUNT = len(COLUMNS), len(_TEMPLATE_COLUMNS)

# A stored key that is not an id must not fail whole lists.
_KEY = "CASE WHEN key ~* '^[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}$' THEN key::uuid END"
# Only shared rows pay for the names of their users and groups.
_ACTORS = literal_column(
    f"""CASE WHEN workspaces.user_acl = '{{}}' AND workspaces.group_acl = '{{}}' THEN NULL ELSE (
        SELECT json_agg(json_build_array(kind, id, name, avatar_url) ORDER BY kind DESC, name, id) FROM (
            SELECT 'user' AS kind, u.id, u.name, u.avatar_url FROM users u
            WHERE u.id IN (SELECT {_KEY} FROM jsonb_object_keys(workspaces.user_acl) AS key)
            UNION ALL
            SELECT 'group', g.id, g.name, g.avatar_url FROM groups g
            WHERE g.id IN (SELECT {_KEY} FROM jsonb_object_keys(workspaces.group_acl) AS key)
        ) AS actors) END""",  # noqa: S608 - a constant above, nothing of a caller
    JSON,
)

_APP_STATUS = literal_column(
    """(SELECT json_build_array(s.id, s.created_at, s.workspace_id, s.agent_id, s.app_id, s.state, s.message, s.uri)
        FROM workspace_app_statuses s WHERE s.workspace_id = workspaces.id ORDER BY s.created_at DESC LIMIT 1)""",
    JSON,
)
# Deleted tasks, too: their deleted workspaces still name them.
_TASK = literal_column(
    "(SELECT t.id FROM tasks t WHERE t.workspace_id = workspaces.id ORDER BY t.created_at DESC LIMIT 1)", Uuid
)

VIEW: Query = (
    select(
        *COLUMNS,
        organizations.c.name,
        *_TEMPLATE_COLUMNS,
        _ACTORS.label("actors"),
        _APP_STATUS.label("app_status"),
        _TASK.label("task_id"),
        *VIEW_COLUMNS,
    )
    .select_from(workspaces)
    .join(organizations, organizations.c.id == workspaces.c.organization_id)
    .join(templates, templates.c.id == workspaces.c.template_id)
    .join(owners, owners.c.id == workspaces.c.owner_id)
    .join(workspace_builds, workspace_builds.c.id == workspaces.c.latest_build_id)
    .join(provisioner_jobs, provisioner_jobs.c.id == workspace_builds.c.job_id)
    .join(template_versions, template_versions.c.id == workspace_builds.c.template_version_id)
    .join(initiators, initiators.c.id == workspace_builds.c.initiator_id)
)


def workspace_from(row: SqlRow) -> WorkspaceView:
    end = _COUNT + 1 + _TEMPLATE_COUNT
    actors = [Actor(kind, UUID(key), name, avatar) for kind, key, name, avatar in row[end] or ()]
    return WorkspaceView(
        WorkspaceRow(*row[:_COUNT]),
        row[_COUNT],
        TemplateBrief(*row[_COUNT + 1 : end]),
        make_view(row[end + 3 :]),
        actors,
        app_status_from(row[end + 1]) if row[end + 1] else None,
        row[end + 2],
    )


async def list_with_owners(tx: Tx, ids: Sequence[UUID]) -> list[tuple[WorkspaceRow, str]]:
    """Return workspaces, deleted ones too, with their owners' user names."""
    query = select(*COLUMNS, owners.c.username).join(owners, owners.c.id == workspaces.c.owner_id)
    rows = await tx.execute(query.where(workspaces.c.id.in_(ids)))
    return [(WorkspaceRow(*row[:_COUNT]), row[_COUNT]) for row in rows]


async def list_agents_of(tx: Tx, ids: Sequence[UUID]) -> list[CurrentAgent]:
    """Return the current agents of some workspaces."""
    return await list_agents_where(tx, workspaces.c.id.in_(ids))


async def insert_workspace(tx: Tx, workspace: WorkspaceRow) -> None:
    """Insert a workspace. Raises IntegrityError when the owner has one of that name."""
    await tx.execute(insert(workspaces).values({f.name: getattr(workspace, f.name) for f in fields(WorkspaceRow)}))


class WorkspaceChanges(TypedDict, total=False):
    """Columns of `workspaces` that may be set, by name."""

    created_at: datetime
    updated_at: datetime
    owner_id: UUID
    organization_id: UUID
    template_id: UUID
    name: str
    deleted: bool
    autostart_schedule: str | None
    ttl_ms: int | None
    last_used_at: datetime
    dormant_at: datetime | None
    deleting_at: datetime | None
    next_start_at: datetime | None
    automatic_updates: str
    favorite: bool
    user_acl: Mapping[str, str]
    group_acl: Mapping[str, str]
    latest_build_id: UUID | None


async def update_workspace(tx: Tx, workspace_id: UUID, **values: Unpack[WorkspaceChanges]) -> None:
    """Set columns by name."""
    await tx.execute(update(workspaces).where(workspaces.c.id == workspace_id).values(**values))


async def count_owned(tx: Tx, owner_id: UUID) -> int:
    """Return the number of a user's living workspaces."""
    query = select(func.count()).where(workspaces.c.owner_id == owner_id, ~workspaces.c.deleted)
    return int((await tx.execute(query)).scalar_one())
