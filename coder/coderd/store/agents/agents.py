"""Queries on agents and what belongs to them, except their logs (`agent_logs.py`).

An agent may speak to the server while its build is the newest of a living workspace: `get_agent_by_token` and
`get_agent_place` apply that rule, the others do not.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypedDict, Unpack
from uuid import UUID

from sqlalchemy import JSON, ColumnElement, Select, and_, bindparam, exists, func, select, true, update
from sqlalchemy.dialects.postgresql import ARRAY, aggregate_order_by, insert

from coder.coderd.store.engine.metadata import Uuid
from coder.coderd.store.engine.prepared_statements import PreparedStatement
from coder.coderd.store.tables.agents import (
    workspace_agent_log_sources,
    workspace_agent_metadata,
    workspace_agent_script_timings,
    workspace_agent_scripts,
    workspace_agent_stats,
    workspace_agent_tokens,
    workspace_agents,
    workspace_app_statuses,
    workspace_apps,
)
from coder.coderd.store.tables.builds import workspace_builds
from coder.coderd.store.tables.identity import users
from coder.coderd.store.tables.workspaces import workspaces

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx

_agents = workspace_agents
_IDS = bindparam("ids", type_=ARRAY(Uuid))


@dataclass(frozen=True, slots=True)
class AgentRow:
    """One agent of one build."""

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
class AgentPlace:
    """A current agent, its workspace and its owner: what is needed to decide about it and to serve it."""

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
    "What it was found by, when that is not the token the template gave."


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
    sharing_level: str
    healthcheck_url: str
    healthcheck_interval: int
    healthcheck_threshold: int
    health: str
    display_order: int
    display_group: str
    hidden: bool
    open_in: str
    tooltip: str
    position: int


@dataclass(frozen=True, slots=True)
class AppStatusRow:
    id: UUID
    created_at: datetime
    workspace_id: UUID
    agent_id: UUID
    app_id: UUID
    state: str
    message: str
    uri: str


@dataclass(frozen=True, slots=True)
class LogSourceRow:
    agent_id: UUID
    id: UUID
    created_at: datetime
    display_name: str
    icon: str


@dataclass(frozen=True, slots=True)
class ScriptRow:
    """A script, and how its last run ended (None before)."""

    id: UUID
    agent_id: UUID
    created_at: datetime
    log_source_id: UUID
    log_path: str
    script: str
    cron: str
    run_on_start: bool
    run_on_stop: bool
    start_blocks_login: bool
    timeout_seconds: int
    display_name: str
    position: int
    exit_code: int | None = None
    status: str | None = None


@dataclass(frozen=True, slots=True)
class ScriptTimingRow:
    agent_id: UUID
    agent_name: str
    display_name: str
    started_at: datetime
    ended_at: datetime
    exit_code: int
    stage: str
    status: str


@dataclass(frozen=True, slots=True)
class MetadataRow:
    agent_id: UUID
    key: str
    display_name: str
    script: str
    interval_seconds: int
    timeout_seconds: int
    display_order: int
    value: str
    error: str
    collected_at: datetime | None


@dataclass(frozen=True, slots=True)
class AgentDetail:
    """An agent with its log sources (in no particular order)."""

    agent: AgentRow
    log_sources: list[LogSourceRow]


@dataclass(frozen=True, slots=True)
class AppDetail:
    """An app with what was reported for it, newest first."""

    app: AppRow
    statuses: list[AppStatusRow]


AGENT_COLUMNS = tuple(_agents.c[field.name] for field in fields(AgentRow))
_APP_COLUMNS = tuple(workspace_apps.c[field.name] for field in fields(AppRow))
_SCRIPT_COLUMNS = tuple(
    workspace_agent_scripts.c[field.name] for field in fields(ScriptRow) if field.name not in {"exit_code", "status"}
)
_METADATA_COLUMNS = tuple(workspace_agent_metadata.c[field.name] for field in fields(MetadataRow))

_PLACE: Select[Any] = (
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
    .join(workspace_builds, workspace_builds.c.job_id == _agents.c.job_id)
    .join(
        workspaces,
        # the newest build only: an older one's agents are history
        and_(workspaces.c.id == workspace_builds.c.workspace_id, workspaces.c.latest_build_id == workspace_builds.c.id),
    )
    .join(users, users.c.id == workspaces.c.owner_id)
    .where(~workspaces.c.deleted, ~_agents.c.deleted)
)


def _place(row: Any) -> AgentPlace:
    count = len(AGENT_COLUMNS)
    return AgentPlace(AgentRow(*row[:count]), *row[count:])


async def get_agent(tx: Tx, agent_id: UUID) -> AgentRow | None:
    row = (await tx.execute(select(*AGENT_COLUMNS).where(_agents.c.id == agent_id))).one_or_none()
    return AgentRow(*row) if row else None


_tokens = workspace_agent_tokens
_OF_PLACE = and_(
    _tokens.c.workspace_id == workspaces.c.id,
    _tokens.c.agent_name == _agents.c.name,
    _tokens.c.template_token == _agents.c.auth_token,
)
_newer = _tokens.alias("newer")
_REPLACED = exists().where(
    _newer.c.workspace_id == _tokens.c.workspace_id,
    _newer.c.agent_name == _tokens.c.agent_name,
    _newer.c.template_token == _tokens.c.template_token,
    _newer.c.generation > _tokens.c.generation,
    _newer.c.used_at.is_not(None),
)


async def get_agent_by_token(tx: Tx, token: UUID) -> AgentPlace | None:
    """The current agent a token belongs to, unless a newer generation of it has been used.

    Terraform keeps a token over builds, so older rows may carry it, too.
    """
    template_is_out = exists().where(_OF_PLACE, _tokens.c.used_at.is_not(None))
    row = (await tx.execute(_PLACE.where(_agents.c.auth_token == token, ~template_is_out))).first()
    if row is not None:
        return _place(row)
    rotated = _PLACE.join(_tokens, _OF_PLACE).where(_tokens.c.token == token, ~_REPLACED)
    row = (await tx.execute(rotated)).first()
    return replace(_place(row), rotated_token=token) if row else None


async def list_agents_by_instance(tx: Tx, instance_id: str) -> list[AgentPlace]:
    """The current agents that say they run on a cloud machine, newest first."""
    query = _PLACE.where(_agents.c.auth_instance_id == instance_id).order_by(_agents.c.created_at.desc()).limit(100)
    return [_place(row) for row in await tx.execute(query)]


async def get_agent_place(tx: Tx, agent_id: UUID) -> AgentPlace | None:
    """A current agent; None for an agent of an older build."""
    row = (await tx.execute(_PLACE.where(_agents.c.id == agent_id))).first()
    return _place(row) if row else None


async def list_current_agents(tx: Tx, owner_id: UUID) -> list[AgentPlace]:
    """Every current agent of an owner's living workspaces."""
    rows = await tx.execute(_PLACE.where(workspaces.c.owner_id == owner_id).order_by(_agents.c.id))
    return [_place(row) for row in rows]


