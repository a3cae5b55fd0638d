"""Use of applications: counted in memory, written every half minute, reported to the workspace as activity.

Counting is in `appproxy/apps/app_sessions.py`; proxies report the same rows for their own traffic. The connection log
gets at most one line an hour for the same visitor and application.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

import trio

from coder.api.audit.audit import ConnectionType
from coder.api.proxies.proxies import AppStat
from coder.appproxy.apps.app_sessions import REPORT_EVERY, AppSessions
from coder.appproxy.http.client_address import network_of
from coder.base.ids import new_uuid
from coder.coderd.services.activity.deadlines import bump_deadline
from coder.coderd.store.apps import app_sessions as store
from coder.coderd.store.apps.app_sessions import SessionRow
from coder.coderd.store.audit import connection_log as log_store
from coder.coderd.store.audit.connection_log import ConnectionRow
from coder.domain.access.user_agents import kept

if TYPE_CHECKING:
    from coder.appproxy.apps.app_tickets import Ticket
    from coder.coderd.services.apps.app_access import AppContext
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.agents.agents import CurrentAgent
    from coder.coderd.store.engine.database import Tx

LOG_INTERVAL = timedelta(hours=1)
"""Time after which the same visitor is logged again. Upstream's value is not known."""
_MAX_LOGGED = 10_000
TERMINAL = "terminal"
"""Application of a web terminal in the connection log (upstream's name)."""


class AppUsage:
    """Application sessions of this process."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._sessions = AppSessions(ctx.clock.now)
        self._logged: dict[tuple[UUID, str, str, UUID | None, str, int], datetime] = {}
        "The oldest first."

    def counted(self, ticket: Ticket) -> AbstractContextManager[None]:
        """Count one request for as long as it lasts."""
        return self._sessions.counted(ticket)

    async def report(self) -> None:
        """Write new sessions and forget the ones that ended."""
        await self._sessions.report(self._write)

    async def _write(self, stats: list[AppStat]) -> None:
        await write_sessions(self._ctx, [row_of(stat) for stat in stats])

    async def log_request(
        self, visited: AppContext, user_id: UUID | None, ip: str, user_agent: str, status: int
    ) -> None:
        """Write a line of the connection log, unless the same visitor had one within the hour."""
        request, view = visited.request, visited.view
        kind: ConnectionType = "port_forwarding" if request.port else "workspace_app"
        await self._log(
            ConnectionRow(
                id=new_uuid(),
                connect_time=self._ctx.clock.now(),
                organization_id=view.workspace.organization_id,
                workspace_owner_id=view.workspace.owner_id,
                workspace_id=view.workspace.id,
                workspace_name=view.workspace.name,
                agent_name=visited.agent.name if visited.agent else "",
                type=kind,
                ip=ip,
                code=status,
                user_agent=kept(user_agent),
                user_id=user_id,
                slug_or_port=request.app_slug_or_port,
            )
        )

    async def log_terminal(self, agent_place: CurrentAgent, user_id: UUID, ip: str, user_agent: str) -> None:
        """Write a line for a web terminal, with the same rule. The agent reports the session too, but not its user."""
        await self._log(
            ConnectionRow(
                id=new_uuid(),
                connect_time=self._ctx.clock.now(),
                organization_id=agent_place.organization_id,
                workspace_owner_id=agent_place.owner_id,
                workspace_id=agent_place.workspace_id,
                workspace_name=agent_place.workspace_name,
                agent_name=agent_place.agent.name,
                type="workspace_app",
                ip=ip,
                code=200,
                user_agent=kept(user_agent),
                user_id=user_id,
                slug_or_port=TERMINAL,
            )
        )

    async def _log(self, row: ConnectionRow) -> None:
        now = row.connect_time
        # Without the user agent and the full address: a visitor can vary both with every request.
        visitor = (
            row.workspace_id,
            row.agent_name,
            row.slug_or_port or "",
            row.user_id,
            network_of(row.ip),
            row.code or 0,
        )
        last = self._logged.get(visitor)
        if last is not None and now - last < LOG_INTERVAL:
            return
        self._logged.pop(visitor, None)
        self._logged[visitor] = now
        if len(self._logged) > _MAX_LOGGED:
            del self._logged[next(iter(self._logged))]
        await self._ctx.db.run(log_store.put_connection, row)


def row_of(stat: AppStat) -> SessionRow:
    """Return the stored row of a session."""
    return SessionRow(**{name: getattr(stat, name) for name in SessionRow.__slots__})


async def write_sessions(ctx: Context, rows: Sequence[SessionRow]) -> None:
    """Store sessions, extend the deadlines of their workspaces and mark these as used."""
    now = ctx.clock.now()
    for workspace_id in await ctx.db.run(_write_sessions, rows, now):
        ctx.services.last_use.note(workspace_id, now)


async def _write_sessions(tx: Tx, rows: Sequence[SessionRow], now: datetime) -> list[UUID]:
    used = {
        session.id: session.build_id for session in await store.put_sessions(tx, rows) if session.build_id is not None
    }
    for build_id in used.values():
        await bump_deadline(tx, build_id, now)
    return list(used)


async def run(ctx: Context, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
    """Run as a part of the server: report periodically, and once more when the server stops."""
    usage = ctx.services.edge.app_usage
    task_status.started()
    while not ctx.stopping.is_set():
        with trio.move_on_after(REPORT_EVERY):
            await ctx.stopping.wait()
        try:
            await usage.report()
        except Exception as error:
            # The database may be away for a moment; the sessions are kept and reported next time.
            ctx.log.error("use of applications could not be written", error=error)
