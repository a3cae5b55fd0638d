"""Routes of upstream's experiments; the OAuth2 provider's are with the logins."""

from __future__ import annotations

from quart import Blueprint, Response

from coder.coderd.http.server.auth import context, subject
from coder.coderd.http.server.declarations import TEXT
from coder.coderd.http.server.route import WEBSOCKET, route
from coder.coderd.http.server.streams import needs_upgrade, over_websocket
from coder.coderd.services.workspaces.builds.build_updates import require_experiment, watch_builds

blueprint = Blueprint("experiments", __name__, url_prefix="/api/experimental")


@route(blueprint, "GET", "/watch-all-workspacebuilds", scope="workspace:read", others={426: TEXT})
async def watch_all_builds_without_upgrade() -> Response:
    require_experiment(context())
    return needs_upgrade()


@route(blueprint, WEBSOCKET, "/watch-all-workspacebuilds", scope="workspace:read")
async def watch_all_builds() -> None:
    """Send a message for each change of a build's job."""
    await over_websocket(watch_builds(context(), subject()))
