"""Deployment-wide facts: features, appearance, configuration, regions, experiments, relay map."""

from __future__ import annotations

import msgspec
import trio
from quart import Blueprint, Response, websocket

from coder.api import codec
from coder.api.deployment import UpdateAppearanceConfig, UpdateCheckResponse
from coder.base.version import BUILD_VERSION
from coder.coderd.http.auth import authenticated, context, credentials, subject
from coder.coderd.http.json import message, read_body, reply
from coder.coderd.services import deployment, deployment_config, derp_map, licenses, replicas
from coder.coderd.services.authentication import authenticate
from coder.coderd.services.errors import Unauthenticated
from coder.tailnet import derpmap

blueprint = Blueprint("deployment", __name__, url_prefix="/api/v2")

_MAP_CHECK = 5.0
"Seconds between looks at the relay map; a change is sent, silence otherwise."


@blueprint.get("/updatecheck")
async def get_update_check() -> Response:
    return reply(UpdateCheckResponse(current=True, version=BUILD_VERSION, url="https://github.com/coder/coder"))


@blueprint.get("/experiments")
@authenticated
async def get_experiments() -> Response:
    return reply(list(context().config.experiments))


@blueprint.get("/experiments/available")
@authenticated
async def get_available_experiments() -> Response:
    return reply({"safe": []})


@blueprint.get("/deployment/ssh")
@authenticated
async def get_ssh() -> Response:
    return reply(deployment.ssh_config(context()))


@blueprint.get("/deployment/config")
@authenticated
async def get_config() -> Response:
    return reply(deployment_config.configuration(context(), subject()))


@blueprint.get("/entitlements")
async def get_entitlements() -> Response:
    return reply(await deployment.entitlements(context()))


@blueprint.get("/licenses")
@authenticated
async def get_licenses() -> Response:
    return reply([])


@blueprint.post("/licenses")
@authenticated
async def post_license() -> Response:
    licenses.refuse_license(subject())
    return reply([])


@blueprint.post("/licenses/refresh-entitlements")
@authenticated
async def post_refresh_entitlements() -> Response:
    licenses.refresh_entitlements(context(), subject())
    return message("Entitlements updated", 201)


@blueprint.delete("/licenses/<int:license_id>")
@authenticated
async def delete_license(license_id: int) -> Response:  # noqa: ARG001 - part of the path
    licenses.refuse_deletion(subject())
    return reply([])


@blueprint.route("/licenses/trial", methods=["DELETE"])
@authenticated
async def delete_trial() -> Response:
    """There is no trial either: asking for one is answered with 405, as by the release we follow."""
    licenses.refuse_deletion(subject())
    return reply([])


@blueprint.get("/appearance")
async def get_appearance() -> Response:
    shown = credentials()
    if not shown.token:
        raise Unauthenticated("API key or workspace agent token required, but none provided")
    # An agent's token is a UUID and proves itself elsewhere; banners are no secret.
    if len(shown.token) != 36:
        await authenticate(context(), shown)
    return reply(await deployment.appearance(context()))


@blueprint.put("/appearance")
@authenticated
async def put_appearance() -> Response:
    body = await read_body(UpdateAppearanceConfig)
    await deployment.set_appearance(context(), subject(), body)
    return reply(body)


@blueprint.post("/csp/reports")
async def post_csp_report() -> Response:
    body = await read_body(CspReport)
    context().log.warn("a browser blocked content", report=str(body.csp_report)[:1000])
    return reply("ok")


class CspReport(msgspec.Struct, rename={"csp_report": "csp-report"}):
    """What browsers send; its fields differ."""

    csp_report: dict[str, object] = msgspec.field(default_factory=dict)


@blueprint.get("/replicas")
@authenticated
async def get_replicas() -> Response:
    return reply(await replicas.list_replicas(context(), subject()))


@blueprint.websocket("/derp-map")
async def derp_map_updates() -> None:
    """The relay map now, and again whenever it changes."""
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
