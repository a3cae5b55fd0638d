"""State of the server: the health report, and debug information for its operators (owners)."""

from __future__ import annotations

import functools
import gc
import html
import resource
import threading
from collections.abc import Awaitable, Callable
from typing import ParamSpec, TypeVar, cast

from quart import Blueprint, Response, redirect, request, websocket

from coder.api.base.refusals import Invalid
from coder.api.login.oauth2 import OIDCClaimsResponse
from coder.api.site.deployment import DebugProfileOptions
from coder.api.site.health import HealthcheckReport, HealthSettings, UpdateHealthSettings
from coder.appproxy.http.request_bounds import PUBLIC_LIMIT
from coder.base.json_types import JsonObject
from coder.base.secret import Secret
from coder.base.version import BUILD_VERSION
from coder.coderd.http.server.audit_rules import Audited
from coder.coderd.http.server.auth import context, credentials, subject
from coder.coderd.http.server.declarations import HTML, NOTHING, TEXT, Content
from coder.coderd.http.server.json import message, no_content, read_body, reply
from coder.coderd.http.server.query import go_int
from coder.coderd.http.server.route import WEBSOCKET, route
from coder.coderd.services.login import provider_login
from coder.coderd.services.people import users
from coder.coderd.services.site import health_settings
from coder.coderd.services.site.health_settings import require_health
from coder.coderd.services.site.profiling import DEFAULT_SECONDS
from coder.coderd.services.telemetry import profiles

blueprint = Blueprint("debug", __name__, url_prefix="/api/v2/debug")

_LONGEST_PROFILE = 60
"""Maximum seconds of a profile by the API; `--pprof-enable` allows longer ones."""

P = ParamSpec("P")
T = TypeVar("T")


class DismissRequest(UpdateHealthSettings):
    """Names are text here: an unknown one is answered with upstream's own words."""

    dismissed_healthchecks: list[str] | None = None  # type: ignore[assignment]
    """Null, or an absent field, is returned as it was sent."""


