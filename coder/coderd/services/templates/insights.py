"""Figures of the deployment: users a day, users by status, workspaces and sessions at present.

Reports of a chosen window are `usage_reports.py`.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import Forbidden
from coder.api.site.deployment import (
    DeploymentStats,
    SessionCountDeploymentStats,
    WorkspaceDeploymentStats,
)
from coder.api.templates.insights import (
    DAUEntry,
    DAUsResponse,
    UserStatusChangeCount,
)
from coder.api.workspaces.workspace_requests import WorkspaceConnectionLatencyMS
from coder.coderd.services.access.authorization import may, require
from coder.coderd.store.templates import insights as store
from coder.domain.access.policy import Class, Subject, key_allows

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context


DAYS = 60
"""Days that the daily lists cover."""
STATS_WINDOW = timedelta(minutes=15)


async def daily_users(ctx: Context, subject: Subject, offset_hours: int) -> DAUsResponse:
    """Return the number of users per day in the whole deployment. Raises Forbidden."""
    require(subject, "read", Class("deployment_stats"), hidden=False)
    return await count_daily_users(ctx, offset_hours)


async def count_daily_users(ctx: Context, offset_hours: int = 0, template_id: UUID | None = None) -> DAUsResponse:
    """Count users per day for 60 days and today, in days of that zone, without a check of permissions."""
    today = (ctx.clock.now() + timedelta(hours=offset_hours)).date()
    days = [today - timedelta(days=back) for back in range(DAYS, -1, -1)]
    start = datetime.combine(days[0], datetime.min.time(), UTC) - timedelta(hours=offset_hours)
    counted = await ctx.db.read(store.daily_users, start, offset_hours, template_id)
    entries = [DAUEntry(date=day.isoformat(), amount=counted.get(day, 0)) for day in days]
    return DAUsResponse(entries=entries, tz_hour_offset=offset_hours)


async def status_counts(ctx: Context, subject: Subject, zone: tzinfo) -> dict[str, list[UserStatusChangeCount]]:
    """Return the number of users by status at the beginning of each day. Raises Forbidden."""
    membership = Class("organization_member", any_organization=True)
    by_role = may(subject, "read", Class("user")) or may(subject, "create", membership)
    if not by_role or not key_allows(subject, "read", Class("user")):
        raise Forbidden
    today = ctx.clock.now().astimezone(zone).date()
    dates = [today - timedelta(days=back) for back in range(DAYS, -1, -1)]
    days = [datetime.combine(day, datetime.min.time(), zone).astimezone(UTC) for day in dates]
    counts_by_status = await ctx.db.read(store.status_counts, days)
    return {
        status: [UserStatusChangeCount(date=day.astimezone(zone), count=counts.get(day, 0)) for day in days]
        for status, counts in counts_by_status.items()
    }


async def deployment_stats(ctx: Context, subject: Subject) -> DeploymentStats:
    """Return the figures of the deployment. Raises Forbidden."""
    require(subject, "read", Class("deployment_stats"), hidden=False)
    stats: DeploymentStats = await ctx.services.api.deployment_stats.get()
    return stats


class StatsCache:
    """Figures of the deployment, counted at most twice a minute per process because dashboards poll them."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._stats: DeploymentStats | None = None

    async def get(self) -> DeploymentStats:
        now = self._ctx.clock.now()
        if self._stats is None or now >= self._stats.next_update_at:
            self._stats = await self._count(now)
        return self._stats

    async def _count(self, now: datetime) -> DeploymentStats:
        since = now - STATS_WINDOW
        figures = await self._ctx.db.read(store.figures, since)
        return DeploymentStats(
            aggregated_from=since,
            collected_at=now,
            next_update_at=now + self._ctx.config.agent_stats_refresh_interval,
            workspaces=WorkspaceDeploymentStats(
                pending=figures.pending,
                building=figures.building,
                running=figures.running,
                failed=figures.failed,
                stopped=figures.stopped,
                connection_latency_ms=WorkspaceConnectionLatencyMS(P50=figures.p50, P95=figures.p95),
                rx_bytes=figures.rx_bytes,
                tx_bytes=figures.tx_bytes,
            ),
            session_count=SessionCountDeploymentStats(
                vscode=figures.vscode,
                ssh=figures.ssh,
                jetbrains=figures.jetbrains,
                reconnecting_pty=figures.reconnecting_pty,
            ),
        )
