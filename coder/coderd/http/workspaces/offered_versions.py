"""Versions that a rollout offers to workspaces. Ours, not upstream's."""

from __future__ import annotations

from uuid import UUID

from quart import Blueprint, Response

from coder.api.templates.rollouts import OfferedVersion
from coder.coderd.http.server.auth import context, subject
from coder.coderd.http.server.json import reply
from coder.coderd.http.server.query import Query
from coder.coderd.http.server.route import route
from coder.coderd.services.workspaces.builds import offered_versions

blueprint = Blueprint("offered_versions", __name__, url_prefix="/api/v2")

_MOST = 200
"""Workspaces of one request."""


@route(
    blueprint,
    "GET",
    "/workspaces/offered-versions",
    scope="workspace:read",
    query={"ids": UUID},
    answers=list[OfferedVersion],
    compressed=True,
)
async def get_offered_versions() -> Response:
    """Return the versions that workspaces are offered, by comma-separated ids.

    It is the template's active version, or during a rollout the one that the rollout offers. Deleted, unknown and
    unreadable workspaces are left out; without ids, the list is empty.
    """
    query = Query()
    ids = query.uuids("ids")
    if len(ids) > _MOST:
        query.refuse("ids", f'Query param "ids" has more than {_MOST} ids')
    query.check()
    return reply(await offered_versions.list_offered_versions(context(), subject(), ids))
