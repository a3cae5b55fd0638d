"""Routes of upstream's experiments that clients may ask for: each says that its experiment is off."""

from __future__ import annotations

from quart import Blueprint, Response

from coder.coderd.http.auth import authenticated
from coder.coderd.services.errors import Forbidden

blueprint = Blueprint("experiments", __name__, url_prefix="/api/experimental")

_WATCH_OFF = "Workspace Build Updates Channel functionality requires enabling the 'workspace-build-updates' experiment."


@blueprint.get("/watch-all-workspacebuilds")
@authenticated
async def watch_all_builds() -> Response:
    raise Forbidden(_WATCH_OFF)


@blueprint.websocket("/watch-all-workspacebuilds")
@authenticated
async def watch_all_builds_ws() -> None:
    raise Forbidden(_WATCH_OFF)
