"""Search of workspaces by permission and query, a page at a time.

The list ranks first and joins the wide rows afterwards, so that its cost follows the page and not the deployment.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Text,
    and_,
    bindparam,
    case,
    exists,
    false,
    func,
    literal,
    literal_column,
    or_,
    select,
    true,
)
from sqlalchemy.dialects.postgresql import ARRAY

from coder.coderd.store.agents.agents import CurrentAgent, list_agents_where
from coder.coderd.store.engine.metadata import Timestamp, Uuid
from coder.coderd.store.engine.names import holds_text, matches_text
from coder.coderd.store.engine.prepared_statements import PreparedStatement
from coder.coderd.store.engine.sql_types import Query, SqlColumn
from coder.coderd.store.provisioning.jobs import STATUS
from coder.coderd.store.tables.agents import workspace_agents
from coder.coderd.store.tables.builds import workspace_build_parameters, workspace_builds
from coder.coderd.store.tables.jobs import provisioner_jobs
from coder.coderd.store.tables.people import users
from coder.coderd.store.tables.templates import templates
from coder.coderd.store.tables.workspaces import workspaces
from coder.coderd.store.workspaces.workspaces import VIEW, WorkspaceView, workspace_from
from coder.domain.agents.agents import INACTIVE_DISCONNECT_TIMEOUT

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx

_builds = workspace_builds
_agents = workspace_agents


@dataclass(frozen=True, slots=True)
class WorkspaceReaders:
    """Workspaces a caller may see: all, those of some organizations, or its own and the shared ones."""

    everything: bool
    organization_ids: Collection[UUID]
    user_id: UUID
    group_ids: Collection[UUID]
    """Groups through which workspaces may be shared with the caller, including organizations' Everyone."""
    member_of: Collection[UUID] = ()
    """Organizations whose workspaces may be shared with the caller at all: access lists outlive memberships."""
    own_in: Collection[UUID] = ()
    """Organizations where the caller may read its own workspaces: a role may deny it."""


@dataclass(frozen=True, slots=True)
class WorkspaceSearch:
    """Filter of a `q=` query; empty fields do not filter."""

    ids: Sequence[UUID] = ()
    owner_id: UUID | None = None
    owner_username: str = ""
    template_name: str = ""
    template_ids: Sequence[UUID] = ()
    name: str = ""
    "Part of the name."
    exact_name: str = ""
    status: str = ""
    agent_statuses: Sequence[str] = ()
    "Workspaces with an agent in one of these states."
    dormant: bool = False
    last_used_before: datetime | None = None
    last_used_after: datetime | None = None
    outdated: bool | None = None
    parameters: Sequence[tuple[str, str | None]] = ()
    "Any of these: a name, or a name with its value."
    organization_id: UUID | None = None
    has_ai_task: bool | None = None
    has_external_agent: bool | None = None
    shared: bool | None = None
    shared_with_user: UUID | None = None
    shared_with_group: UUID | None = None


@dataclass(frozen=True, slots=True)
class WorkspacePage:
    views: list[WorkspaceView] = field(default_factory=list)
    count: int = 0
    "Matches on all pages."


async def list_readable_agents(tx: Tx, readers: WorkspaceReaders) -> list[CurrentAgent]:
    """Return every current agent of the workspaces that a caller may read."""
    return await list_agents_where(tx, _may_read(readers))


async def list_views(
    tx: Tx, which: WorkspaceSearch, readers: WorkspaceReaders, *, now: datetime, limit: int = 0, offset: int = 0
) -> WorkspacePage:
    """Return own favourites first, then running ones, then by owner and name. `limit` 0 is all."""
    # Pages are requested repeatedly with the same words: their statements are cached.
    query = _Asked(repr((which, readers, limit, offset)), which, readers, limit, offset)
    rows = await _page_statement(query).fetch(tx, now=now)
    if rows:
        return WorkspacePage([workspace_from(row[2:]) for row in rows], rows[0][0])
    if not offset:
        return WorkspacePage()
    counted = await _count_statement(query).fetch(tx, now=now)
    return WorkspacePage([], counted[0][0])


