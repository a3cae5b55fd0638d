"""Queries on agents themselves; their children have files of their own in this folder.

An agent may connect to the server while its build is the newest of a living workspace: `get_agent_by_token` and
`get_current_agent` apply that rule, the others do not. The service checks that the owner is not suspended.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TypedDict, Unpack
from uuid import UUID

from sqlalchemy import (
    JSON,
    ColumnElement,
    Interval,
    and_,
    any_,
    bindparam,
    exists,
    func,
    literal,
    select,
    text,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY, insert

from coder.base.json_types import JsonObject
from coder.coderd.store.agents.agent_apps import AppRow, put_app
from coder.coderd.store.agents.agent_metadata import MetadataRow
from coder.coderd.store.agents.agent_scripts import ScriptRow
from coder.coderd.store.engine.metadata import Uuid
from coder.coderd.store.engine.prepared_statements import PreparedStatement
from coder.coderd.store.engine.rows import column_values, json_time
from coder.coderd.store.engine.sql_types import Query, SqlRow
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
from coder.coderd.store.workspaces.change_feed import CHANNEL

if TYPE_CHECKING:
    from coder.api.agents.agents import AgentSubsystem, DisplayApp, WorkspaceAgentLifecycle
    from coder.coderd.store.engine.database import Tx

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
    subsystems: list[AgentSubsystem]
    first_connected_at: datetime | None
    last_connected_at: datetime | None
    disconnected_at: datetime | None
    lifecycle_state: WorkspaceAgentLifecycle
    started_at: datetime | None
    ready_at: datetime | None
    connection_timeout_seconds: int
    troubleshooting_url: str
    motd_file: str
    display_apps: list[DisplayApp]
    display_order: int
    logs_length: int
    logs_overflowed: bool
    resources_monitoring: JsonObject
    devcontainers: list[dict[str, str]]


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
    build_initiator_id: UUID
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


AGENT_COLUMNS = tuple(workspace_agents.c[field.name] for field in fields(AgentRow))

PLACE: Query = (
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
        workspace_builds.c.initiator_id,
    )
    .join(workspace_builds, workspace_builds.c.job_id == workspace_agents.c.job_id)
    .join(
        workspaces,
        # the newest build only: an older build's agents are history
        and_(workspaces.c.id == workspace_builds.c.workspace_id, workspaces.c.latest_build_id == workspace_builds.c.id),
    )
    .join(users, users.c.id == workspaces.c.owner_id)
    .where(~workspaces.c.deleted, ~workspace_agents.c.deleted)
)


def current_agent(row: SqlRow) -> CurrentAgent:
    count = len(AGENT_COLUMNS)
    return CurrentAgent(AgentRow(*row[:count]), *row[count:])


_tokens = workspace_agent_tokens
_OF_PLACE = and_(
    _tokens.c.workspace_id == workspaces.c.id,
    _tokens.c.agent_name == workspace_agents.c.name,
    _tokens.c.template_token == workspace_agents.c.auth_token,
)
_newer = _tokens.alias("newer")
_REPLACED = exists().where(
    _newer.c.workspace_id == _tokens.c.workspace_id,
    _newer.c.agent_name == _tokens.c.agent_name,
    _newer.c.template_token == _tokens.c.template_token,
    _newer.c.generation > _tokens.c.generation,
    _newer.c.used_at.is_not(None),
)

_TOKEN = bindparam("token", type_=Uuid)
_TEMPLATE_IS_OUT = exists().where(_OF_PLACE, _tokens.c.used_at.is_not(None))
_BY_TEMPLATE_TOKEN = PreparedStatement(PLACE.where(workspace_agents.c.auth_token == _TOKEN, ~_TEMPLATE_IS_OUT))
_BY_ROTATED_TOKEN = PreparedStatement(PLACE.join(_tokens, _OF_PLACE).where(_tokens.c.token == _TOKEN, ~_REPLACED))


async def get_agent_by_token(tx: Tx, token: UUID) -> CurrentAgent | None:
    """Return the current agent a token belongs to, unless a newer generation of the token has been used.

    Terraform keeps a token over builds, so older rows may carry it, too.
    """
    for row in await _BY_TEMPLATE_TOKEN.fetch(tx, token=token):
        return current_agent(row)
    for row in await _BY_ROTATED_TOKEN.fetch(tx, token=token):
        return replace(current_agent(row), rotated_token=token)
    return None


@dataclass(frozen=True, slots=True)
class ValidToken:
    """Agent that a token belongs to now."""

    agent_id: UUID
    build_id: UUID
    owner_status: str


_VALID = (workspace_agents.c.auth_token, workspace_agents.c.id, workspace_builds.c.id, users.c.status)
_ANY_TOKEN = any_(bindparam("tokens", type_=ARRAY(Uuid)))
_BY_TEMPLATE_TOKENS = PreparedStatement(
    PLACE.with_only_columns(*_VALID, maintain_column_froms=True).where(
        workspace_agents.c.auth_token == _ANY_TOKEN, ~_TEMPLATE_IS_OUT
    )
)
_BY_ROTATED_TOKENS = PreparedStatement(
    PLACE.with_only_columns(_tokens.c.token, *_VALID[1:], maintain_column_froms=True)
    .join(_tokens, _OF_PLACE)
    .where(_tokens.c.token == _ANY_TOKEN, ~_REPLACED)
)


async def find_valid_tokens(tx: Tx, tokens: Collection[UUID]) -> dict[UUID, ValidToken]:
    """Return what `get_agent_by_token` would answer about many tokens, as far as a later check needs it."""
    rows = await _BY_TEMPLATE_TOKENS.fetch(tx, tokens=list(tokens))
    valid = {row[0]: ValidToken(*row[1:]) for row in rows}
    if others := [token for token in tokens if token not in valid]:
        valid |= {row[0]: ValidToken(*row[1:]) for row in await _BY_ROTATED_TOKENS.fetch(tx, tokens=others)}
    return valid


async def list_agents_by_instance(tx: Tx, instance_id: str) -> list[CurrentAgent]:
    """Return the current agents that report this cloud machine, newest first."""
    query = (
        PLACE.where(workspace_agents.c.auth_instance_id == instance_id)
        .order_by(workspace_agents.c.created_at.desc())
        .limit(100)
    )
    return [current_agent(row) for row in await tx.execute(query)]


async def list_current_agents(tx: Tx, owner_id: UUID) -> list[CurrentAgent]:
    """Return every current agent of an owner's living workspaces."""
    rows = await tx.execute(PLACE.where(workspaces.c.owner_id == owner_id).order_by(workspace_agents.c.id))
    return [current_agent(row) for row in rows]


