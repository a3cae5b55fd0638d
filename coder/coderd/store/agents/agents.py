"""Queries on agents themselves; their children have files of their own in this folder.

An agent may connect to the server while its build is the newest of a living workspace: `get_agent_by_token` and
`get_current_agent` apply that rule, the others do not. The service checks that the owner is not suspended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypedDict, Unpack
from uuid import UUID

from sqlalchemy import JSON, ColumnElement, Select, and_, bindparam, exists, func, select, update
from sqlalchemy.dialects.postgresql import ARRAY, insert

from coder.coderd.store.agents.agent_apps import AppRow, put_app
from coder.coderd.store.agents.agent_metadata import MetadataRow
from coder.coderd.store.agents.agent_scripts import ScriptRow
from coder.coderd.store.engine.metadata import Uuid
from coder.coderd.store.engine.prepared_statements import PreparedStatement
from coder.coderd.store.engine.rows import column_values, json_time
from coder.coderd.store.engine.turns import insert_rows
from coder.coderd.store.tables.agents import (
    workspace_agent_log_sources,
    workspace_agent_metadata,
    workspace_agent_scripts,
    workspace_agent_tokens,
    workspace_agents,
    workspace_apps,
)
from coder.coderd.store.tables.builds import workspace_builds
from coder.coderd.store.tables.people import users
from coder.coderd.store.tables.workspaces import workspaces

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx

select_agents = workspace_agents
_IDS = bindparam("ids", type_=ARRAY(Uuid))


@dataclass(frozen=True, slots=True)
class AgentRow:
    """Agent of one build."""

    id: UUID
    parent_id: UUID | None
    created_at: datetime
    updated_at: datetime
    resource_id: UUID
    job_id: UUID
    name: str
    auth_token: UUID
    auth_instance_id: str | None
    api_key_scope: str
    architecture: str
    operating_system: str
    environment_variables: dict[str, str] | None
    directory: str
    expanded_directory: str
    version: str
    api_version: str
    subsystems: list[str]
    first_connected_at: datetime | None
    last_connected_at: datetime | None
    disconnected_at: datetime | None
    lifecycle_state: str
    started_at: datetime | None
    ready_at: datetime | None
    connection_timeout_seconds: int
    troubleshooting_url: str
    motd_file: str
    display_apps: list[str]
    display_order: int
    logs_length: int
    logs_overflowed: bool
    resources_monitoring: dict[str, Any]
    devcontainers: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class CurrentAgent:
    """Current agent, its workspace and its owner: the facts needed to authorize and serve it."""

    agent: AgentRow
    workspace_id: UUID
    workspace_name: str
    owner_id: UUID
    owner_username: str
    owner_status: str
    organization_id: UUID
    template_id: UUID
    user_acl: dict[str, str]
    group_acl: dict[str, str]
    dormant_at: datetime | None
    build_id: UUID
    build_number: int
    rotated_token: UUID | None = None
    """Rotated token it was found by, if it is not the template's."""


@dataclass(frozen=True, slots=True)
class LogSourceRow:
    agent_id: UUID
    id: UUID
    created_at: datetime
    display_name: str
    icon: str


@dataclass(frozen=True, slots=True)
class AgentDetail:
    """An agent with its log sources (in no particular order)."""

    agent: AgentRow
    log_sources: list[LogSourceRow]


AGENT_COLUMNS = tuple(select_agents.c[field.name] for field in fields(AgentRow))

PLACE: Select[Any] = (
    select(
        *AGENT_COLUMNS,
        workspaces.c.id,
        workspaces.c.name,
        workspaces.c.owner_id,
        users.c.username,
        users.c.status,
        workspaces.c.organization_id,
        workspaces.c.template_id,
        workspaces.c.user_acl,
        workspaces.c.group_acl,
        workspaces.c.dormant_at,
        workspace_builds.c.id,
        workspace_builds.c.build_number,
    )
    .join(workspace_builds, workspace_builds.c.job_id == select_agents.c.job_id)
    .join(
        workspaces,
        # the newest build only: an older build's agents are history
        and_(workspaces.c.id == workspace_builds.c.workspace_id, workspaces.c.latest_build_id == workspace_builds.c.id),
    )
    .join(users, users.c.id == workspaces.c.owner_id)
    .where(~workspaces.c.deleted, ~select_agents.c.deleted)
)


def current_agent(row: Any) -> CurrentAgent:
    count = len(AGENT_COLUMNS)
    return CurrentAgent(AgentRow(*row[:count]), *row[count:])


