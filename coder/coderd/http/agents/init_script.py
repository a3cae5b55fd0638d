"""Scripts that attach a machine: /api/v2/init-script/{os}/{arch}. Public: they contain no secret."""

from __future__ import annotations

from quart import Blueprint, Response

from coder.api.base.refusals import Invalid
from coder.coderd.http.server.auth import context
from coder.coderd.http.server.declarations import TEXT
from coder.coderd.http.server.route import route
from coder.domain.access.route_scopes import PUBLIC
from coder.domain.agents.init_scripts import content_digest, init_script

blueprint = Blueprint("init_script", __name__, url_prefix="/api/v2/init-script")


@route(blueprint, "GET", "/<system>/<arch>", scope=PUBLIC, answers=TEXT, refuses=(400,))
async def get_init_script(system: str, arch: str) -> Response:
    script = init_script(system, arch, context().access_url)
    if script is None:
        raise Invalid(f"Unknown os/arch: {system}/{arch}")
    body = script.encode()
    return Response(body, 200, {"Content-Digest": content_digest(body)}, content_type="text/plain; charset=utf-8")