async def list_agents_where(tx: Tx, condition: ColumnElement[bool]) -> list[AgentPlace]:
    """Every current agent of the living workspaces a condition on them (and their owners) picks."""
    rows = await tx.execute(_PLACE.where(condition).order_by(users.c.username, workspaces.c.name, _agents.c.name))
    return [_place(row) for row in rows]


_sources, _statuses = workspace_agent_log_sources, workspace_app_statuses
# Children as JSON inside their parents' rows: two statements less for every page of workspaces.
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
    .where(_sources.c.agent_id == _agents.c.id)
    .scalar_subquery()
)
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
_DETAILS = select(*AGENT_COLUMNS, _SOURCES_OF_AGENT).where(~_agents.c.deleted)
_BY_JOBS = PreparedStatement(_DETAILS.where(_agents.c.job_id == func.any(_IDS)))
_APPS = PreparedStatement(select(*_APP_COLUMNS, _STATUSES_OF_APP).where(workspace_apps.c.agent_id == func.any(_IDS)))
_METADATA = (
    select(*_METADATA_COLUMNS)
    .where(workspace_agent_metadata.c.agent_id == bindparam("agent_id", type_=Uuid))
    .order_by(workspace_agent_metadata.c.display_order, workspace_agent_metadata.c.key)
)
_last_run = (
    select(workspace_agent_script_timings.c.exit_code, workspace_agent_script_timings.c.status)
    .where(workspace_agent_script_timings.c.script_id == workspace_agent_scripts.c.id)
    .order_by(workspace_agent_script_timings.c.id.desc())
    .limit(1)
    .lateral("last_run")
)
_SCRIPTS = PreparedStatement(
    select(*_SCRIPT_COLUMNS, _last_run.c.exit_code, _last_run.c.status)
    .select_from(workspace_agent_scripts)
    .outerjoin(_last_run, true())
    .where(workspace_agent_scripts.c.agent_id == func.any(_IDS))
    .order_by(workspace_agent_scripts.c.position)
)


async def list_agents_of_jobs(tx: Tx, job_ids: Sequence[UUID]) -> list[AgentDetail]:
    return [_detail(row) for row in await _BY_JOBS.fetch(tx, ids=job_ids)]