_tokens = workspace_agent_tokens
_OF_PLACE = and_(
    _tokens.c.workspace_id == workspaces.c.id,
    _tokens.c.agent_name == select_agents.c.name,
    _tokens.c.template_token == select_agents.c.auth_token,
)
_newer = _tokens.alias("newer")
_REPLACED = exists().where(
    _newer.c.workspace_id == _tokens.c.workspace_id,
    _newer.c.agent_name == _tokens.c.agent_name,
    _newer.c.template_token == _tokens.c.template_token,
    _newer.c.generation > _tokens.c.generation,
    _newer.c.used_at.is_not(None),
)


async def get_agent_by_token(tx: Tx, token: UUID) -> CurrentAgent | None:
    """Return the current agent a token belongs to, unless a newer generation of the token has been used.

    Terraform keeps a token over builds, so older rows may carry it, too.
    """
    template_is_out = exists().where(_OF_PLACE, _tokens.c.used_at.is_not(None))
    row = (await tx.execute(PLACE.where(select_agents.c.auth_token == token, ~template_is_out))).first()
    if row is not None:
        return current_agent(row)
    rotated = PLACE.join(_tokens, _OF_PLACE).where(_tokens.c.token == token, ~_REPLACED)
    row = (await tx.execute(rotated)).first()
    return replace(current_agent(row), rotated_token=token) if row else None


async def list_agents_by_instance(tx: Tx, instance_id: str) -> list[CurrentAgent]:
    """Return the current agents that report this cloud machine, newest first."""
    query = (
        PLACE.where(select_agents.c.auth_instance_id == instance_id)
        .order_by(select_agents.c.created_at.desc())
        .limit(100)
    )
    return [current_agent(row) for row in await tx.execute(query)]


async def list_current_agents(tx: Tx, owner_id: UUID) -> list[CurrentAgent]:
    """Return every current agent of an owner's living workspaces."""
    rows = await tx.execute(PLACE.where(workspaces.c.owner_id == owner_id).order_by(select_agents.c.id))
    return [current_agent(row) for row in rows]


async def list_agents_where(tx: Tx, condition: ColumnElement[bool]) -> list[CurrentAgent]:
    """Return every current agent of living workspaces that match a condition on them (and their owners)."""
    rows = await tx.execute(PLACE.where(condition).order_by(users.c.username, workspaces.c.name, select_agents.c.name))
    return [current_agent(row) for row in rows]


_sources = workspace_agent_log_sources
# Children as JSON inside their parents' rows save a statement for every page of workspaces.
_SOURCES_OF_AGENT = (
    select(
        func.json_agg(
            func.json_build_array(
                _sources.c.id,
                _sources.c.created_at,
                _sources.c.display_name,
                _sources.c.icon,
            ),
            type_=JSON,
        )
    )
    .where(_sources.c.agent_id == select_agents.c.id)
    .scalar_subquery()
)
DETAILS = select(*AGENT_COLUMNS, _SOURCES_OF_AGENT).where(~select_agents.c.deleted)
_BY_JOBS = PreparedStatement(DETAILS.where(select_agents.c.job_id == func.any(_IDS)))


async def list_agents_of_jobs(tx: Tx, job_ids: Sequence[UUID]) -> list[AgentDetail]:
    return [agent_detail(row) for row in await _BY_JOBS.fetch(tx, ids=job_ids)]


def agent_detail(row: Any) -> AgentDetail:
    agent = AgentRow(*row[:-1])
    sources = [LogSourceRow(agent.id, UUID(s[0]), json_time(s[1]), s[2], s[3]) for s in row[-1] or ()]
    return AgentDetail(agent, sources)


async def list_sub_agents(tx: Tx, parent_id: UUID) -> list[AgentRow]:
    query = select(*AGENT_COLUMNS).where(select_agents.c.parent_id == parent_id, ~select_agents.c.deleted)
    return [AgentRow(*row) for row in await tx.execute(query.order_by(select_agents.c.name))]


async def count_sub_agents_made(tx: Tx, job_id: UUID) -> tuple[int, int]:
    """Return how many sub-agents and applications were created since a build, hidden ones included."""
    created = select(select_agents.c.id).where(select_agents.c.job_id == job_id, select_agents.c.parent_id.is_not(None))
    apps = select(func.count()).where(workspace_apps.c.agent_id.in_(created)).scalar_subquery()
    row = (await tx.execute(select(func.count(), apps).select_from(created.subquery()))).one()
    return row[0], row[1]


