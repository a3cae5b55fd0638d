"""Health of workspace proxies, which each replica checks every minute for itself."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import UUID

import trio

from coder.api.proxies.proxies import WorkspaceProxyStatus
from coder.api.site.health import ProxyHealthReport
from coder.base.errors import CoderError
from coder.base.version import BUILD_VERSION, versions_match
from coder.coderd.services.foundation import outgoing_requests
from coder.coderd.services.network.derp_map import proxy_region
from coder.coderd.store.proxies import workspace_proxies as store

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.proxies.workspace_proxies import ProxyRow

FIRST_REGION = 10_000
"""First number of proxies' relay regions, far from all other regions."""
_MAX_MESSAGES = 20
"""Errors, and as many warnings, kept of one proxy's report."""
SILENT = timedelta(hours=1)
"""Time after which a silent process of a proxy is deleted; processes register every half minute."""


async def check_proxies(ctx: Context) -> None:
    """Check the health of every proxy, and delete processes of proxies that no longer register."""
    health = ctx.services.api.proxy_health
    await health.check_all()
    await ctx.db.run(store.forget_replicas, ctx.clock.now() - SILENT)


class ProxyHealth:
    """Latest health of each proxy."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._statuses: dict[UUID, WorkspaceProxyStatus] = {}
        self._checked: dict[UUID, ProxyRow] = {}

    def healthy_proxies(self) -> tuple[ProxyRow, ...]:
        """Return the proxies that were healthy at their latest check, with their rows of that time."""
        return tuple(row for key, row in self._checked.items() if self._statuses[key].status == "ok")

    def of(self, row: ProxyRow) -> WorkspaceProxyStatus:
        """Return a proxy's status; a newly registered proxy counts as unreachable until its first check."""
        now = self._ctx.clock.now()
        if not row.url:
            report = ProxyHealthReport(errors=["It never registered."], warnings=[])
            return WorkspaceProxyStatus(status="unregistered", checked_at=now, report=report)
        status = self._statuses.get(row.id)
        if status is not None:
            return status
        report = ProxyHealthReport(errors=[], warnings=["It was not checked yet."])
        return WorkspaceProxyStatus(status="unreachable", checked_at=now, report=report)

    async def check_all(self) -> None:
        """Check all registered proxies concurrently."""
        rows = [row for row in await self._ctx.db.read(store.list_proxies) if row.url]
        began = self._ctx.clock.monotonic()
        async with trio.open_nursery() as nursery:
            for row in rows:
                nursery.start_soon(self.check, row)
        metrics = self._ctx.services.metrics
        metrics["coderd_proxyhealth_health_check_duration_seconds"].observe(self._ctx.clock.monotonic() - began)
        numbers = await self._ctx.db.read(store.list_region_ids)
        self._ctx.services.relay_map.proxies = {
            FIRST_REGION + numbers[row.id]: proxy_region(
                FIRST_REGION + numbers[row.id], row.name, row.display_name, row.url
            )
            for row in rows
            if row.derp_enabled and row.id in numbers and self.of(row).status == "ok"
        }
        known = {row.id for row in rows}
        self._statuses = {proxy_id: status for proxy_id, status in self._statuses.items() if proxy_id in known}
        self._checked = {proxy_id: row for proxy_id, row in self._checked.items() if proxy_id in known}

    async def check(self, row: ProxyRow) -> None:
        """Check the health of a proxy."""
        report = ProxyHealthReport(errors=[], warnings=[])
        status = "ok"
        try:
            reply = await outgoing_requests.fetch(
                "GET", row.url.rstrip("/") + "/healthz-report", limit=outgoing_requests.SMALL
            )
            if reply.status != 200:
                raise ValueError(f"it answers /healthz-report with status {reply.status}")
            answer = json.loads(reply.body)
            report.errors = [str(text) for text in answer.get("errors") or []][:_MAX_MESSAGES]
            report.warnings = [str(text) for text in answer.get("warnings") or []][:_MAX_MESSAGES]
            status = "unhealthy" if report.errors else "ok"
        except (CoderError, OSError, ValueError, AttributeError, TypeError, RecursionError) as error:
            status = "unreachable"
            problem = error.message if isinstance(error, CoderError) else str(error)
            report.errors = [f"request to proxy failed: {problem}"]
        if status == "ok" and not versions_match(row.version, BUILD_VERSION):
            report.warnings.append(f"The proxy is of version {row.version}, this server of {BUILD_VERSION}.")
        self._statuses[row.id] = WorkspaceProxyStatus(
            status=status,  # type: ignore[arg-type]
            checked_at=self._ctx.clock.now(),
            report=report,
        )
        self._checked[row.id] = row