async def list_agents_where(tx: Tx, condition: ColumnElement[bool]) -> list[CurrentAgent]:
    """Return every current agent of living workspaces that match a condition on them (and their owners)."""
    rows = await tx.execute(
        PLACE.where(condition).order_by(users.c.username, workspaces.c.name, workspace_agents.c.name)
    )
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
    .where(_sources.c.agent_id == workspace_agents.c.id)
    .scalar_subquery()
)
DETAILS = select(*AGENT_COLUMNS, _SOURCES_OF_AGENT).where(~workspace_agents.c.deleted)
_BY_JOBS = PreparedStatement(DETAILS.where(workspace_agents.c.job_id == func.any(_IDS)))


async def list_agents_of_jobs(tx: Tx, job_ids: Sequence[UUID]) -> list[AgentDetail]:
    return [agent_detail(row) for row in await _BY_JOBS.fetch(tx, ids=job_ids)]


def agent_detail(row: SqlRow) -> AgentDetail:
    agent = AgentRow(*row[:-1])
    sources = [LogSourceRow(agent.id, UUID(s[0]), json_time(s[1]), s[2], s[3]) for s in row[-1] or ()]
    return AgentDetail(agent, sources)


async def list_sub_agents(tx: Tx, parent_id: UUID) -> list[AgentRow]:
    query = select(*AGENT_COLUMNS).where(workspace_agents.c.parent_id == parent_id, ~workspace_agents.c.deleted)
    return [AgentRow(*row) for row in await tx.execute(query.order_by(workspace_agents.c.name))]