async def insert_agents(
    tx: Tx,
    agents: Sequence[AgentRow],
    *,
    apps: Sequence[AppRow] = (),
    scripts: Sequence[ScriptRow] = (),
    log_sources: Sequence[LogSourceRow] = (),
    metadata: Sequence[MetadataRow] = (),
) -> None:
    """Insert agents with everything a build defines for them."""
    await insert_rows(tx, select_agents, (column_values(row) for row in agents))
    for app in apps:
        await put_app(tx, app)
    await insert_rows(tx, workspace_agent_scripts, (column_values(row, "exit_code", "status") for row in scripts))
    await insert_rows(tx, workspace_agent_log_sources, (column_values(row) for row in log_sources))
    await insert_rows(tx, workspace_agent_metadata, (column_values(row) for row in metadata))


async def delete_older_agents(tx: Tx, workspace_id: UUID, job_id: UUID) -> None:
    """Hide the agents of every other build of the workspace: they can never reconnect."""
    older = select(workspace_builds.c.job_id).where(
        workspace_builds.c.workspace_id == workspace_id, workspace_builds.c.job_id != job_id
    )
    await tx.execute(
        update(select_agents).where(select_agents.c.job_id.in_(older), ~select_agents.c.deleted).values(deleted=True)
    )


class AgentChanges(TypedDict, total=False):
    """Columns of `workspace_agents` that may be set, by name."""

    parent_id: UUID | None
    created_at: datetime
    updated_at: datetime
    resource_id: UUID
    job_id: UUID
    name: str
    auth_token: UUID
    auth_instance_id: str | None
    api_key_scope: str
    architecture: str
    operating_system: str
    environment_variables: dict[str, str] | None
    directory: str
    expanded_directory: str
    version: str
    api_version: str
    subsystems: list[str]
    first_connected_at: datetime | None
    last_connected_at: datetime | None
    disconnected_at: datetime | None
    lifecycle_state: str
    started_at: datetime | None
    ready_at: datetime | None
    connection_timeout_seconds: int
    troubleshooting_url: str
    motd_file: str
    display_apps: list[str]
    display_order: int
    logs_length: int
    logs_overflowed: bool
    resources_monitoring: dict[str, Any]
    devcontainers: list[dict[str, Any]]
    deleted: bool


async def update_agent(tx: Tx, agent_id: UUID, **values: Unpack[AgentChanges]) -> None:
    """Set columns by name: lifecycle, startup facts, connection times."""
    await tx.execute(update(select_agents).where(select_agents.c.id == agent_id).values(**values))


async def end_first_start(tx: Tx, agent_id: UUID, at: datetime) -> bool:
    """Record the end of a start; False when the agent has ended one before."""
    query = update(select_agents).where(select_agents.c.id == agent_id, select_agents.c.first_ready_at.is_(None))
    return (await tx.execute(query.values(first_ready_at=at).returning(select_agents.c.id))).first() is not None


async def mark_connected(
    tx: Tx,
    agent_id: UUID,
    link: UUID,
    now: datetime,
    *,
    api_version: str | None = None,
    path: dict[str, Any] | None = None,
) -> None:
    """Record that a link opened (with an `api_version`) or is alive; `path` is how its pings are answered."""
    values: dict[str, Any] = {
        "link_id": func.coalesce(select_agents.c.link_id, link),
        "first_connected_at": func.coalesce(select_agents.c.first_connected_at, now),
        "last_connected_at": now,
        "updated_at": now,
    }
    if api_version is not None:
        values |= {"api_version": api_version, "link_id": link}
    if path is not None:
        values |= {"path_vitals": path, "path_vitals_at": now}
    await tx.execute(update(select_agents).where(select_agents.c.id == agent_id).values(**values))


async def mark_disconnected(tx: Tx, agent_id: UUID, link: UUID, now: datetime) -> bool:
    """Record that the link closed. `now` must be later than the last `mark_connected` to count. False when a newer link
    is open."""
    disconnected = update(select_agents).where(select_agents.c.id == agent_id, select_agents.c.link_id == link)
    query = disconnected.values(disconnected_at=now, updated_at=now, link_id=None).returning(select_agents.c.id)
    return (await tx.execute(query)).first() is not None


async def delete_agent(tx: Tx, agent_id: UUID) -> None:
    """Hide a sub-agent; its history stays."""
    await tx.execute(update(select_agents).where(select_agents.c.id == agent_id).values(deleted=True))


async def count_log_sources(tx: Tx, agent_id: UUID) -> int:
    """Return the number of log sources; other transactions add none until this one ends."""
    await tx.execute(select(select_agents.c.id).where(select_agents.c.id == agent_id).with_for_update())
    query = select(func.count()).where(_sources.c.agent_id == agent_id)
    return int((await tx.execute(query)).scalar_one())


async def add_log_source(tx: Tx, source: LogSourceRow) -> None:
    """Insert a source; an existing one is kept."""
    await tx.execute(insert(workspace_agent_log_sources).values(column_values(source)).on_conflict_do_nothing())
