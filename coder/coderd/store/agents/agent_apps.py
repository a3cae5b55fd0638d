"""Queries on agents' applications: definition, health and reported statuses."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import JSON, bindparam, delete, func, select, update
from sqlalchemy.dialects.postgresql import ARRAY, aggregate_order_by, insert

from coder.coderd.store.engine.metadata import Uuid
from coder.coderd.store.engine.prepared_statements import PreparedStatement
from coder.coderd.store.engine.rows import column_values, json_time
from coder.coderd.store.engine.sql_types import SqlRow, SqlValues
from coder.coderd.store.tables.agents import workspace_agents, workspace_app_statuses, workspace_apps
from coder.coderd.store.tables.builds import workspace_builds

if TYPE_CHECKING:
    from coder.api.agents.agents import (
        WorkspaceAppHealth,
        WorkspaceAppOpenIn,
        WorkspaceAppSharingLevel,
        WorkspaceAppStatusState,
    )
    from coder.coderd.store.engine.database import Tx

_IDS = bindparam("ids", type_=ARRAY(Uuid))


@dataclass(frozen=True, slots=True)
class AppRow:
    id: UUID
    created_at: datetime
    agent_id: UUID
    slug: str
    display_name: str
    icon: str
    command: str
    url: str
    external: bool
    subdomain: bool
    sharing_level: WorkspaceAppSharingLevel
    healthcheck_url: str
    healthcheck_interval: int
    healthcheck_threshold: int
    health: WorkspaceAppHealth
    display_order: int
    display_group: str
    hidden: bool
    open_in: WorkspaceAppOpenIn
    tooltip: str
    position: int


@dataclass(frozen=True, slots=True)
class AppStatusRow:
    id: UUID
    created_at: datetime
    workspace_id: UUID
    agent_id: UUID
    app_id: UUID
    state: WorkspaceAppStatusState
    message: str
    uri: str


@dataclass(frozen=True, slots=True)
class AppDetail:
    """App with its reported statuses, newest first."""

    app: AppRow
    statuses: list[AppStatusRow]


_APP_COLUMNS = tuple(workspace_apps.c[field.name] for field in fields(AppRow))
_statuses = workspace_app_statuses
KEPT_STATUSES = 256
"""Ours: statuses kept of one app."""
# Children as JSON inside their parents' rows save a statement for every page of workspaces.
_STATUSES_OF_APP = (
    select(
        func.json_agg(
            aggregate_order_by(
                func.json_build_array(
                    _statuses.c.id,
                    _statuses.c.created_at,
                    _statuses.c.workspace_id,
                    _statuses.c.state,
                    _statuses.c.message,
                    _statuses.c.uri,
                ),
                _statuses.c.created_at.desc(),
            ),
            type_=JSON,
        )
    )
    .where(_statuses.c.app_id == workspace_apps.c.id, _statuses.c.agent_id == workspace_apps.c.agent_id)
    .scalar_subquery()
)
_APPS = PreparedStatement(select(*_APP_COLUMNS, _STATUSES_OF_APP).where(workspace_apps.c.agent_id == func.any(_IDS)))


async def list_apps(tx: Tx, agent_ids: Sequence[UUID]) -> list[AppDetail]:
    return [_app_detail(row) for row in await _APPS.fetch(tx, ids=agent_ids)]


def _app_detail(row: SqlRow) -> AppDetail:
    app = AppRow(*row[:-1])
    statuses = [
        AppStatusRow(UUID(s[0]), json_time(s[1]), UUID(s[2]), app.agent_id, app.id, s[3], s[4], s[5])
        for s in row[-1] or ()
    ]
    return AppDetail(app, statuses)


def app_status_from(items: SqlValues) -> AppStatusRow:
    """Return a row from a JSON list, in the order of its fields."""
    ids = [UUID(items[index]) for index in (0, 2, 3, 4)]
    return AppStatusRow(ids[0], json_time(items[1]), ids[1], ids[2], ids[3], items[5], items[6], items[7])


async def put_app(tx: Tx, app: AppRow) -> None:
    """Upsert an app. Terraform keeps an app's id over builds: its row moves to the new agent and keeps its statuses."""
    values = column_values(app)
    statement = insert(workspace_apps).values(values)
    await tx.execute(statement.on_conflict_do_update(index_elements=["id"], set_=values))


async def find_app_workspaces(tx: Tx, app_ids: Collection[UUID]) -> dict[UUID, UUID | None]:
    """Return the workspace of each existing app (None: an import's or a dry run's)."""
    query = (
        select(workspace_apps.c.id, workspace_builds.c.workspace_id)
        .join(workspace_agents, workspace_agents.c.id == workspace_apps.c.agent_id)
        .outerjoin(workspace_builds, workspace_builds.c.job_id == workspace_agents.c.job_id)
        .where(workspace_apps.c.id == func.any(_IDS))
    )
    return {row[0]: row[1] for row in await tx.execute(query, {"ids": list(app_ids)})}


async def update_app_health(tx: Tx, app_id: UUID, health: str) -> None:
    await tx.execute(update(workspace_apps).where(workspace_apps.c.id == app_id).values(health=health))


async def insert_app_status(tx: Tx, row: AppStatusRow) -> None:
    """Insert a status and keep the newest `KEPT_STATUSES` of the app: every view of its agent shows all of them."""
    await tx.execute(insert(_statuses).values(column_values(row)))
    of_app = select(_statuses.c.id).where(_statuses.c.app_id == row.app_id)
    older = of_app.order_by(_statuses.c.created_at.desc(), _statuses.c.id.desc()).offset(KEPT_STATUSES)
    await tx.execute(delete(_statuses).where(_statuses.c.id.in_(older)))


async def list_app_owners(tx: Tx, app_ids: Collection[UUID]) -> dict[UUID, tuple[UUID, str]]:
    """Return agent id and healthcheck URL by app id."""
    query = select(workspace_apps.c.id, workspace_apps.c.agent_id, workspace_apps.c.healthcheck_url)
    rows = await tx.execute(query.where(workspace_apps.c.id.in_(app_ids)))
    return {row[0]: (row[1], row[2]) for row in rows}
