"""Statuses of applications, as agents report them over HTTP and RPC."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from coder.api.agents.agents import WorkspaceAppStatusState
from coder.api.base.refusals import Invalid
from coder.base.ids import new_uuid
from coder.coderd.services.agents.agent_logs import REPLACEMENT
from coder.coderd.services.notifications import task_notifications
from coder.coderd.services.notifications.notifications import NotificationSite, site_of
from coder.coderd.store.agents import agent_apps as app_store
from coder.coderd.store.agents.agent_apps import AppStatusRow
from coder.coderd.store.agents.agents import CurrentAgent
from coder.coderd.store.workspaces.change_feed import notify_change

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

_APP_STATES: tuple[WorkspaceAppStatusState, ...] = ("working", "idle", "complete", "failure")
_MAX_STATUS_MESSAGE = 160


@dataclass(frozen=True, slots=True)
class AppReport:
    """Status of an application, as an agent reports it."""

    app_slug: str
    state: str
    message: str = ""
    uri: str = ""


async def report_app_status(ctx: Context, current: CurrentAgent, report: AppReport) -> None:
    """Store a status. Raises Invalid (message too long, unknown app, unknown state)."""
    if len(report.message) > _MAX_STATUS_MESSAGE:
        problem = f"Message must be less than {_MAX_STATUS_MESSAGE} characters."
        raise Invalid("Message is too long.", problem, [("message", problem)])
    if (state := report.state) not in _APP_STATES:
        raise Invalid("Failed to parse request.", f"Invalid state: {report.state}")
    await ctx.db.run(_report_app_status, current, report, state, site_of(ctx), ctx.clock.now())


async def _report_app_status(
    tx: Tx,
    current: CurrentAgent,
    report: AppReport,
    state: WorkspaceAppStatusState,
    site: NotificationSite,
    now: datetime,
) -> None:
    apps = await app_store.list_apps(tx, [current.agent.id])
    detail = next((item for item in apps if item.app.slug == report.app_slug), None)
    if detail is None:
        raise Invalid("Failed to get workspace app.", f'No app found with slug "{report.app_slug}"')
    row = AppStatusRow(
        id=new_uuid(),
        created_at=now,
        workspace_id=current.workspace_id,
        agent_id=current.agent.id,
        app_id=detail.app.id,
        state=state,
        message=report.message.replace("\x00", REPLACEMENT),
        uri=report.uri.replace("\x00", ""),
    )
    await app_store.insert_app_status(tx, row)
    await task_notifications.notify_app_status(
        tx, site, current, row, detail.statuses[0].state if detail.statuses else None, now
    )
    await notify_change(
        tx, "app_status", owner_id=current.owner_id, workspace_id=current.workspace_id, agent_id=current.agent.id
    )