async def get_agent_detail(tx: Tx, agent_id: UUID) -> AgentDetail | None:
    row = (await tx.execute(_DETAILS.where(_agents.c.id == agent_id))).one_or_none()
    return _detail(row) if row else None


async def list_apps(tx: Tx, agent_ids: Sequence[UUID]) -> list[AppDetail]:
    return [_app_detail(row) for row in await _APPS.fetch(tx, ids=agent_ids)]


def _detail(row: Any) -> AgentDetail:
    agent = AgentRow(*row[:-1])
    sources = [LogSourceRow(agent.id, UUID(s[0]), _time(s[1]), s[2], s[3]) for s in row[-1] or ()]
    return AgentDetail(agent, sources)


def _app_detail(row: Any) -> AppDetail:
    app = AppRow(*row[:-1])
    statuses = [
        AppStatusRow(UUID(s[0]), _time(s[1]), UUID(s[2]), app.agent_id, app.id, s[3], s[4], s[5]) for s in row[-1] or ()
    ]
    return AppDetail(app, statuses)


def app_status_from(items: Sequence[Any]) -> AppStatusRow:
    """A row that came as a JSON list, in the order of its fields."""
    ids = [UUID(items[index]) for index in (0, 2, 3, 4)]
    return AppStatusRow(ids[0], _time(items[1]), ids[1], ids[2], ids[3], items[5], items[6], items[7])


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


async def list_scripts(tx: Tx, agent_ids: Sequence[UUID]) -> list[ScriptRow]:
    return [ScriptRow(*row) for row in await _SCRIPTS.fetch(tx, ids=agent_ids)]


async def list_metadata(tx: Tx, agent_id: UUID) -> list[MetadataRow]:
    return [MetadataRow(*row) for row in await tx.execute(_METADATA, {"agent_id": agent_id})]


async def list_sub_agents(tx: Tx, parent_id: UUID) -> list[AgentRow]:
    query = select(*AGENT_COLUMNS).where(_agents.c.parent_id == parent_id, ~_agents.c.deleted)
    return [AgentRow(*row) for row in await tx.execute(query.order_by(_agents.c.name))]


async def list_script_timings(tx: Tx, job_id: UUID) -> list[ScriptTimingRow]:
    """Every run of every script of a build's agents, in order."""
    timings, scripts = workspace_agent_script_timings, workspace_agent_scripts
    query = (
        select(
            _agents.c.id,
            _agents.c.name,
            scripts.c.display_name,
            timings.c.started_at,
            timings.c.ended_at,
            timings.c.exit_code,
            timings.c.stage,
            timings.c.status,
        )
        .join(scripts, scripts.c.id == timings.c.script_id)
        .join(_agents, _agents.c.id == scripts.c.agent_id)
        .where(_agents.c.job_id == job_id)
        .order_by(timings.c.id)
    )
    return [ScriptTimingRow(*row) for row in await tx.execute(query)]


async def insert_agents(
    tx: Tx,
    agents: Sequence[AgentRow],
    *,
    apps: Sequence[AppRow] = (),
    scripts: Sequence[ScriptRow] = (),
    log_sources: Sequence[LogSourceRow] = (),
    metadata: Sequence[MetadataRow] = (),
) -> None:
    """Agents with everything a build defines for them."""
    if agents:
        await tx.execute(insert(_agents), [_values(row) for row in agents])
    for app in apps:
        await _put_app(tx, app)
    if scripts:
        await tx.execute(insert(workspace_agent_scripts), [_values(row, "exit_code", "status") for row in scripts])
    if log_sources:
        await tx.execute(insert(workspace_agent_log_sources), [_values(row) for row in log_sources])
    if metadata:
        await tx.execute(insert(workspace_agent_metadata), [_values(row) for row in metadata])


async def _put_app(tx: Tx, app: AppRow) -> None:
    # Terraform keeps an app's id over builds: its row moves to the new agent and keeps what was reported for it.
    values = _values(app)
    statement = insert(workspace_apps).values(values)
    await tx.execute(statement.on_conflict_do_update(index_elements=["id"], set_=values))


async def find_app_workspaces(tx: Tx, app_ids: Collection[UUID]) -> dict[UUID, UUID | None]:
    """The workspace each existing app belongs to (None: an import's or a dry run's)."""
    query = (
        select(workspace_apps.c.id, workspace_builds.c.workspace_id)
        .join(_agents, _agents.c.id == workspace_apps.c.agent_id)
        .outerjoin(workspace_builds, workspace_builds.c.job_id == _agents.c.job_id)
        .where(workspace_apps.c.id.in_(app_ids))
    )
    return {row[0]: row[1] for row in await tx.execute(query)}


