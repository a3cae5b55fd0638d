"""Routes without a noun: health, greeting, build information."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quart import Blueprint, Response, request

from coder.api.base.errors import Response as Envelope
from coder.api.site.build_info import BuildInfoResponse
from coder.appproxy.http.overload import HEADER as OVERLOAD_HEADER
from coder.base.version import BUILD_VERSION, PROVISIONER_API_VERSION
from coder.coderd.http.server.auth import context
from coder.coderd.http.server.declarations import NOTHING, TEXT
from coder.coderd.http.server.json import empty, message, reply
from coder.coderd.http.server.route import route
from coder.coderd.services.site.health import is_database_away
from coder.coderd.services.site.probes import liveness_faults, readiness_faults
from coder.domain.access.rate_budgets import unlimited
from coder.domain.access.route_scopes import PUBLIC

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

blueprint = Blueprint("root", __name__)

_PROBE = unlimited("requested by load balancers and latency probes; costs no lookup")
TEXT_TYPE = "text/plain; charset=utf-8"


@route(blueprint, "GET", "/healthz", scope=PUBLIC, budget=_PROBE, answers=TEXT, others={503: TEXT})
async def healthz() -> Response:
    """Return whether this server has its database, for load balancers; `/readyz` says more."""
    status, body = health_answer(context())
    return Response(body, status, content_type=TEXT_TYPE)


def health_answer(ctx: Context) -> tuple[int, bytes]:
    """Return status and body of `/healthz`."""
    return (503, b"the database does not answer") if is_database_away(ctx) else (200, b"OK")


@route(blueprint, "GET", "/livez", scope=PUBLIC, budget=_PROBE, answers=TEXT, others={503: TEXT})
async def livez() -> Response:
    """Return whether this server lives, for liveness probes: a failure means that a restart helps."""
    status, body = liveness_answer(context())
    return Response(body, status, content_type=TEXT_TYPE)


@route(blueprint, "GET", "/readyz", scope=PUBLIC, budget=_PROBE, answers=TEXT, others={503: TEXT})
async def readyz() -> Response:
    """Return whether this server is ready for requests, for readiness probes, with one line for each cause."""
    status, body = readiness_answer(context())
    return Response(body, status, content_type=TEXT_TYPE)


def liveness_answer(ctx: Context) -> tuple[int, bytes]:
    """Return status and body of `/livez`."""
    return _probe_answer(liveness_faults(ctx))


def readiness_answer(ctx: Context) -> tuple[int, bytes]:
    """Return status and body of `/readyz`."""
    return _probe_answer(readiness_faults(ctx))


def _probe_answer(faults: list[str]) -> tuple[int, bytes]:
    return (503, "\n".join(faults).encode()) if faults else (200, b"OK")


@route(blueprint, "GET", "/latency-check", scope=PUBLIC, budget=_PROBE, answers=TEXT)
async def latency_check() -> Response:
    """Return an empty response to measure latency, for browsers on any page."""
    response = Response("OK", content_type=TEXT_TYPE)
    response.headers.extend(latency_headers(context(), request.remote_addr or ""))
    return response


def latency_headers(ctx: Context, address: str) -> list[tuple[str, str]]:
    """Return further headers of `/latency-check` for a client's address."""
    headers = [
        ("Access-Control-Allow-Origin", "*"),
        ("Access-Control-Allow-Headers", "*"),
        ("Access-Control-Allow-Methods", "*"),
        ("Access-Control-Allow-Credentials", "false"),
    ]
    return [*headers, OVERLOAD_HEADER] if ctx.process.overload.is_set(address) else headers


@route(blueprint, "GET", "/derp/latency-check", scope=PUBLIC, budget=_PROBE, others={405: NOTHING})
async def relay_latency_check() -> Response:
    """Return an empty response for nodes of the overlay, which choose their home relay by the round trip."""
    if request.method == "HEAD":  # as upstream: a measurement is a GET
        return empty(405, Allow="GET")
    return Response("", content_type=TEXT_TYPE)


@route(blueprint, "GET", ("/api/v2", "/api/v2/"), scope=PUBLIC, answers=Envelope)
async def greeting() -> Response:
    return message("👋")


@route(blueprint, "GET", "/api/v2/buildinfo", scope=PUBLIC, answers=BuildInfoResponse)
async def buildinfo() -> Response:
    return reply(build_info(context()))


def build_info(ctx: Context) -> BuildInfoResponse:
    """Return the server's build information."""
    return BuildInfoResponse(
        external_url="https://github.com/coder/coder",
        version=BUILD_VERSION,
        dashboard_url=ctx.access_url,
        telemetry=False,
        workspace_proxy=False,
        agent_api_version="1.0",
        provisioner_api_version=PROVISIONER_API_VERSION,
        upgrade_message=ctx.config.cli_upgrade_message,
        deployment_id=ctx.deployment_id,
        webpush_public_key=ctx.webpush_public_key,
    )