def _owners(view: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    """Wrap a view for callers with debug permission."""

    @functools.wraps(view)
    async def guarded(*args: P.args, **kwargs: P.kwargs) -> T:
        require_health(subject())
        return await view(*args, **kwargs)

    return guarded


def _text(report: HealthcheckReport) -> str:
    """Return upstream's short form for terminals and probes: the time and a line per section."""
    healthy = {
        "healthy": report.healthy,
        "derp": report.derp.healthy,
        "access_url": report.access_url.healthy,
        "websocket": report.websocket.healthy,
        "database": report.database.healthy,
    }
    return f"time: {report.time:%Y-%m-%dT%H:%M:%SZ}\n" + "".join(
        f"{name}: {str(value).lower()}\n" for name, value in healthy.items()
    )


@route(
    blueprint,
    "GET",
    "/health",
    scope="debug_info:read",
    query={"force": str, "format": str},
    answers=(HealthcheckReport, JsonObject, TEXT),
)
@_owners
async def get_health() -> Response:
    form = request.args.get("format", "")
    if form not in {"", "json", "simple", "text"}:
        raise Invalid(f'Invalid format option "{form}".', 'Allowed values are: "json", "simple".')
    force = request.args.get("force", "") == "true"
    report = await context().services.api.health_reports.get(Secret(credentials().token), force=force)
    if form == "text":
        return Response(_text(report), content_type="text/plain; charset=utf-8")
    if form == "simple":
        names = ("derp", "access_url", "websocket", "database", "workspace_proxy", "provisioner_daemons")
        healthy: JsonObject = {name: getattr(report, name).severity != "error" for name in names}
        return reply({"time": report.time, "healthy": report.healthy, **healthy})
    return reply(report)


@route(blueprint, "GET", "/health/settings", scope="debug_info:read", answers=HealthSettings)
@_owners
async def get_settings() -> Response:
    return reply(await health_settings.settings(context(), subject()))


@route(
    blueprint,
    "PUT",
    "/health/settings",
    scope="deployment_config:update",
    body=DismissRequest,
    answers=DismissRequest,
    others={204: NOTHING},
    refuses=(500,),
    audit=Audited("health_settings", "write", "", settings=health_settings.settings),
)
async def put_settings() -> Response:
    body = await read_body(DismissRequest)
    if not await health_settings.set_dismissed(context(), subject(), body.dismissed_healthchecks):
        return no_content()
    return reply(body)


@route(blueprint, WEBSOCKET, "/ws", scope="debug_info:read", limit=PUBLIC_LIMIT)
@_owners
async def echo() -> None:
    """Echo messages; the health report uses it."""
    await websocket.accept()
    while True:
        await websocket.send(await websocket.receive())


@route(blueprint, "GET", "/ws", scope="debug_info:read", others={426: TEXT})
@_owners
async def get_ws() -> Response:
    connection = request.headers.get("Connection", "")
    message = f'WebSocket protocol violation: Connection header "{connection}" does not contain Upgrade'
    text = f"{message}\nunable to accept:failed to accept WebSocket connection: {message}"
    headers = {"Connection": "Upgrade", "Upgrade": "websocket"}
    return Response(text, 426, headers, content_type="text/plain; charset=utf-8")


@route(blueprint, "GET", "/coordinator", scope="debug_info:read", answers=HTML)
@_owners
async def get_coordinator() -> Response:
    """Return the connected peers, and the number of tunnels of each."""
    core = context().services.relay.coordinator.core
    return _page("Coordinator", *(f"{peer}: tunnels to it: {core.tunnels_to(peer)}" for peer in core.nodes()))


@route(blueprint, "GET", "/tailnet", scope="debug_info:read", answers=HTML)
@_owners
async def get_tailnet() -> Response:
    """Return the agents this server itself has connections to."""
    dialer = context().agent_dialer
    used = {} if dialer is None else dialer.connections()
    return _page("Tailnet", *(f"{agent}: connections: {count}" for agent, count in used.items()))


def _page(title: str, *lines: str) -> Response:
    text = "\n".join(lines) or "No peers."
    body = f"<!doctype html><html><head><title>{title}</title></head><body><h1>{title}</h1><pre>"
    return Response(f"{body}{html.escape(text)}</pre></body></html>", content_type="text/html; charset=utf-8")


@route(blueprint, "GET", "/expvar", scope="debug_info:read", answers=JsonObject)
@_owners
async def get_expvar() -> Response:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return reply(
        {
            "cmdline": profiles.command_line(),
            "version": BUILD_VERSION,
            "memstats": {"max_rss_kib": usage.ru_maxrss, "objects": len(gc.get_objects())},
            "cpu_seconds": {"user": usage.ru_utime, "system": usage.ru_stime},
            "threads": threading.active_count(),
        }
    )


@route(blueprint, "GET", "/metrics", scope="debug_info:read", answers=TEXT)
@_owners
async def get_metrics() -> Response:
    text = await context().services.metrics.exposition()
    return Response(text, content_type="text/plain; version=0.0.4; charset=utf-8; escaping=underscores")


@route(blueprint, "GET", "/derp/traffic", scope="debug_info:read", answers=list[JsonObject])
@_owners
async def get_derp_traffic() -> Response:
    relay = context().services.relay.derp.server
    result = relay.traffic() if relay is not None else []
    return reply([{"Sent": sent, "Recv": received, "Key": f"nodekey:{key.hex()}"} for key, sent, received in result])


@route(blueprint, "GET", "/pprof", scope="debug_info:read", status=307)
@_owners
async def get_pprof() -> Response:
    return cast("Response", redirect("/api/v2/debug/pprof/", 307))  # the application makes them of its own class


@route(blueprint, "GET", "/pprof/", scope="debug_info:read", answers=HTML)
@_owners
async def get_pprof_index() -> Response:
    return _page("Profiles", "cmdline\ngoroutine (stacks of threads and tasks)\nprofile\nsymbol\ntrace")


@route(blueprint, "GET", "/pprof/cmdline", scope="debug_info:read", answers=TEXT)
@_owners
async def get_cmdline() -> Response:
    return Response("\0".join(profiles.command_line()), content_type="text/plain; charset=utf-8")


@route(blueprint, "GET", "/pprof/<name>", scope="debug_info:read", query={"seconds": int}, answers=TEXT)
@_owners
async def get_profile(name: str) -> Response:
    """Return a profile as text: Python has no pprof."""
    seconds = go_int(request.args.get("seconds", "")) or 0
    found = await profiles.profile(name, min(seconds, _LONGEST_PROFILE))
    if found is None:
        return message("Route not found.", 404)
    return Response(found, content_type="text/plain; charset=utf-8")


@route(
    blueprint,
    "POST",
    "/profile",
    scope="debug_info:read",
    body=DebugProfileOptions,
    allow_empty=True,
    answers=Content("application/gzip"),
    refuses=(409,),
)
@_owners
async def post_profile() -> Response:
    """Collect a profile for the requested duration, in nanoseconds."""
    options = await read_body(DebugProfileOptions)
    seconds = options.Duration / 1e9 if options.Duration else DEFAULT_SECONDS
    data = await context().services.api.profiling.take(seconds, options.Profiles or [])
    headers = {"Content-Disposition": "attachment; filename=profiles.tar.gz"}
    return Response(data, 200, headers, content_type="application/gzip")


@route(blueprint, "GET", "/<user>/debug-link", scope="debug_info:read", answers=OIDCClaimsResponse)
@_owners
async def get_debug_link(user: str) -> Response:
    """Return the OpenID provider's claims of the user from the last login; empty before the first."""
    row = await users.resolve_user(context(), subject(), user)
    if row.login_type != "oidc":
        raise Invalid("User is not an OIDC user.")
    return reply(OIDCClaimsResponse(claims=dict(await provider_login.claims_of(context(), row.id))))