async def delete_older_agents(tx: Tx, workspace_id: UUID, job_id: UUID) -> None:
    """Hides the agents of every other build of the workspace: they can never come back."""
    older = select(workspace_builds.c.job_id).where(
        workspace_builds.c.workspace_id == workspace_id, workspace_builds.c.job_id != job_id
    )
    await tx.execute(update(_agents).where(_agents.c.job_id.in_(older), ~_agents.c.deleted).values(deleted=True))


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
    """Sets columns by name: lifecycle, startup facts, connection times."""
    await tx.execute(update(_agents).where(_agents.c.id == agent_id).values(**values))


async def mark_connected(
    tx: Tx, agent_id: UUID, now: datetime, *, api_version: str | None = None, path: dict[str, Any] | None = None
) -> None:
    """A connection began or is alive; `path` is how its pings are answered."""
    values: dict[str, Any] = {
        "first_connected_at": func.coalesce(_agents.c.first_connected_at, now),
        "last_connected_at": now,
        "updated_at": now,
    }
    if api_version is not None:
        values["api_version"] = api_version
    if path is not None:
        values |= {"path_vitals": path, "path_vitals_at": now}
    await tx.execute(update(_agents).where(_agents.c.id == agent_id).values(**values))


async def mark_disconnected(tx: Tx, agent_id: UUID, now: datetime) -> None:
    """The connection ended. `now` must be later than the last `mark_connected` to count."""
    await tx.execute(update(_agents).where(_agents.c.id == agent_id).values(disconnected_at=now, updated_at=now))


async def delete_agent(tx: Tx, agent_id: UUID) -> None:
    """Hides a sub agent; its history stays."""
    await tx.execute(update(_agents).where(_agents.c.id == agent_id).values(deleted=True))


async def update_app_health(tx: Tx, app_id: UUID, health: str) -> None:
    await tx.execute(update(workspace_apps).where(workspace_apps.c.id == app_id).values(health=health))


async def update_metadata(
    tx: Tx, agent_id: UUID, results: Mapping[str, tuple[str, str]], collected_at: datetime
) -> None:
    """`results`: key -> (value, error). Keys the build does not define are ignored."""
    table = workspace_agent_metadata
    for key, (value, error) in results.items():
        await tx.execute(
            update(table)
            .where(table.c.agent_id == agent_id, table.c.key == key)
            .values(value=value, error=error, collected_at=collected_at)
        )


async def add_log_source(tx: Tx, source: LogSourceRow) -> None:
    """Makes a source; one that is there stays as it is."""
    await tx.execute(insert(workspace_agent_log_sources).values(_values(source)).on_conflict_do_nothing())


async def insert_app_status(tx: Tx, row: AppStatusRow) -> None:
    await tx.execute(insert(workspace_app_statuses).values(_values(row)))


async def insert_script_timing(
    tx: Tx, script_id: UUID, *, started_at: datetime, ended_at: datetime, exit_code: int, stage: str, status: str
) -> None:
    """Raises IntegrityError for an unknown script."""
    await tx.execute(
        insert(workspace_agent_script_timings).values(
            script_id=script_id,
            started_at=started_at,
            ended_at=ended_at,
            exit_code=exit_code,
            stage=stage,
            status=status,
        )
    )


class AgentStats(TypedDict, total=False):
    """Columns of `workspace_agent_stats` that may be set, by name."""

    created_at: datetime
    user_id: UUID
    workspace_id: UUID
    template_id: UUID
    agent_id: UUID
    connections_by_proto: dict[str, int]
    connection_count: int
    connection_median_latency_ms: float
    rx_packets: int
    rx_bytes: int
    tx_packets: int
    tx_bytes: int
    session_count_vscode: int
    session_count_jetbrains: int
    session_count_reconnecting_pty: int
    session_count_ssh: int
    usage: bool


async def insert_stats(tx: Tx, **values: Unpack[AgentStats]) -> None:
    """One report of an agent's statistics; names as in the table."""
    await tx.execute(insert(workspace_agent_stats).values(**values))


async def list_app_owners(tx: Tx, app_ids: Collection[UUID]) -> dict[UUID, tuple[UUID, str]]:
    """Agent id and healthcheck URL by app id."""
    query = select(workspace_apps.c.id, workspace_apps.c.agent_id, workspace_apps.c.healthcheck_url)
    rows = await tx.execute(query.where(workspace_apps.c.id.in_(app_ids)))
    return {row[0]: (row[1], row[2]) for row in rows}


def _values(row: Any, *without: str) -> dict[str, Any]:
    return {field.name: getattr(row, field.name) for field in fields(row) if field.name not in without}
