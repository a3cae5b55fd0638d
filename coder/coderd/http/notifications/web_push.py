"""Web Push subscriptions of a user's browsers: /api/v2/users/{user}/webpush."""

from __future__ import annotations

from quart import Blueprint, Response

from coder.api.notifications.notifications import DeleteWebpushSubscription, WebpushSubscription
from coder.coderd.http.server.audit_rules import Audited
from coder.coderd.http.server.auth import context, subject
from coder.coderd.http.server.json import no_content, read_body
from coder.coderd.http.server.route import route
from coder.coderd.services.notifications import web_push_subscriptions
from coder.coderd.services.people import users

blueprint = Blueprint("web_push", __name__, url_prefix="/api/v2/users/<user>/webpush")


@route(
    blueprint,
    "POST",
    "/subscription",
    scope="webpush_subscription:create",
    body=WebpushSubscription,
    status=204,
    audit=Audited("user", "write"),
)
async def post_subscription(user: str) -> Response:
    """Store the browser once its push service accepted a first message."""
    row = await users.resolve_user(context(), subject(), user)
    await web_push_subscriptions.subscribe(context(), subject(), row.id, await read_body(WebpushSubscription))
    return no_content()


@route(
    blueprint,
    "DELETE",
    "/subscription",
    scope="webpush_subscription:delete",
    body=DeleteWebpushSubscription,
    status=204,
    audit=Audited("user", "write"),
)
async def delete_subscription(user: str) -> Response:
    row = await users.resolve_user(context(), subject(), user)
    body = await read_body(DeleteWebpushSubscription)
    await web_push_subscriptions.unsubscribe(context(), subject(), row.id, body.endpoint)
    return no_content()


@route(blueprint, "POST", "/test", scope="webpush_subscription:create", status=204, refuses=(502,))
async def post_test(user: str) -> Response:
    """Send a test message to all browsers of a user."""
    row = await users.resolve_user(context(), subject(), user)
    await web_push_subscriptions.send_test(context(), subject(), row.id)
    return no_content()
