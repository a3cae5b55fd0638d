"""Queries on the connection log: connections of users to workspaces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import ColumnElement, func, select, update
from sqlalchemy.dialects.postgresql import insert

from coder.coderd.store.audit.audit import COUNT_CAP
from coder.coderd.store.engine.rows import column_values
from coder.coderd.store.engine.sql_types import SqlColumn
from coder.coderd.store.tables.audit import connection_logs
from coder.coderd.store.tables.people import organizations, users

if TYPE_CHECKING:
    from coder.api.audit.audit import ConnectionType
    from coder.coderd.store.engine.database import Tx


@dataclass(frozen=True, slots=True)
class ConnectionRow:
    id: UUID
    connect_time: datetime
    organization_id: UUID
    workspace_owner_id: UUID
    workspace_id: UUID
    workspace_name: str
    agent_name: str
    type: ConnectionType
    ip: str
    code: int | None = None
    "HTTP status of a web connection, exit code of another."
    user_agent: str | None = None
    user_id: UUID | None = None
    slug_or_port: str | None = None
    connection_id: UUID | None = None
    """Id of the connection; None for web connections, whose end is not known."""
    disconnect_time: datetime | None = None
    disconnect_reason: str | None = None


@dataclass(frozen=True, slots=True)
class ConnectionView:
    connection: ConnectionRow
    owner_username: str
    organization_name: str
    organization_display_name: str
    organization_icon: str


@dataclass(frozen=True, slots=True)
class ConnectionFilter:
    """Filter of connections; None or empty means any."""

    organization_id: UUID | None = None
    workspace_owner: str = ""
    workspace_owner_email: str = ""
    type: str = ""
    username: str = ""
    user_email: str = ""
    connected_after: datetime | None = None
    connected_before: datetime | None = None
    workspace_id: UUID | None = None
    connection_id: UUID | None = None
    status: str = ""
    organizations: Sequence[UUID] | None = None
    """Organizations the caller may read; None means all."""


async def put_connection(tx: Tx, row: ConnectionRow) -> None:
    """Insert a connection; a repeated report of it changes nothing."""
    values = column_values(row)
    await tx.execute(insert(connection_logs).values(**values).on_conflict_do_nothing())


async def end_connection(
    tx: Tx, connection_id: UUID, workspace_id: UUID, agent_name: str, *, at: datetime, code: int, reason: str
) -> bool:
    """Record its end; False when no such connection is open."""
    log = connection_logs.c
    statement = (
        update(connection_logs)
        .where(
            log.connection_id == connection_id,
            log.workspace_id == workspace_id,
            log.agent_name == agent_name,
            log.disconnect_time.is_(None),
        )
        .values(disconnect_time=at, code=code, disconnect_reason=reason)
    )
    return bool((await tx.execute(statement)).rowcount)


async def list_connections(tx: Tx, which: ConnectionFilter, *, limit: int, offset: int) -> list[ConnectionView]:
    """Return connections, newest first. `limit` 0 is all."""
    columns = [connection_logs.c[field.name] for field in fields(ConnectionRow)]
    statement = (
        select(*columns, users.c.username, organizations.c.name, organizations.c.display_name, organizations.c.icon)
        .select_from(connection_logs)
        .join(users, users.c.id == connection_logs.c.workspace_owner_id)
        .join(organizations, organizations.c.id == connection_logs.c.organization_id)
        .where(*_conditions(which))
        .order_by(connection_logs.c.connect_time.desc(), connection_logs.c.id)
        .offset(offset)
    )
    if limit:
        statement = statement.limit(limit)
    count = len(columns)
    return [ConnectionView(ConnectionRow(*row[:count]), *row[count:]) for row in await tx.execute(statement)]


async def count_connections(tx: Tx, which: ConnectionFilter) -> int:
    """Return their number, at most `COUNT_CAP`."""
    result = select(connection_logs.c.id).where(*_conditions(which)).limit(COUNT_CAP).subquery()
    return int((await tx.execute(select(func.count()).select_from(result))).scalar_one())


def _conditions(which: ConnectionFilter) -> list[ColumnElement[bool]]:
    log = connection_logs.c
    results: list[ColumnElement[bool]] = []
    for name in ("organization_id", "type", "workspace_id", "connection_id"):
        if getattr(which, name):
            results.append(log[name] == getattr(which, name))
    if which.connected_after:
        results.append(log.connect_time >= which.connected_after)
    if which.connected_before:
        results.append(log.connect_time <= which.connected_before)
    if which.status:
        open_ = log.disconnect_time.is_(None)
        results.append(log.connection_id.is_not(None))
        results.append(open_ if which.status == "ongoing" else ~open_)
    for value, user, column in (
        (which.workspace_owner, log.workspace_owner_id, users.c.username),
        (which.workspace_owner_email, log.workspace_owner_id, users.c.email),
        (which.username, log.user_id, users.c.username),
        (which.user_email, log.user_id, users.c.email),
    ):
        if value:
            results.append(_named(user, column, value))
    if which.organizations is not None:
        results.append(log.organization_id.in_(list(which.organizations)))
    return results


def _named(user: SqlColumn, column: SqlColumn, value: str) -> ColumnElement[bool]:
    named = users.alias()
    return user.in_(select(named.c.id).where(func.lower(named.c[str(column.key)]) == func.lower(value)))
