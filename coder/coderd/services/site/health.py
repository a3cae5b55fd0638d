"""The health report: the server looks at itself from outside, the way people, agents and daemons reach it.

Sections and codes are upstream's. A report is kept for `--health-check-refresh` and made by one caller at a time.
A section that an administrator dismissed is still checked; it just counts no longer for the whole.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Collection
from datetime import timedelta
from statistics import median
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

import trio
from msgspec import UNSET
from msgspec.structs import replace

from coder.api.base.refusals import Failed
from coder.api.site.health import (
    AccessURLReport,
    DatabaseReport,
    HealthcheckReport,
    HealthCode,
    HealthMessage,
    HealthSection,
    HealthSettings,
    HealthSeverity,
    ProvisionerDaemonsReport,
    ProvisionerDaemonsReportItem,
    WebsocketReport,
    WorkspaceProxyReport,
)
from coder.base.duration import format_duration
from coder.base.errors import CoderError
from coder.base.log import get_logger
from coder.base.secret import Secret
from coder.base.version import BUILD_VERSION
from coder.coderd.services.access.authorization import require
from coder.coderd.services.apps.session_handover import app_host
from coder.coderd.services.foundation.outgoing_requests import SMALL
from coder.coderd.services.provisioning import provisioners
from coder.coderd.services.proxies import workspace_proxies
from coder.coderd.services.site.relay_health import check_relays, relays_report
from coder.coderd.store.people import organizations as organization_store
from coder.coderd.store.site import site_settings
from coder.domain.access.policy import SYSTEM, Resource, Subject
from coder.net.errors import HttpError
from coder.net.http1 import HttpClient
from coder.net.policy import DialPolicy
from coder.net.websocket import connect_websocket

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

SECTIONS: tuple[str, ...] = cast("Any", HealthSection).__args__
_SETTINGS = "health_settings"
_log = get_logger("health")
_TIMEOUT = 30.0
"""Seconds a section may take."""
_PINGS = 5
AWAY_TOO_LONG = 10.0
"""Seconds the database may be away before load balancers are told: a restart must not empty their lists."""
_ORDER = ("ok", "warning", "error")
_BIG: HealthSeverity = "error"


def require_health(subject: Subject, action: str = "read") -> None:
    """Health concerns those who run the deployment. Raises Forbidden."""
    require(subject, action, Resource("debug_info"), hidden=False)


async def settings(ctx: Context, subject: Subject) -> HealthSettings:
    """Which sections nobody wants to hear of. Raises Forbidden."""
    require_health(subject)
    return HealthSettings(dismissed_healthchecks=cast("list[HealthSection]", await dismissed(ctx)))


async def dismissed(ctx: Context) -> list[str]:
    stored = await ctx.db.read(site_settings.get_config, _SETTINGS)
    return list(json.loads(stored) or ()) if stored else []


async def set_dismissed(ctx: Context, subject: Subject, sections: list[str] | None) -> bool:
    """False when it was so already; None is kept apart from an empty list, and means as much.

    Raises Forbidden, Failed (no such section: upstream's 500).
    """
    require(subject, "update", Resource("deployment_config"), hidden=False)
    unknown = [section for section in sections or () if section not in SECTIONS]
    if unknown:
        raise Failed("Failed to validate health settings.", f"unknown healthcheck section: {unknown[0]}")
    wanted = json.dumps(sections)
    if await ctx.db.read(site_settings.get_config, _SETTINGS) == wanted:
        return False
    await ctx.db.run(site_settings.put_config, _SETTINGS, wanted)
    return True


def is_database_away(ctx: Context) -> bool:
    """For too long, by what the work on it shows: no statement is run for this."""
    return ctx.db.availability.away_for() > AWAY_TOO_LONG


class HealthReports:
    """The last report of this process. Made once, see `Context.part`."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._last: HealthcheckReport | None = None
        self._begun = 0.0
        self._making = trio.Lock()

    async def get(self, token: Secret, *, force: bool = False) -> HealthcheckReport:
        """`token` is the caller's: the WebSocket check signs in with it. What is dismissed is so at once: it is asked
        each time, and not part of what is kept.

        A look that began after somebody forced one is theirs, too: many who force one wait for two at most.
        """
        asked = trio.current_time()
        async with self._making:
            if self._last is None or self._is_old(self._last) or (force and self._begun < asked):
                begun = trio.current_time()
                self._last = await make_report(self._ctx, token)
                self._begun = begun
            report = self._last
        return judged(report, await self._dismissed())

    def _is_old(self, report: HealthcheckReport) -> bool:
        return self._ctx.clock.now() - report.time >= self._ctx.config.health_check_refresh

    async def _dismissed(self) -> list[str]:
        try:
            return await dismissed(self._ctx)
        except Exception as error:
            # The database may be what is broken: rather all of the report than none of it.
            _log.warn("what is dismissed of the health report was not read", error=error)
            return []


_FIELDS = {
    "AccessURL": "access_url",
    "Database": "database",
    "DERP": "derp",
    "ProvisionerDaemons": "provisioner_daemons",
    "Websocket": "websocket",
    "WorkspaceProxy": "workspace_proxy",
}
"""Where a report has each section."""


def judged(report: HealthcheckReport, ignored: Collection[str]) -> HealthcheckReport:
    """The report with what is dismissed marked, and the whole as the other sections are: well when there are none."""
    sections = {place: replace(getattr(report, place), dismissed=name in ignored) for name, place in _FIELDS.items()}
    counting = [_severity(section) for section in sections.values() if not section.dismissed]
    severity: HealthSeverity = max(counting, key=_ORDER.index, default="ok")
    return replace(report, healthy=severity != "error", severity=severity, **sections)


async def make_report(ctx: Context, token: Secret) -> HealthcheckReport:
    """Looks at everything at once; nothing of it is dismissed."""
    found: dict[str, Any] = {}

    async def check(name: str, look: Callable[[], Awaitable[Any]]) -> None:
        try:
            with trio.move_on_after(_TIMEOUT):
                found[name] = await look()
        except Exception as error:
            # What cannot even be looked at is reported as broken below; the other looks still count.
            _log.warn("a health check failed", check=name, error=error)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(check, "AccessURL", lambda: check_access_url(ctx))
        nursery.start_soon(check, "Websocket", lambda: check_websocket(ctx, token))
        nursery.start_soon(check, "Database", lambda: check_database(ctx))
        nursery.start_soon(check, "DERP", lambda: check_relays(ctx))
        nursery.start_soon(check, "ProvisionerDaemons", lambda: check_daemons(ctx))
        nursery.start_soon(check, "WorkspaceProxy", lambda: check_proxies(ctx))
    found.setdefault("AccessURL", _unreachable(ctx, f"the access URL did not answer within {_TIMEOUT:g} s"))
    found.setdefault("Websocket", _no_websocket("no answer in time"))
    found.setdefault("Database", _no_database(ctx, "no answer in time"))
    found.setdefault("DERP", relays_report({}, {}, [], "no answer in time"))
    found.setdefault("ProvisionerDaemons", _daemons_report([], "no answer in time"))
    found.setdefault("WorkspaceProxy", _proxies_report({"regions": []}, "no answer in time"))
    sections = {place: found[name] for name, place in _FIELDS.items()}
    whole = HealthcheckReport(
        time=ctx.clock.now(), healthy=True, severity="ok", coder_version=BUILD_VERSION, **sections
    )
    return judged(whole, ())


def _severity(report: Any) -> HealthSeverity:
    return cast("HealthSeverity", report.severity)


def _message(code: HealthCode, text: str) -> HealthMessage:
    return HealthMessage(code=code, message=text)


# ---- access URL


async def check_access_url(ctx: Context) -> AccessURLReport:
    """Does `/healthz` answer where people are sent?"""
    parts = urlsplit(ctx.access_url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        return _unreachable(ctx, f"EACS02: {ctx.access_url!r} is no URL")
    try:
        async with HttpClient(DialPolicy(url=ctx.access_url)) as client:
            answer = await client.request("GET", "/healthz", expect=tuple(range(200, 600)), limit=SMALL)
    except (CoderError, OSError, trio.BrokenResourceError) as error:
        return _unreachable(ctx, f"EACS03: {error}")
    healthy = answer.status == 200
    return AccessURLReport(
        access_url=ctx.access_url,
        dismissed=False,
        healthy=healthy,
        healthz_response=answer.body.decode(errors="replace")[:1000],
        reachable=True,
        severity="ok" if healthy else "warning",
        status_code=answer.status,
        warnings=[] if healthy else [_message("EACS04", f"/healthz answered {answer.status}")],
    )


def _unreachable(ctx: Context, error: str) -> AccessURLReport:
    return AccessURLReport(
        access_url=ctx.access_url,
        dismissed=False,
        healthy=False,
        healthz_response="",
        reachable=False,
        severity=_BIG,
        status_code=0,
        warnings=[],
        error=error,
    )


# ---- WebSocket


async def check_websocket(ctx: Context, token: Secret) -> WebsocketReport:
    """Do WebSockets get through, and come their messages back?"""
    policy = DialPolicy(url=ctx.access_url, token=token)
    try:
        stream = await connect_websocket(policy, "/api/v2/debug/ws")
        async with stream:
            for number in range(3):
                await stream.send_message(str(number))
                if await stream.receive_message() != str(number):
                    return _no_websocket("EWS03: what was sent did not come back")
    except HttpError as error:
        report = _no_websocket(f"EWS01: {error}")
        report.code = error.status
        return report
    except (CoderError, OSError, trio.BrokenResourceError) as error:
        return _no_websocket(f"EWS02: {error}")
    return WebsocketReport(body="", code=101, dismissed=False, healthy=True, severity="ok", warnings=[])


def _no_websocket(error: str) -> WebsocketReport:
    return WebsocketReport(body="", code=0, dismissed=False, healthy=False, severity=_BIG, warnings=[], error=error)


# ---- database


async def check_database(ctx: Context) -> DatabaseReport:
    """How long does the smallest question take?"""
    threshold = ctx.config.health_check_threshold_database
    times = []
    try:
        for _ in range(_PINGS):
            started = trio.current_time()
            await ctx.db.read(site_settings.ping)
            times.append(trio.current_time() - started)
    except Exception as error:
        return _no_database(ctx, f"EDB01: {error}")
    latency = timedelta(seconds=median(times))
    slow = latency >= threshold
    text = f"Median database ping over {_PINGS} pings is {latency / timedelta(milliseconds=1):.1f} ms"
    return DatabaseReport(
        dismissed=False,
        healthy=not slow,
        latency=format_duration(latency),
        latency_ms=int(latency / timedelta(milliseconds=1)),
        reachable=True,
        severity="warning" if slow else "ok",
        threshold_ms=int(threshold / timedelta(milliseconds=1)),
        warnings=[_message("EDB02", text)] if slow else [],
    )


def _no_database(ctx: Context, error: str) -> DatabaseReport:
    return DatabaseReport(
        dismissed=False,
        healthy=False,
        latency="0s",
        latency_ms=0,
        reachable=False,
        severity=_BIG,
        threshold_ms=int(ctx.config.health_check_threshold_database / timedelta(milliseconds=1)),
        warnings=[],
        error=error,
    )


# ---- provisioner daemons and proxies


async def check_daemons(ctx: Context) -> ProvisionerDaemonsReport:
    """Is there anybody who can build?"""
    items: list[ProvisionerDaemonsReportItem] = []
    for organization in await ctx.db.read(organization_store.list_organizations):
        everybody = provisioners.DaemonFilter(limit=0)
        for daemon in await provisioners.list_daemons(ctx, SYSTEM, organization.id, everybody):
            daemon.key_name = daemon.status = daemon.current_job = daemon.previous_job = None
            current = daemon.version == BUILD_VERSION
            warnings = [] if current else [_message("EPD02", f"Mismatched version {daemon.version!r}")]
            items.append(ProvisionerDaemonsReportItem(provisioner_daemon=daemon, warnings=warnings))
    return _daemons_report(items)


def _daemons_report(items: list[ProvisionerDaemonsReportItem], error: str = "") -> ProvisionerDaemonsReport:
    severity: HealthSeverity = "warning" if any(item.warnings for item in items) else "ok"
    if not items and not error:
        error = "EPD01: No active provisioner daemons found!"
    return ProvisionerDaemonsReport(
        dismissed=False, items=items, severity="error" if error else severity, warnings=[], error=error or UNSET
    )


async def check_proxies(ctx: Context) -> WorkspaceProxyReport:
    """This server, and how each proxy was when it was last asked."""
    proxies = (await workspace_proxies.list_all_proxies(ctx))[1:]
    report = _proxies_report({"regions": [_primary(ctx), *proxies]})
    for proxy in proxies:
        status = proxy.status
        if not status or status.status in {"ok", "unregistered"}:
            continue
        words = "; ".join(status.report.errors) if status.report else ""
        code: Any = "EWP04" if status.status == "unhealthy" else "EWP02"
        report.warnings.append(HealthMessage(code=code, message=f"Proxy {proxy.name} is {status.status}: {words}"))
    if report.warnings:
        serving = [proxy for proxy in proxies if proxy.path_app_url] or proxies  # where all are relays, they count
        report.severity = "error" if not any(proxy.healthy for proxy in serving) else "warning"
        report.healthy = report.severity != "error"
    return report


def _primary(ctx: Context) -> dict[str, Any]:
    """This server as a region, in the words of this report (recorded)."""
    now = ctx.clock.now()
    return {
        "id": ctx.deployment_id,
        "name": "primary",
        "display_name": "Default",
        "icon_url": "/emojis/1f3e1.png",
        "healthy": True,
        "path_app_url": ctx.access_url,
        "wildcard_hostname": app_host(ctx),
        "derp_enabled": False,
        "derp_only": False,
        "status": {"status": "ok", "report": {"errors": [], "warnings": []}, "checked_at": now},
        "created_at": now,
        "updated_at": now,
        "deleted": False,
        "version": "",
    }


def _proxies_report(proxies: Any, error: str = "") -> WorkspaceProxyReport:
    return WorkspaceProxyReport(
        dismissed=False,
        healthy=not error,
        severity="error" if error else "ok",
        warnings=[],
        workspace_proxies=proxies,
        error=error or UNSET,
    )
