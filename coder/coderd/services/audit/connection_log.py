"""The connection log: agents' reports and the proxy write it, auditors read it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, get_args
from uuid import UUID

from msgspec import UNSET, UnsetType

from coder.api.audit.audit import (
    ConnectionLog,
    ConnectionLogResponse,
    ConnectionLogSSHInfo,
    ConnectionLogWebInfo,
    ConnectionType,
)
from coder.api.base.refusals import Forbidden, Invalid
from coder.api.people.organizations import MinimalOrganization
from coder.api.people.users import User
from coder.base.ids import new_uuid
from coder.coderd.services.access.authorization import may
from coder.coderd.services.people.query_terms import find_organization
from coder.coderd.services.people.user_views import user_view
from coder.coderd.store.agents.agents import CurrentAgent
from coder.coderd.store.audit import connection_log as store
from coder.coderd.store.audit.audit import COUNT_CAP
from coder.coderd.store.audit.connection_log import ConnectionFilter, ConnectionRow, ConnectionView
from coder.coderd.store.people import system_users
from coder.domain.access.policy import Class, Subject, allowed_organizations
from coder.domain.foundation.search import parse_query

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

TYPES: tuple[ConnectionType, ...] = get_args(ConnectionType)
_WEB = frozenset({"workspace_app", "port_forwarding"})


async def record_connect(
    tx: Tx,
    agent_place: CurrentAgent,
    connection_id: UUID,
    kind: ConnectionType,
    ip: str,
    at: datetime,
    user_id: UUID | None = None,
) -> None:
    """Record the begin of a session to an agent. A repeated report changes nothing."""
    await store.put_connection(
        tx,
        ConnectionRow(
            id=new_uuid(),
            connect_time=at,
            organization_id=agent_place.organization_id,
            workspace_owner_id=agent_place.owner_id,
            workspace_id=agent_place.workspace_id,
            workspace_name=agent_place.workspace_name,
            agent_name=agent_place.agent.name,
            type=kind,
            ip=ip,
            user_id=user_id,
            connection_id=connection_id,
        ),
    )


async def record_disconnect(
    tx: Tx,
    agent_place: CurrentAgent,
    connection_id: UUID,
    kind: ConnectionType,
    ip: str,
    at: datetime,
    *,
    code: int,
    reason: str,
) -> None:
    """Record the end of a session. A begin that was never reported is recorded now."""
    await record_connect(tx, agent_place, connection_id, kind, ip, at)
    await store.end_connection(
        tx, connection_id, agent_place.workspace_id, agent_place.agent.name, at=at, code=code, reason=reason
    )


async def list_connections(
    ctx: Context, subject: Subject, query: str, *, limit: int = 0, offset: int = 0
) -> ConnectionLogResponse:
    """List connections, newest first. Raises Forbidden, Invalid."""
    if not may(subject, "read", Class("connection_log", any_organization=True)) and not may(
        subject, "read", Class("connection_log")
    ):
        raise Forbidden
    which = await _read_search(ctx, subject, query)
    views, count, people = await ctx.db.read(_load, which, limit, offset)
    return ConnectionLogResponse(
        connection_logs=[_present(view, people) for view in views], count=count, count_cap=COUNT_CAP
    )


async def _load(
    tx: Tx, which: ConnectionFilter, limit: int, offset: int
) -> tuple[list[ConnectionView], int, dict[UUID, User]]:
    views = await store.list_connections(tx, which, limit=limit, offset=offset)
    ids = {view.connection.user_id for view in views if view.connection.user_id is not None}
    people = {row.id: user_view(row) for row in await system_users.list_by_ids(tx, sorted(ids))}
    return views, await store.count_connections(tx, which), people


async def _read_search(ctx: Context, subject: Subject, query: str) -> ConnectionFilter:
    terms = parse_query(query, "search")
    which = ConnectionFilter(
        organization_id=await find_organization(ctx, subject, terms),
        workspace_owner=_without_me(subject, terms.one("workspace_owner")),
        workspace_owner_email=terms.one("workspace_owner_email"),
        type=terms.choice("type", TYPES),
        username=_without_me(subject, terms.one("username")),
        user_email=terms.one("user_email"),
        connected_after=terms.time("connected_after"),
        connected_before=terms.time("connected_before"),
        workspace_id=terms.uuid("workspace_id"),
        connection_id=terms.uuid("connection_id"),
        status=terms.choice("status", ("ongoing", "completed")),
    )
    refusals = terms.refusals()
    if refusals:
        raise Invalid("Invalid connection search query.", validations=[(item.field, item.detail) for item in refusals])
    readable = allowed_organizations(subject, "read", "connection_log")
    return replace(which, organizations=sorted(readable) if readable is not None else None)


def _without_me(subject: Subject, username: str) -> str:
    return subject.username if username == "me" else username


def _present(view: ConnectionView, people: dict[UUID, User]) -> ConnectionLog:
    row = view.connection
    web: ConnectionLogWebInfo | UnsetType = UNSET
    ssh: ConnectionLogSSHInfo | UnsetType = UNSET
    if row.type in _WEB:
        web = ConnectionLogWebInfo(
            user_agent=row.user_agent or "",
            user=people.get(row.user_id) if row.user_id else None,
            slug_or_port=row.slug_or_port or "",
            status_code=row.code or 0,
        )
    elif row.connection_id is not None:
        ended = row.disconnect_time is not None
        ssh = ConnectionLogSSHInfo(
            connection_id=row.connection_id,
            disconnect_reason=row.disconnect_reason or UNSET,
            disconnect_time=row.disconnect_time or UNSET,
            exit_code=row.code if ended and row.code is not None else UNSET,
        )
    return ConnectionLog(
        id=row.id,
        connect_time=row.connect_time,
        organization=MinimalOrganization(
            id=row.organization_id,
            name=view.organization_name,
            display_name=view.organization_display_name,
            icon=view.organization_icon,
        ),
        workspace_owner_id=row.workspace_owner_id,
        workspace_owner_username=view.owner_username,
        workspace_id=row.workspace_id,
        workspace_name=row.workspace_name,
        agent_name=row.agent_name,
        type=row.type,
        ip=row.ip or UNSET,
        ssh_info=ssh,
        web_info=web,
    )