@dataclass(frozen=True, slots=True)
class _Asked:
    key: str
    which: WorkspaceSearch = field(compare=False)
    readers: WorkspaceReaders = field(compare=False)
    limit: int = field(compare=False)
    offset: int = field(compare=False)


_RANK = ("unloved", "resting", "owner_name", "own_name")
"""Sort order of the list; see `_ranked`."""


@lru_cache(maxsize=512)
def _page_statement(query: _Asked) -> PreparedStatement:
    # Numbering the whole deployment would sort all of it; a limit keeps the top rows in one pass.
    ranked = _ranked(query).order_by(*_RANK)
    page = (ranked.limit(query.limit) if query.limit else ranked).offset(query.offset).cte("page")
    # A lateral with a limit uses indexes row by row; a plain join would read whole tables for it.
    wide = VIEW.where(workspaces.c.id == page.c.id).limit(1).lateral("wide")
    order = [page.c[name] for name in _RANK]
    return PreparedStatement(
        select(page.c.matches, page.c.id, *wide.c).select_from(page.join(wide, true())).order_by(*order)
    )


@lru_cache(maxsize=64)
def _count_statement(query: _Asked) -> PreparedStatement:
    return PreparedStatement(select(func.count()).select_from(_ranked(query).subquery()))


def _ranked(query: _Asked) -> Query:
    running = and_(_builds.c.transition == "start", STATUS == "succeeded")
    order = (
        case((and_(workspaces.c.favorite, workspaces.c.owner_id == query.readers.user_id), 0), else_=1),
        case((running, 0), else_=1),
        func.lower(users.c.username),
        func.lower(workspaces.c.name),
    )
    return (
        select(
            workspaces.c.id.label("id"),
            func.count().over().label("matches"),
            *(part.label(name) for part, name in zip(order, _RANK, strict=True)),
        )
        .select_from(workspaces)
        .join(users, users.c.id == workspaces.c.owner_id)
        .join(_builds, _builds.c.id == workspaces.c.latest_build_id)
        .join(provisioner_jobs, provisioner_jobs.c.id == _builds.c.job_id)
        .where(~workspaces.c.deleted, _may_read(query.readers), *_conditions(query.which))
    )


def _any(ids: Collection[UUID]) -> SqlColumn:
    return func.any(literal(list(ids), ARRAY(Uuid)).cast(ARRAY(Uuid)))


def _any_text(texts: Sequence[str]) -> SqlColumn:
    return func.any(literal(list(texts), ARRAY(Text)).cast(ARRAY(Text)))


def _may_read(readers: WorkspaceReaders) -> ColumnElement[bool]:
    if readers.everything:
        return true()
    groups = [str(group) for group in readers.group_ids]
    return or_(
        and_(workspaces.c.owner_id == readers.user_id, workspaces.c.organization_id == _any(readers.own_in))
        if readers.own_in
        else false(),
        workspaces.c.organization_id == _any(readers.organization_ids) if readers.organization_ids else false(),
        and_(
            workspaces.c.organization_id == _any(readers.member_of),
            or_(
                workspaces.c.user_acl.has_key(str(readers.user_id)),
                workspaces.c.group_acl.has_any(literal(groups, ARRAY(Text)).cast(ARRAY(Text))) if groups else false(),
            ),
        )
        if readers.member_of
        else false(),
    )


def _conditions(which: WorkspaceSearch) -> list[ColumnElement[bool]]:
    result: list[ColumnElement[bool]] = [
        workspaces.c.dormant_at.is_not(None) if which.dormant else workspaces.c.dormant_at.is_(None)
    ]
    result += [make() for value, make in _simple_conditions(which) if value]
    if which.template_name:
        named = select(templates.c.id).where(func.lower(templates.c.name) == func.lower(which.template_name))
        result.append(workspaces.c.template_id.in_(named))
    if which.status:
        result.append(_has_status(which.status))
    if which.agent_statuses:
        result.append(_has_agent(which.agent_statuses))
    result += _parameter_conditions(which.parameters)
    return result + _flags(which)


_Wanted: TypeAlias = str | UUID | datetime | Collection[UUID] | None


