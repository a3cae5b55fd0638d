"""The health report: the server checks itself from outside, the way browsers, agents and daemons reach it.

Sections and codes are upstream's. A report is cached for `--health-check-refresh`; one caller at a time makes a new
one. A section that an administrator dismissed is still checked, but does not count for the overall severity.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import TYPE_CHECKING, Generic, TypeVar

import trio
from msgspec import Struct
from msgspec.structs import replace

from coder.api.site.health import HealthcheckReport, HealthSection, HealthSeverity
from coder.base.log import get_logger
from coder.base.secret import Secret
from coder.base.version import BUILD_VERSION
from coder.coderd.services.site.health_checks import (
    access_url_failure,
    check_access_url,
    check_daemons,
    check_database,
    check_proxies,
    check_websocket,
    daemons_report,
    database_failure,
    proxies_report,
    websocket_failure,
)
from coder.coderd.services.site.health_settings import dismissed
from coder.coderd.services.site.relay_health import check_relays, relays_report

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

_log = get_logger("health")
_TIMEOUT = 30.0
"""Seconds a section may take."""
Report = TypeVar("Report", bound=Struct)

MAX_OUTAGE = 10.0
"""Seconds of a database outage after which load balancers are notified: a restart must not empty their lists."""
_ORDER = ("ok", "warning", "error")


def is_database_away(ctx: Context) -> bool:
    """Whether the outage is too long, judged by the statements of other work: this check runs none."""
    return ctx.db.availability.away_for() > MAX_OUTAGE


class HealthReports:
    """The last report of this process."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._last: HealthcheckReport | None = None
        self._begun = 0.0
        self._making = trio.Lock()

    async def get(self, token: Secret, *, force: bool = False) -> HealthcheckReport:
        """Return the report. `token` is the caller's: the WebSocket check authenticates with it.

        Dismissed sections are read each time and are not part of the cached report, so a change applies immediately. A
        report that began after a forced request also answers that request: many forced requests wait for at most two
        reports.
        """
        requested_at = trio.current_time()
        async with self._making:
            if self._last is None or self._is_old(self._last) or (force and self._begun < requested_at):
                begun = trio.current_time()
                self._last = await make_report(self._ctx, token)
                self._begun = begun
            report = self._last
        return with_dismissed(report, await self._dismissed())

    def _is_old(self, report: HealthcheckReport) -> bool:
        return self._ctx.clock.now() - report.time >= self._ctx.config.health_check_refresh

    async def _dismissed(self) -> list[HealthSection]:
        try:
            return await dismissed(self._ctx)
        except Exception as error:
            # The database may be what is broken: a full report is better than none.
            _log.warn("the dismissed health sections could not be read", error=error)
            return []


class _Check(Generic[Report]):
    """A check of one section; `result` stays None when it fails or does not answer in time."""

    def __init__(self, name: HealthSection, run: Callable[[], Awaitable[Report]]) -> None:
        self.result: Report | None = None
        self._name = name
        self._run = run

    async def run(self) -> None:
        try:
            with trio.move_on_after(_TIMEOUT):
                self.result = await self._run()
        except Exception as error:
            # A check that raises is reported as failed; the other checks still count.
            _log.warn("a health check failed", check=self._name, error=error)


def with_dismissed(report: HealthcheckReport, ignored: Collection[str]) -> HealthcheckReport:
    """Return the report with dismissed sections marked, and the severity of the others: ok without any."""

    def mark(name: HealthSection, section: Report) -> Report:
        return replace(section, dismissed=name in ignored)

    severities: dict[HealthSection, HealthSeverity] = {
        "AccessURL": report.access_url.severity,
        "Database": report.database.severity,
        "DERP": report.derp.severity,
        "ProvisionerDaemons": report.provisioner_daemons.severity,
        "Websocket": report.websocket.severity,
        "WorkspaceProxy": report.workspace_proxy.severity,
    }
    counting = [severity for name, severity in severities.items() if name not in ignored]
    severity: HealthSeverity = max(counting, key=_ORDER.index, default="ok")
    return replace(
        report,
        healthy=severity != "error",
        severity=severity,
        access_url=mark("AccessURL", report.access_url),
        database=mark("Database", report.database),
        derp=mark("DERP", report.derp),
        provisioner_daemons=mark("ProvisionerDaemons", report.provisioner_daemons),
        websocket=mark("Websocket", report.websocket),
        workspace_proxy=mark("WorkspaceProxy", report.workspace_proxy),
    )


async def make_report(ctx: Context, token: Secret) -> HealthcheckReport:
    """Run all checks concurrently. No section is dismissed."""
    access_url = _Check("AccessURL", lambda: check_access_url(ctx))
    websocket = _Check("Websocket", lambda: check_websocket(ctx, token))
    database = _Check("Database", lambda: check_database(ctx))
    derp = _Check("DERP", lambda: check_relays(ctx))
    daemons = _Check("ProvisionerDaemons", lambda: check_daemons(ctx))
    proxies = _Check("WorkspaceProxy", lambda: check_proxies(ctx))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(access_url.run)
        nursery.start_soon(websocket.run)
        nursery.start_soon(database.run)
        nursery.start_soon(derp.run)
        nursery.start_soon(daemons.run)
        nursery.start_soon(proxies.run)
    whole = HealthcheckReport(
        time=ctx.clock.now(),
        healthy=True,
        severity="ok",
        coder_version=BUILD_VERSION,
        access_url=access_url.result or access_url_failure(ctx, f"the access URL did not answer within {_TIMEOUT:g} s"),
        websocket=websocket.result or websocket_failure("no answer in time"),
        database=database.result or database_failure(ctx, "no answer in time"),
        derp=derp.result or relays_report({}, {}, [], "no answer in time"),
        provisioner_daemons=daemons.result or daemons_report([], "no answer in time"),
        workspace_proxy=proxies.result or proxies_report([], "no answer in time"),
    )
    return with_dismissed(whole, ())
