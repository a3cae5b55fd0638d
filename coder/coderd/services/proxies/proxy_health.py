"""Can workspace proxies be reached, and are they well? Looked at every minute by every replica for itself."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import UUID

import trio

from coder.api.proxies.proxies import WorkspaceProxyStatus
from coder.api.site.health import ProxyHealthReport
from coder.base.errors import CoderError
from coder.base.version import BUILD_VERSION
from coder.coderd.services.foundation import outgoing_requests
from coder.coderd.services.network.derp_map import RelayMap, proxy_region
from coder.coderd.services.telemetry.metrics import Metrics
from coder.coderd.store.proxies import workspace_proxies as store

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.proxies.workspace_proxies import ProxyRow

FIRST_REGION = 10_000
"""Relay regions of proxies are numbered from here, far from everybody else's."""
_MAX_WORDS = 20
"""Errors and warnings taken over from one proxy."""
SILENT = timedelta(hours=1)
"""A process of a proxy registers every half minute; after this it is forgotten."""


async def look_at_proxies(ctx: Context) -> None:
    """Asks every proxy how it is, and forgets processes of theirs that fell silent."""
    health = ctx.part(ProxyHealth)
    await health.look()
    await ctx.db.run(store.forget_replicas, ctx.clock.now() - SILENT)


class ProxyHealth:
    """What was last seen of each proxy, see `Context.part`."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._seen: dict[UUID, WorkspaceProxyStatus] = {}
        self._asked: dict[UUID, ProxyRow] = {}

    def well(self) -> tuple[ProxyRow, ...]:
        """The proxies that answered well when they were asked last, as they were then."""
        return tuple(row for key, row in self._asked.items() if self._seen[key].status == "ok")

    def of(self, row: ProxyRow) -> WorkspaceProxyStatus:
        """A proxy's state; one that registered a moment ago counts as unreachable until it was asked."""
        now = self._ctx.clock.now()
        if not row.url:
            report = ProxyHealthReport(errors=["It never registered."], warnings=[])
            return WorkspaceProxyStatus(status="unregistered", checked_at=now, report=report)
        found = self._seen.get(row.id)
        if found is not None:
            return found
        report = ProxyHealthReport(errors=[], warnings=["It was not asked yet."])
        return WorkspaceProxyStatus(status="unreachable", checked_at=now, report=report)

    async def look(self) -> None:
        """Asks every registered proxy at once."""
        rows = [row for row in await self._ctx.db.read(store.list_proxies) if row.url]
        began = self._ctx.clock.monotonic()
        async with trio.open_nursery() as nursery:
            for row in rows:
                nursery.start_soon(self.look_at, row)
        metrics = self._ctx.part(Metrics)
        metrics["coderd_proxyhealth_health_check_duration_seconds"].observe(self._ctx.clock.monotonic() - began)
        numbers = await self._ctx.db.read(store.list_region_ids)
        self._ctx.part(RelayMap).proxies = {
            FIRST_REGION + numbers[row.id]: proxy_region(
                FIRST_REGION + numbers[row.id], row.name, row.display_name, row.url
            )
            for row in rows
            if row.derp_enabled and row.id in numbers and self.of(row).status == "ok"
        }
        known = {row.id for row in rows}
        self._seen = {proxy_id: status for proxy_id, status in self._seen.items() if proxy_id in known}
        self._asked = {proxy_id: row for proxy_id, row in self._asked.items() if proxy_id in known}

    async def look_at(self, row: ProxyRow) -> None:
        """Asks one proxy how it is."""
        report = ProxyHealthReport(errors=[], warnings=[])
        status = "ok"
        try:
            reply = await outgoing_requests.fetch(
                "GET", row.url.rstrip("/") + "/healthz-report", limit=outgoing_requests.SMALL
            )
            if reply.status != 200:
                raise ValueError(f"it answers /healthz-report with status {reply.status}")
            found = json.loads(reply.body)
            report.errors = [str(text) for text in found.get("errors") or []][:_MAX_WORDS]
            report.warnings = [str(text) for text in found.get("warnings") or []][:_MAX_WORDS]
            status = "unhealthy" if report.errors else "ok"
        except (CoderError, OSError, ValueError, AttributeError, TypeError, RecursionError) as error:
            status = "unreachable"
            words = error.message if isinstance(error, CoderError) else str(error)
            report.errors = [f"request to proxy failed: {words}"]
        if status == "ok" and row.version and row.version != BUILD_VERSION:
            report.warnings.append(f"The proxy is of version {row.version}, this server of {BUILD_VERSION}.")
        self._seen[row.id] = WorkspaceProxyStatus(
            status=status,  # type: ignore[arg-type]
            checked_at=self._ctx.clock.now(),
            report=report,
        )
        self._asked[row.id] = row
