"""Deployment-wide facts: features, appearance, configuration, regions, experiments, relay map."""

from __future__ import annotations

import msgspec
import trio
from quart import Blueprint, Response, websocket

from coder.api.base import codec
from coder.api.base.errors import Response as Envelope
from coder.api.base.refusals import Unauthenticated
from coder.api.proxies.proxies import Replica
from coder.api.site.deployment import (
    AppearanceConfig,
    AvailableExperiments,
    Entitlements,
    License,
    SSHConfigResponse,
    UpdateAppearanceConfig,
    UpdateCheckResponse,
)
from coder.base.json_types import Json, JsonObject
from coder.coderd.config.experiments import served_experiments
from coder.coderd.http.server.auth import context, credentials, subject
from coder.coderd.http.server.json import message, read_body, reply
from coder.coderd.http.server.route import WEBSOCKET, route
from coder.coderd.services.access.authentication import authenticate
from coder.coderd.services.agents.agent_access import authenticate_agent
from coder.coderd.services.network import derp_map, replicas
from coder.coderd.services.site import deployment, deployment_config, licenses
from coder.domain.access.route_scopes import ANY_KEY, OPTIONAL, PUBLIC
from coder.tailnet import derpmap

blueprint = Blueprint("deployment", __name__, url_prefix="/api/v2")

_AGENT_TOKEN = 36
"""Characters of a UUID; keys of users have three fewer."""
_MAP_CHECK = 5.0
"""Seconds between checks of the relay map; only a change is sent."""


class CspReport(msgspec.Struct, rename={"csp_report": "csp-report"}):
    """Report of a browser; its fields differ."""

    csp_report: JsonObject = msgspec.field(default_factory=dict)


@route(blueprint, "GET", "/updatecheck", scope=PUBLIC, answers=UpdateCheckResponse)
async def get_update_check() -> Response:
    """Return the newest release of the administrator's list, this server's own without one."""
    return reply(context().services.api.release_check.answer())


@route(blueprint, "GET", "/experiments", scope=ANY_KEY, answers=list[str])
async def get_experiments() -> Response:
    return reply(list(served_experiments(context().config)))


@route(blueprint, "GET", "/experiments/available", scope=ANY_KEY, answers=AvailableExperiments)
async def get_available_experiments() -> Response:
    return reply({"safe": []})


@route(blueprint, "GET", "/deployment/ssh", scope=ANY_KEY, answers=SSHConfigResponse)
async def get_ssh() -> Response:
    return reply(deployment.ssh_config(context()))


@route(blueprint, "GET", "/deployment/config", scope="deployment_config:read", answers=JsonObject)
async def get_config() -> Response:
    """Return options with their values and sources, and the tree; secrets are left out."""
    return reply(deployment_config.configuration(context(), subject()))


@route(blueprint, "GET", "/entitlements", scope=PUBLIC, answers=Entitlements)
async def get_entitlements() -> Response:
    """Return entitlements: everything is included, since there are no licences."""
    return reply(await deployment.entitlements(context()))


@route(blueprint, "GET", "/licenses", scope="license:read", answers=list[License])
async def get_licenses() -> Response:
    return reply([])


@route(blueprint, "POST", "/licenses", scope="license:create", answers=list[Json])
async def post_license() -> Response:
    licenses.refuse_license(subject())
    return reply([])


@route(blueprint, "POST", "/licenses/refresh-entitlements", scope="license:create", answers=Envelope, status=201)
async def post_refresh_entitlements() -> Response:
    """Change nothing; as in upstream, allowed once a minute."""
    licenses.refresh_entitlements(context(), subject())
    return message("Entitlements updated", 201)


@route(blueprint, "DELETE", "/licenses/<int:license_id>", scope="license:delete", answers=list[Json])
async def delete_license(license_id: int) -> Response:  # noqa: ARG001 - part of the path
    licenses.refuse_deletion(subject())
    return reply([])


@route(blueprint, "DELETE", "/licenses/trial", scope="license:delete", answers=list[Json])
async def delete_trial() -> Response:
    """Return 405: there is no trial, as in the release we follow."""
    licenses.refuse_deletion(subject())
    return reply([])


@route(blueprint, "GET", "/appearance", scope=PUBLIC, answers=AppearanceConfig, refuses=(401,))
async def get_appearance() -> Response:
    received = credentials()
    if not received.token:
        raise Unauthenticated("API key or workspace agent token required, but none provided")
    if len(received.token) == _AGENT_TOKEN:
        await authenticate_agent(context(), received)
    else:
        await authenticate(context(), received)
    return reply(await deployment.appearance(context()))


@route(
    blueprint,
    "PUT",
    "/appearance",
    scope="deployment_config:update",
    body=UpdateAppearanceConfig,
    answers=UpdateAppearanceConfig,
)
async def put_appearance() -> Response:
    body = await read_body(UpdateAppearanceConfig)
    await deployment.set_appearance(context(), subject(), body)
    return reply(body)


@route(blueprint, "POST", "/csp/reports", scope=PUBLIC, body=CspReport, answers=str)
async def post_csp_report() -> Response:
    body = await read_body(CspReport)
    context().log.warn("a browser blocked content", report=str(body.csp_report)[:1000])
    return reply("ok")


@route(blueprint, "GET", "/replicas", scope="replicas:read", answers=list[Replica])
async def get_replicas() -> Response:
    """Return the living replicas."""
    return reply(await replicas.list_replicas(context(), subject()))


@route(blueprint, WEBSOCKET, "/derp-map", scope=OPTIONAL)
async def derp_map_updates() -> None:
    """Send the relay map now, and again whenever it changes."""
    ctx = context()
    await websocket.accept()
    sent = b""
    while not ctx.stopping.is_set():
        current = codec.encode(derpmap.to_json(derp_map.current_map(ctx)))
        if current != sent:
            await websocket.send(current.decode())
            sent = current
        with trio.move_on_after(_MAP_CHECK):
            await ctx.stopping.wait()
    await websocket.close(1001)