def _simple_conditions(which: WorkspaceSearch) -> list[tuple[_Wanted, Callable[[], ColumnElement[bool]]]]:
    table = workspaces.c
    return [
        (which.ids, lambda: table.id == _any(which.ids)),
        (which.owner_id, lambda: table.owner_id == which.owner_id),
        (which.owner_username, lambda: func.lower(users.c.username) == func.lower(which.owner_username)),
        (which.template_ids, lambda: table.template_id == _any(which.template_ids)),
        (which.name, lambda: holds_text(table.name, which.name)),
        (which.exact_name, lambda: func.lower(table.name) == func.lower(which.exact_name)),
        (which.last_used_before, lambda: table.last_used_at <= which.last_used_before),
        (which.last_used_after, lambda: table.last_used_at >= which.last_used_after),
        (which.organization_id, lambda: table.organization_id == which.organization_id),
        (which.shared_with_user, lambda: table.user_acl.has_key(str(which.shared_with_user))),
        (which.shared_with_group, lambda: table.group_acl.has_key(str(which.shared_with_group))),
    ]


_NOBODY: SqlColumn = literal_column("'{}'::jsonb")


def _flags(which: WorkspaceSearch) -> list[ColumnElement[bool]]:
    results: list[ColumnElement[bool]] = []
    if which.outdated is not None:
        active = select(templates.c.active_version_id).where(templates.c.id == workspaces.c.template_id)
        current = _builds.c.template_version_id == active.scalar_subquery()
        results.append(~current if which.outdated else current)
    for value, column in (
        (which.has_ai_task, _builds.c.has_ai_task),
        (which.has_external_agent, _builds.c.has_external_agent),
    ):
        if value is not None:
            results.append(func.coalesce(column, false()).is_(value))
    if which.shared is not None:
        shared = or_(workspaces.c.user_acl != _NOBODY, workspaces.c.group_acl != _NOBODY)
        results.append(shared if which.shared else ~shared)
    return results


_BY_TRANSITION = {
    "starting": ("start", "running"),
    "running": ("start", "succeeded"),
    "stopping": ("stop", "running"),
    "stopped": ("stop", "succeeded"),
    "deleting": ("delete", "running"),
    "deleted": ("delete", "succeeded"),
}


def _has_status(status: str) -> ColumnElement[bool]:
    # reverse of `build_status` (coder/domain/workspaces/builds.py)
    transition, job = _BY_TRANSITION.get(status, ("", status))
    is_job = STATUS.__eq__(job)
    return and_(_builds.c.transition == transition, is_job) if transition else is_job


def _has_agent(statuses: Sequence[str]) -> ColumnElement[bool]:
    # `agent_status` (coder/domain/agents/agents.py) as SQL
    now = bindparam("now", type_=Timestamp)
    timeout = _agents.c.connection_timeout_seconds
    second: SqlColumn = literal_column("interval '1 second'")
    silence = second * int(INACTIVE_DISCONNECT_TIMEOUT.total_seconds())
    status = case(
        (
            or_(_agents.c.first_connected_at.is_(None), _agents.c.last_connected_at.is_(None)),
            case((and_(timeout > 0, _agents.c.created_at + second * timeout <= now), "timeout"), else_="connecting"),
        ),
        (_agents.c.disconnected_at > _agents.c.last_connected_at, "disconnected"),
        (_agents.c.last_connected_at + silence <= now, "disconnected"),
        else_="connected",
    )
    return exists().where(_agents.c.job_id == _builds.c.job_id, ~_agents.c.deleted, status == _any_text(statuses))


def _parameter_conditions(parameters: Sequence[tuple[str, str | None]]) -> list[ColumnElement[bool]]:
    """Return two conditions at most: the build has a parameter of these names, and one of these values."""
    table = workspace_build_parameters
    named = [matches_text(table.c.name, key) for key, value in parameters if value is None]
    valued = [
        and_(func.lower(table.c.name) == func.lower(key), func.lower(table.c.value) == func.lower(value))
        for key, value in parameters
        if value is not None
    ]
    of_build = table.c.workspace_build_id == _builds.c.id
    return [exists().where(of_build, or_(*group)) for group in (named, valued) if group]
