"""Browsers of a user that want to be told: /api/v2/users/{user}/webpush."""

from __future__ import annotations

from quart import Blueprint, Response

from coder.api.notifications import DeleteWebpushSubscription, WebpushSubscription
from coder.coderd.http.auth import authenticated, context, subject
from coder.coderd.http.json import no_content, read_body
from coder.coderd.services import users, web_push

blueprint = Blueprint("web_push", __name__, url_prefix="/api/v2/users/<user>/webpush")


@blueprint.post("/subscription")
@authenticated
async def post_subscription(user: str) -> Response:
    row = await users.resolve_user(context(), subject(), user)
    await web_push.subscribe(context(), subject(), row.id, await read_body(WebpushSubscription))
    return no_content()


@blueprint.delete("/subscription")
@authenticated
async def delete_subscription(user: str) -> Response:
    row = await users.resolve_user(context(), subject(), user)
    body = await read_body(DeleteWebpushSubscription)
    await web_push.unsubscribe(context(), subject(), row.id, body.endpoint)
    return no_content()


@blueprint.post("/test")
@authenticated
async def post_test(user: str) -> Response:
    row = await users.resolve_user(context(), subject(), user)
    await web_push.send_test(context(), subject(), row.id)
    return no_content()
