"""The checks of the health report, one for each section except the relays."""

from __future__ import annotations

import socket
from collections import Counter
from datetime import timedelta
from statistics import median
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec
import trio
from msgspec import UNSET

from coder.api.proxies.proxies import WorkspaceProxiesResponse, WorkspaceProxy, WorkspaceProxyStatus
from coder.api.site.health import (
    AccessURLReport,
    DatabaseReport,
    HealthCode,
    HealthMessage,
    HealthSeverity,
    ProvisionerDaemonsReport,
    ProvisionerDaemonsReportItem,
    ProxyHealthReport,
    WebsocketReport,
    WorkspaceProxyReport,
)
from coder.base.duration import format_duration
from coder.base.errors import CoderError
from coder.base.secret import Secret
from coder.base.version import BUILD_VERSION, versions_match
from coder.coderd.services.apps.session_handover import app_host
from coder.coderd.services.foundation.database_clock import skew_of
from coder.coderd.services.foundation.outgoing_requests import SMALL
from coder.coderd.services.foundation.this_process import same_machine
from coder.coderd.services.network.replicas import one_of_each_machine, skew_text
from coder.coderd.services.provisioning import provisioners
from coder.coderd.services.proxies import workspace_proxies
from coder.coderd.store.access import build_keys
from coder.coderd.store.people import organizations as organization_store
from coder.coderd.store.site import site_settings
from coder.domain.access.policy import SYSTEM
from coder.net.errors import HttpError
from coder.net.http1 import HttpClient
from coder.net.policy import DialPolicy
from coder.net.websocket import connect_websocket

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context


_PINGS = 5
LOST_FOR = timedelta(hours=1)
"""Time for which a lost process is reported."""


_BIG: HealthSeverity = "error"


def _message(code: HealthCode, text: str) -> HealthMessage:
    return HealthMessage(code=code, message=text)


