"""Notifications: what administrators set, what people want to hear of, messages on request. The inbox is `inbox.py`."""

from __future__ import annotations

from quart import Blueprint, Response

from coder.api.notifications import (
    CustomNotificationRequest,
    NotificationsSettings,
    UpdateNotificationTemplateMethod,
    UpdateUserNotificationPreferences,
)
from coder.coderd.http.auth import authenticated, context, subject
from coder.coderd.http.json import message, no_content, read_body, reply
from coder.coderd.http.query import path_uuid
from coder.coderd.services import notifications, users
from coder.coderd.services.authorization import require
from coder.coderd.services.users import user_resource
from coder.domain.policy import Resource

blueprint = Blueprint("notifications", __name__, url_prefix="/api/v2")


@blueprint.get("/notifications/settings")
@authenticated
async def get_settings() -> Response:
    return reply(NotificationsSettings(notifier_paused=await context().db.read(notifications.is_paused)))


@blueprint.put("/notifications/settings")
@authenticated
async def put_settings() -> Response:
    body = await read_body(NotificationsSettings)
    if not await notifications.set_paused(context(), subject(), body.notifier_paused):
        return Response(b"", 304)
    return reply(body)


@blueprint.get("/notifications/templates/system")
@authenticated
async def get_system_templates() -> Response:
    return reply(await notifications.list_templates(context(), "system"))


@blueprint.get("/notifications/templates/custom")
@authenticated
async def get_custom_templates() -> Response:
    return reply(await notifications.list_templates(context(), "custom"))


@blueprint.put("/notifications/templates/<template>/method")
@authenticated
async def put_template_method(template: str) -> Response:
    template_id = path_uuid(template)
    body = await read_body(UpdateNotificationTemplateMethod)
    changed = await notifications.set_template_method(context(), subject(), template_id, body.method or "")
    if not changed:
        return Response(b"", 304)
    return message("Successfully updated notification template method.")


@blueprint.get("/notifications/dispatch-methods")
@authenticated
async def get_dispatch_methods() -> Response:
    return reply(notifications.dispatch_methods(context()))


@blueprint.post("/notifications/test")
@authenticated
async def post_test() -> Response:
    await notifications.send_test(context(), subject())
    return no_content()


@blueprint.post("/notifications/custom")
@authenticated
async def post_custom() -> Response:
    body = await read_body(CustomNotificationRequest)
    await notifications.send_custom(context(), subject(), body.content)
    return no_content()


@blueprint.get("/users/<user>/notifications/preferences")
@authenticated
async def get_preferences(user: str) -> Response:
    row = await users.resolve_user(context(), subject(), user)
    require(subject(), "read_personal", user_resource(row.id))
    return reply(await notifications.preferences(context(), row.id))


@blueprint.put("/users/<user>/notifications/preferences")
@authenticated
async def put_preferences(user: str) -> Response:
    row = await users.resolve_user(context(), subject(), user)
    # Of others, only site owners: user administrators change people, not what they hear of (recorded).
    require(subject(), "update", Resource("notification_preference", owner_id=row.id), hidden=False)
    body = await read_body(UpdateUserNotificationPreferences)
    return reply(await notifications.set_preferences(context(), row.id, body.template_disabled_map))
