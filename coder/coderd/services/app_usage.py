"""Use of applications: counted in memory, written every half minute, told to the workspace as activity.

A session is one person's use of one application by one way; a pause of a minute ends it. An open stream (a WebSocket,
a download) is use for as long as it lasts. Proxies report the same rows for what passes through them. Here also: the
connection log's line about an application, at most one an hour for the same visitor.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

import trio

from coder.base.ids import new_uuid
from coder.coderd.services.autobuilds import note_activity
from coder.coderd.store import apps as store
from coder.coderd.store import connection_log as log_store
from coder.coderd.store.apps import SessionRow
from coder.coderd.store.connection_log import ConnectionRow

if TYPE_CHECKING:
    from coder.coderd.services.app_access import AppScene
    from coder.coderd.services.app_tickets import Ticket
    from coder.coderd.services.context import Context
    from coder.coderd.store.database import Tx

REPORT_EVERY = 30.0
"""Seconds between two reports, as upstream's."""
PAUSE = timedelta(minutes=1)
"""Silence that ends a session."""
LOG_AGAIN = timedelta(hours=1)
"""A visitor who stays is not a new connection. Upstream's word on this is not known."""
_MAX_REMEMBERED = 10_000
_MAX_USER_AGENT = 512

_Key = tuple[UUID, UUID, UUID, str, str]


@dataclass(slots=True)
class _Session:
    id: UUID
    started_at: datetime
    ended_at: datetime
    requests: int = 0
    open: int = 0
    reported: bool = False


class AppUsage:
    """The sessions of this process, see `Context.part`."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._sessions: dict[_Key, _Session] = {}
        self._logged: dict[tuple[object, ...], datetime] = {}

    @contextmanager
    def counted(self, ticket: Ticket) -> Iterator[None]:
        """Counts one request for as long as it lasts."""
        request = ticket.request
        key = (ticket.user_id, ticket.workspace_id, ticket.agent_id, request.access_method, request.app_slug_or_port)
        now = self._ctx.clock.now()
        session = self._sessions.get(key)
        if session is None or (not session.open and now - session.ended_at > PAUSE):
            if session is not None and not session.reported:
                self._sessions[(*key[:4], f"{key[4]}\0{session.id}")] = session  # reported with the next turn
            session = self._sessions[key] = _Session(new_uuid(), now, now)
        session.requests += 1
        session.open += 1
        session.reported = False
        try:
            yield
        finally:
            session.open -= 1
            session.ended_at = self._ctx.clock.now()
            session.reported = False

    async def report(self) -> None:
        """Writes what is new and forgets sessions that are over."""
        now = self._ctx.clock.now()
        news: list[tuple[_Key, _Session]] = []
        for key, session in self._sessions.items():
            if session.open:
                session.ended_at, session.reported = now, False
            if not session.reported:
                news.append((key, session))
        if news:
            rows = [_row(key, session) for key, session in news]
            for _, session in news:
                session.reported = True
            try:
                await self._ctx.db.run(write_sessions, rows, now)
            except BaseException:
                for _, session in news:
                    session.reported = False
                raise
        over = [
            key
            for key, session in self._sessions.items()
            if session.reported and not session.open and (now - session.ended_at > PAUSE or "\0" in key[4])
        ]
        for key in over:
            del self._sessions[key]

    async def log_visit(self, scene: AppScene, user_id: UUID | None, ip: str, user_agent: str, status: int) -> None:
        """A line of the connection log, unless the same visitor had one within the hour."""
        request, view = scene.request, scene.view
        kind = "port_forwarding" if request.port else "workspace_app"
        now = self._ctx.clock.now()
        agent_name = scene.agent.name if scene.agent else ""
        user_agent = user_agent[:_MAX_USER_AGENT].replace("\0", "")
        visitor = (view.workspace.id, agent_name, request.app_slug_or_port, user_id, ip, user_agent, status)
        last = self._logged.get(visitor)
        if last is not None and now - last < LOG_AGAIN:
            return
        if len(self._logged) >= _MAX_REMEMBERED:
            self._logged.clear()
        self._logged[visitor] = now
        row = ConnectionRow(
            id=new_uuid(),
            connect_time=now,
            organization_id=view.workspace.organization_id,
            workspace_owner_id=view.workspace.owner_id,
            workspace_id=view.workspace.id,
            workspace_name=view.workspace.name,
            agent_name=agent_name,
            type=kind,
            ip=ip,
            code=status,
            user_agent=user_agent,
            user_id=user_id,
            slug_or_port=request.app_slug_or_port,
        )
        await self._ctx.db.run(log_store.put_connection, row)


def _row(key: _Key, session: _Session) -> SessionRow:
    return SessionRow(
        session_id=session.id,
        user_id=key[0],
        workspace_id=key[1],
        agent_id=key[2],
        access_method=key[3],
        slug_or_port=key[4].partition("\0")[0],
        session_started_at=session.started_at,
        session_ended_at=session.ended_at,
        requests=session.requests,
    )


async def write_sessions(tx: Tx, rows: Sequence[SessionRow], now: datetime) -> None:
    """Stores sessions and moves the deadlines of the workspaces they were in."""
    for used in await store.put_sessions(tx, rows):
        if used.build_id is not None:
            await note_activity(tx, used.id, used.build_id, now)


async def run(ctx: Context, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
    """Part: reports now and then, and once more at the end."""
    usage: AppUsage = ctx.part(AppUsage)
    task_status.started()
    while not ctx.stopping.is_set():
        with trio.move_on_after(REPORT_EVERY):
            await ctx.stopping.wait()
        try:
            await usage.report()
        except Exception as error:
            # The database may be away for a moment; the sessions stay and are reported next time.
            ctx.log.error("use of applications could not be written", error=error)