async def check_access_url(ctx: Context) -> AccessURLReport:
    """Check that `/healthz` answers at the access URL."""
    parts = urlsplit(ctx.access_url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        return access_url_failure(ctx, f"EACS02: {ctx.access_url!r} is not a URL")
    try:
        async with HttpClient(DialPolicy(url=ctx.access_url)) as client:
            response = await client.request("GET", "/healthz", expect=tuple(range(200, 600)), limit=SMALL)
    except (CoderError, OSError, trio.BrokenResourceError) as error:
        return access_url_failure(ctx, f"EACS03: {error}")
    healthy = response.status == 200
    warnings = [] if healthy else [_message("EACS04", f"/healthz answered {response.status}")]
    warnings += _lost_processes(ctx)
    return AccessURLReport(
        access_url=ctx.access_url,
        dismissed=False,
        healthy=healthy,
        healthz_response=response.body.decode(errors="replace")[:1000],
        reachable=True,
        severity="warning" if warnings else "ok",
        status_code=response.status,
        warnings=warnings,
    )


def _lost_processes(ctx: Context) -> list[HealthMessage]:
    """Return a warning for each process of this server that was lost in the last hour, and for its last cause."""
    since = (ctx.clock.now() - LOST_FOR).timestamp() + skew_of(ctx.clock)  # the supervisor has the machine's clock
    recent = [incident for incident in ctx.process.incidents if incident.at >= since]
    last = {incident.name: incident for incident in recent}
    counts = Counter(incident.name for incident in recent)
    return [
        _message(
            "EUNKNOWN",
            f"the process {name} of this server was replaced, {counts[name]} x in the last hour: {one.detail}",
        )
        for name, one in sorted(last.items())
    ]


def access_url_failure(ctx: Context, error: str) -> AccessURLReport:
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


async def check_websocket(ctx: Context, token: Secret) -> WebsocketReport:
    """Check that WebSockets connect, and that their messages are echoed."""
    policy = DialPolicy(url=ctx.access_url, token=token)
    try:
        stream = await connect_websocket(policy, "/api/v2/debug/ws")
        async with stream:
            for number in range(3):
                await stream.send_message(str(number))
                if await stream.receive_message() != str(number):
                    return websocket_failure("EWS03: a message was not echoed")
    except HttpError as error:
        report = websocket_failure(f"EWS01: {error}")
        report.code = error.status
        return report
    except (CoderError, OSError, trio.BrokenResourceError) as error:
        return websocket_failure(f"EWS02: {error}")
    return WebsocketReport(body="", code=101, dismissed=False, healthy=True, severity="ok", warnings=[])


def websocket_failure(error: str) -> WebsocketReport:
    return WebsocketReport(body="", code=0, dismissed=False, healthy=False, severity=_BIG, warnings=[], error=error)


async def check_database(ctx: Context) -> DatabaseReport:
    """Measure the latency of a minimal query; count tokens from before a change of the schema."""
    threshold = ctx.config.health_check_threshold_database
    times = []
    try:
        for _ in range(_PINGS):
            started = trio.current_time()
            await ctx.db.read(site_settings.ping)
            times.append(trio.current_time() - started)
        unlimited = await ctx.db.read(build_keys.count_unlimited_build_keys, ctx.clock.now())
    except Exception as error:
        return database_failure(ctx, f"EDB01: {error}")
    latency = timedelta(seconds=median(times))
    slow = latency >= threshold
    text = f"Median database ping over {_PINGS} pings is {latency / timedelta(milliseconds=1):.1f} ms"
    shortage = ctx.db.availability.shortage()
    warnings = [*([_message("EDB02", text)] if slow else []), *_unlimited_tokens(unlimited), *_skewed_clocks(ctx)]
    warnings += (
        [_message("EUNKNOWN", f"{shortage[:1].upper()}{shortage[1:]}: work that needs it fails.")] if shortage else []
    )
    return DatabaseReport(
        dismissed=False,
        healthy=not slow and not shortage,
        latency=format_duration(latency),
        latency_ms=int(latency / timedelta(milliseconds=1)),
        reachable=True,
        severity=_BIG if shortage else "warning" if warnings else "ok",
        threshold_ms=int(threshold / timedelta(milliseconds=1)),
        warnings=warnings,
    )


def _unlimited_tokens(count: int) -> list[HealthMessage]:
    """Return the warning about session tokens that builds got before the server limited their roles."""
    if not count:
        return []
    text = (
        f"{count} session tokens of workspace builds are from before an upgrade, and carry all roles of their owners. "
        "The next build of each workspace replaces its token."
    )
    return [_message("EUNKNOWN", text)]


def _skewed_clocks(ctx: Context) -> list[HealthMessage]:
    """Return a warning for each server whose clock differs from the database's."""
    me = ctx.services.this_replica.id
    others = [row for row in ctx.services.relay.replicas.rows if not same_machine(row.id, me)]
    texts = [
        (socket.gethostname(), skew_text(ctx.clock)),
        *((row.hostname, row.error) for row in one_of_each_machine(others)),
    ]
    return [
        _message("EUNKNOWN", f"Server {host}: {text}. Synchronize it, for instance with NTP.")
        for host, text in texts
        if text
    ]


def database_failure(ctx: Context, error: str) -> DatabaseReport:
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


async def check_daemons(ctx: Context) -> ProvisionerDaemonsReport:
    """Check that provisioner daemons are connected and have the server's version."""
    items: list[ProvisionerDaemonsReportItem] = []
    for organization in await ctx.db.read(organization_store.list_organizations):
        filters = provisioners.DaemonFilter(limit=0)
        for daemon in await provisioners.list_daemons(ctx, SYSTEM, organization.id, filters):
            daemon.key_name = daemon.status = daemon.current_job = daemon.previous_job = None
            current = versions_match(daemon.version, BUILD_VERSION)
            warnings = [] if current else [_message("EPD02", f"Mismatched version {daemon.version!r}")]
            items.append(ProvisionerDaemonsReportItem(provisioner_daemon=daemon, warnings=warnings))
    return daemons_report(items)


def daemons_report(items: list[ProvisionerDaemonsReportItem], error: str = "") -> ProvisionerDaemonsReport:
    severity: HealthSeverity = "warning" if any(item.warnings for item in items) else "ok"
    if not items and not error:
        error = "EPD01: No active provisioner daemons found!"
    return ProvisionerDaemonsReport(
        dismissed=False, items=items, severity="error" if error else severity, warnings=[], error=error or UNSET
    )


async def check_proxies(ctx: Context) -> WorkspaceProxyReport:
    """Report this server, and each proxy as of its last check."""
    proxies = (await workspace_proxies.list_all_proxies(ctx))[1:]
    report = proxies_report([_primary(ctx), *proxies])
    for proxy in proxies:
        status = proxy.status
        if not status or status.status in {"ok", "unregistered"}:
            continue
        errors = "; ".join(status.report.errors) if status.report else ""
        code: HealthCode = "EWP04" if status.status == "unhealthy" else "EWP02"
        report.warnings.append(HealthMessage(code=code, message=f"Proxy {proxy.name} is {status.status}: {errors}"))
    if report.warnings:
        # deployments with relays only: the relays count
        serving = [proxy for proxy in proxies if proxy.path_app_url] or proxies
        report.severity = "error" if not any(proxy.healthy for proxy in serving) else "warning"
        report.healthy = report.severity != "error"
    return report


def _primary(ctx: Context) -> WorkspaceProxy:
    """Return this server as a region of this report (recorded)."""
    now = ctx.clock.now()
    return WorkspaceProxy(
        id=ctx.deployment_id,
        name="primary",
        display_name="Default",
        icon_url="/emojis/1f3e1.png",
        healthy=True,
        path_app_url=ctx.access_url,
        wildcard_hostname=app_host(ctx),
        derp_enabled=False,
        derp_only=False,
        status=WorkspaceProxyStatus(status="ok", report=ProxyHealthReport(errors=[], warnings=[]), checked_at=now),
        created_at=now,
        updated_at=now,
        deleted=False,
        version="",
    )


def proxies_report(proxies: list[WorkspaceProxy], error: str = "") -> WorkspaceProxyReport:
    return WorkspaceProxyReport(
        dismissed=False,
        healthy=not error,
        severity="error" if error else "ok",
        warnings=[],
        workspace_proxies=msgspec.to_builtins(WorkspaceProxiesResponse(regions=proxies)),
        error=error or UNSET,
    )
