"""Subscriptions of browsers to Web Push (RFC 8030): create, test and delete them."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from uuid import UUID

from coder.api.base.refusals import BadGateway, Invalid, InvalidFields, NotFound
from coder.api.notifications.notifications import WebpushSubscription
from coder.base.ids import new_uuid
from coder.coderd.services.access.application_limits import refuse_applications
from coder.coderd.services.access.authorization import require
from coder.coderd.services.notifications.push_services import PushRefused
from coder.coderd.services.notifications.web_push import TEST_MESSAGE, push, push_to_browser
from coder.coderd.store.notifications import web_push as store
from coder.coderd.store.notifications.web_push import SubscriptionRow
from coder.domain.access.policy import Class, Subject
from coder.domain.notifications import web_push as web_push_rules

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context


MAX_SUBSCRIPTIONS = 20
"""Subscriptions of a user. Ours: more browsers than people use; a new one replaces the oldest."""


async def subscribe(ctx: Context, subject: Subject, user_id: UUID, subscription: WebpushSubscription) -> None:
    """Store a subscription after its push service has accepted a test message. Raises Forbidden, Invalid."""
    require(subject, "create", Class("webpush_subscription", owner_id=user_id), hidden=False)
    await refuse_applications(ctx, subject, "webpush_subscription")
    _check(subscription)
    row = SubscriptionRow(
        new_uuid(),
        user_id,
        ctx.clock.now(),
        subscription.endpoint,
        subscription.p256dh_key.strip(),
        subscription.auth_key.strip(),
    )
    try:
        await push_to_browser(ctx, row, TEST_MESSAGE)
    except PushRefused as refused:
        raise Invalid("Failed to test webpush subscription", refused.message) from refused
    await ctx.db.run(store.put_subscription, row, MAX_SUBSCRIPTIONS)


def _check(subscription: WebpushSubscription) -> None:
    faults = []
    try:
        parts = urlsplit(subscription.endpoint)
        good = parts.scheme == "https" and bool(parts.hostname) and not parts.username and parts.port != 0
        good = (
            good
            and subscription.endpoint.isascii()
            and subscription.endpoint.isprintable()
            and " " not in subscription.endpoint
        )
    except ValueError:
        good = False
    if not good:
        faults.append(("endpoint", "must be the https URL of a push service"))
    for name, text, length in (
        ("auth_key", subscription.auth_key, web_push_rules.AUTH_BYTES),
        ("p256dh_key", subscription.p256dh_key, web_push_rules.POINT_BYTES),
    ):
        try:
            data = web_push_rules.decode_key_untrusted(text, length)
            if name == "p256dh_key":
                web_push_rules.check_point_untrusted(data)
        except ValueError as error:
            faults.append((name, f"cannot be used: {error}"))
    if faults:
        raise InvalidFields(*faults, message="Failed to test webpush subscription")


async def unsubscribe(ctx: Context, subject: Subject, user_id: UUID, endpoint: str) -> None:
    """Delete a subscription. Raises Forbidden, NotFound."""
    require(subject, "delete", Class("webpush_subscription", owner_id=user_id), hidden=False)
    if not await ctx.db.run(store.delete_subscription, user_id, endpoint):
        raise NotFound("Webpush subscription not found.")


async def send_test(ctx: Context, subject: Subject, user_id: UUID) -> None:
    """Send a test message to all browsers of a user. Raises Forbidden, and BadGateway when every delivery failed."""
    require(subject, "create", Class("webpush_subscription", owner_id=user_id), hidden=False)
    delivered, refused = await push(ctx, user_id, TEST_MESSAGE)
    if refused and not delivered:
        raise BadGateway("Failed to send test notification", refused[0])
