"""Notifications: settings of administrators, preferences of users, messages on request. The inbox is `inbox.py`."""

from __future__ import annotations

from quart import Blueprint, Response

from coder.api.base.errors import Response as Envelope
from coder.api.notifications.notifications import (
    CustomNotificationRequest,
    NotificationDelivery,
    NotificationMethodsResponse,
    NotificationPreference,
    NotificationsSettings,
    NotificationTemplate,
    PasscodeDelivery,
    UpdateNotificationTemplateMethod,
    UpdateUserNotificationPreferences,
)
from coder.coderd.http.server.audit_rules import Audited
from coder.coderd.http.server.auth import context, subject
from coder.coderd.http.server.declarations import NOTHING
from coder.coderd.http.server.json import message, no_content, read_body, reply
from coder.coderd.http.server.query import path_uuid
from coder.coderd.http.server.route import route
from coder.coderd.services.access.authorization import require
from coder.coderd.services.login import passcodes
from coder.coderd.services.notifications import notification_preferences, notification_settings, notifications
from coder.coderd.services.people import users
from coder.domain.access.policy import Class
from coder.domain.access.rate_budgets import MESSAGES
from coder.domain.access.route_scopes import PUBLIC

blueprint = Blueprint("notifications", __name__, url_prefix="/api/v2")


@route(blueprint, "GET", "/notifications/settings", scope="deployment_config:read", answers=NotificationsSettings)
async def get_settings() -> Response:
    return reply(await notification_settings.settings(context(), subject()))


@route(
    blueprint,
    "PUT",
    "/notifications/settings",
    scope="deployment_config:update",
    body=NotificationsSettings,
    answers=NotificationsSettings,
    others={304: NOTHING},
    audit=Audited("notifications_settings", "write", "", settings=notification_settings.settings),
)
async def put_settings() -> Response:
    body = await read_body(NotificationsSettings)
    if not await notification_settings.set_paused(context(), subject(), body.notifier_paused):
        return Response(b"", 304)
    return reply(body)


@route(blueprint, "GET", "/notifications/passcodes", scope=PUBLIC, answers=PasscodeDelivery)
async def get_passcode_delivery() -> Response:
    """Return whether passcodes can be delivered, for the page about forgotten passwords."""
    return reply(PasscodeDelivery(available=await passcodes.can_be_sent(context())))


@route(
    blueprint,
    "GET",
    "/notifications/templates/system",
    scope="notification_template:read",
    answers=list[NotificationTemplate],
    compressed=True,
)
async def get_system_templates() -> Response:
    return reply(await notification_settings.list_templates(context(), "system"))


@route(
    blueprint,
    "GET",
    "/notifications/templates/custom",
    scope="notification_template:read",
    answers=list[NotificationTemplate],
)
async def get_custom_templates() -> Response:
    return reply(await notification_settings.list_templates(context(), "custom"))


@route(
    blueprint,
    "PUT",
    "/notifications/templates/<id:template>/method",
    scope="notification_template:update",
    body=UpdateNotificationTemplateMethod,
    answers=Envelope,
    others={304: NOTHING},
    audit=Audited("notification_template", "write"),
)
async def put_template_method(template: str) -> Response:
    template_id = path_uuid(template)
    body = await read_body(UpdateNotificationTemplateMethod)
    changed = await notification_settings.set_template_method(context(), subject(), template_id, body)
    if not changed:
        return Response(b"", 304)
    return message("Successfully updated notification template method.")


@route(
    blueprint,
    "GET",
    "/notifications/dispatch-methods",
    scope="notification_template:read",
    answers=NotificationMethodsResponse,
)
async def get_dispatch_methods() -> Response:
    return reply(notification_settings.dispatch_methods(context()))


@route(blueprint, "GET", "/notifications/delivery", scope="notification_template:read", answers=NotificationDelivery)
async def get_delivery() -> Response:
    """Return the active delivery methods, so that users do not wait for mail without a mail server."""
    return reply(notification_settings.delivery(context()))


@route(blueprint, "POST", "/notifications/test", scope="deployment_config:update", status=204)
async def post_test() -> Response:
    """Send a test message to the caller."""
    await notifications.send_test(context(), subject())
    return no_content()


@route(
    blueprint,
    "POST",
    "/notifications/custom",
    scope="notification_message:create",
    budget=MESSAGES,
    body=CustomNotificationRequest,
    status=204,
)
async def post_custom() -> Response:
    """Send a custom message to its author."""
    body = await read_body(CustomNotificationRequest)
    await notifications.send_custom(context(), subject(), body)
    return no_content()


@route(
    blueprint,
    "GET",
    "/users/<user>/notifications/preferences",
    scope="notification_preference:read",
    answers=list[NotificationPreference] | None,
)
async def get_preferences(user: str) -> Response:
    """Return preferences; None when none was ever set (upstream's null)."""
    row = await users.resolve_user(context(), subject(), user)
    require(subject(), "read", Class("notification_preference", owner_id=row.id), hidden=False)
    return reply(await notification_preferences.preferences(context(), row.id))


@route(
    blueprint,
    "PUT",
    "/users/<user>/notifications/preferences",
    scope="notification_preference:update",
    body=UpdateUserNotificationPreferences,
    answers=list[NotificationPreference] | None,
    refuses=(500,),
)
async def put_preferences(user: str) -> Response:
    row = await users.resolve_user(context(), subject(), user)
    # Only site owners may change those of others: user administrators change users, not their preferences (recorded).
    require(subject(), "update", Class("notification_preference", owner_id=row.id), hidden=False)
    body = await read_body(UpdateUserNotificationPreferences)
    return reply(await notification_preferences.set_preferences(context(), row.id, body.template_disabled_map))