async def count_sub_agents_made(tx: Tx, job_id: UUID) -> tuple[int, int]:
    """Return how many sub-agents and applications were created since a build, hidden ones included."""
    created = select(workspace_agents.c.id).where(
        workspace_agents.c.job_id == job_id, workspace_agents.c.parent_id.is_not(None)
    )
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
    await insert_rows(tx, workspace_agents, (column_values(row) for row in agents))
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
        update(workspace_agents)
        .where(workspace_agents.c.job_id.in_(older), ~workspace_agents.c.deleted)
        .values(deleted=True)
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
    display_apps: list[DisplayApp]
    display_order: int
    logs_length: int
    logs_overflowed: bool
    resources_monitoring: JsonObject
    devcontainers: list[dict[str, str]]
    deleted: bool


async def update_agent(tx: Tx, agent_id: UUID, notice: str = "", **values: Unpack[AgentChanges]) -> None:
    """Set columns by name: lifecycle, startup facts, connection times. A `notice` is sent by the same statement."""
    query = update(workspace_agents).where(workspace_agents.c.id == agent_id).values(**values)
    await tx.execute(query.returning(func.pg_notify(CHANNEL, notice)) if notice else query)


async def end_first_start(tx: Tx, agent_id: UUID, at: datetime) -> bool:
    """Record the end of a start; False when the agent has ended one before."""
    query = update(workspace_agents).where(
        workspace_agents.c.id == agent_id, workspace_agents.c.first_ready_at.is_(None)
    )
    return (await tx.execute(query.values(first_ready_at=at).returning(workspace_agents.c.id))).first() is not None


@dataclass(frozen=True, slots=True)
class AliveLink:
    """Link of an agent that is alive, with the readings of its pings."""

    agent_id: UUID
    link_id: UUID
    path: JsonObject | None


_MARK_ALIVE = text(
    "UPDATE workspace_agents a SET link_id = COALESCE(a.link_id, alive.link), "
    "first_connected_at = COALESCE(a.first_connected_at, :now), last_connected_at = :now, updated_at = :now, "
    "path_vitals = COALESCE(CAST(alive.path AS jsonb), a.path_vitals), "
    "path_vitals_at = CASE WHEN alive.path IS NULL THEN a.path_vitals_at ELSE :now END "
    "FROM unnest(CAST(:ids AS uuid[]), CAST(:links AS uuid[]), CAST(:paths AS text[])) AS alive(id, link, path) "
    "WHERE a.id = alive.id"
)


async def mark_alive(tx: Tx, links: Mapping[UUID, AliveLink], now: datetime) -> None:
    """Record that links, by their agents' ids, are alive: one statement for any number."""
    ids = sorted(links)
    values = {
        "ids": ids,
        "links": [links[agent_id].link_id for agent_id in ids],
        "paths": [None if links[agent_id].path is None else json.dumps(links[agent_id].path) for agent_id in ids],
    }
    await tx.execute(_MARK_ALIVE, {"now": now, **values})


async def mark_disconnected(tx: Tx, agent_id: UUID, link: UUID, now: datetime) -> bool:
    """Record that the link closed. False when a newer link is open.

    The time is at least a microsecond after the last `mark_alive`, or the agent would stay connected: `now` is earlier
    within a tick of a coarse clock, and after the database's clock was set back.
    """
    disconnected = update(workspace_agents).where(workspace_agents.c.id == agent_id, workspace_agents.c.link_id == link)
    after_last = workspace_agents.c.last_connected_at + literal(timedelta(microseconds=1), Interval)
    values = {"disconnected_at": func.greatest(now, after_last), "updated_at": now, "link_id": None}
    query = disconnected.values(values).returning(workspace_agents.c.id)
    return (await tx.execute(query)).first() is not None


async def delete_agent(tx: Tx, agent_id: UUID) -> None:
    """Hide a sub-agent; its history stays."""
    await tx.execute(update(workspace_agents).where(workspace_agents.c.id == agent_id).values(deleted=True))


async def count_log_sources(tx: Tx, agent_id: UUID) -> int:
    """Return the number of log sources; other transactions add none until this one ends."""
    await tx.execute(select(workspace_agents.c.id).where(workspace_agents.c.id == agent_id).with_for_update())
    query = select(func.count()).where(_sources.c.agent_id == agent_id)
    return int((await tx.execute(query)).scalar_one())


async def add_log_source(tx: Tx, source: LogSourceRow) -> None:
    """Insert a source; an existing one is kept."""
    await tx.execute(insert(workspace_agent_log_sources).values(column_values(source)).on_conflict_do_nothing())
