"""Routes of upstream's experiments that clients may ask for: each says that its experiment is off."""

from __future__ import annotations

from quart import Blueprint, Response

from coder.coderd.http.server.route import WEBSOCKET, route
from coder.coderd.services.foundation.errors import Forbidden

blueprint = Blueprint("experiments", __name__, url_prefix="/api/experimental")

_WATCH_OFF = "Workspace Build Updates Channel functionality requires enabling the 'workspace-build-updates' experiment."


@route(blueprint, "GET", "/watch-all-workspacebuilds", scope="workspace:read")
async def watch_all_builds() -> Response:
    raise Forbidden(_WATCH_OFF)


@route(blueprint, WEBSOCKET, "/watch-all-workspacebuilds", scope="workspace:read")
async def watch_all_builds_ws() -> None:
    raise Forbidden(_WATCH_OFF)
