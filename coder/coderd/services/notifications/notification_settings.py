"""Deployment settings of notifications: paused or not, and a delivery method for each template."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import NotFound
from coder.api.notifications.notifications import (
    NotificationDelivery,
    NotificationMethodsResponse,
    NotificationsSettings,
    NotificationTemplate,
    UpdateNotificationTemplateMethod,
)
from coder.coderd.services.access.authorization import require
from coder.coderd.services.foundation.field_checks import check_request
from coder.coderd.services.notifications.notifications import site_of
from coder.coderd.store.engine.pubsub import notify
from coder.coderd.store.notifications import notifications as store
from coder.coderd.store.site import site_settings as site_store
from coder.domain.access.policy import Class, Subject
from coder.domain.notifications.notification_templates import TEMPLATES
from coder.domain.notifications.notification_texts import BY_ID, METHODS
from coder.domain.notifications.own_templates import OWN

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx


_SETTINGS = "notifications_settings"


async def is_paused(tx: Tx) -> bool:
    stored = await site_store.get_config(tx, _SETTINGS)
    return bool(stored and json.loads(stored).get("notifier_paused"))


async def settings(ctx: Context, _subject: Subject) -> NotificationsSettings:
    """Return whether notifications are paused. Readable by every user."""
    return NotificationsSettings(notifier_paused=await ctx.db.read(is_paused))


async def set_paused(ctx: Context, subject: Subject, paused: bool) -> bool:
    """Pause or resume. Return False, for any caller, when nothing changes (recorded). Raises Forbidden."""
    if await ctx.db.read(is_paused) == paused:
        return False
    require(subject, "update", Class("deployment_config"), hidden=False)

    async def write(tx: Tx) -> bool:
        if await is_paused(tx) == paused:
            return False
        await site_store.put_config(tx, _SETTINGS, json.dumps({"notifier_paused": paused}))
        await notify(tx, store.CHANNEL)
        return True

    return await ctx.db.run(write)


async def list_templates(ctx: Context, kind: str) -> list[NotificationTemplate]:
    methods = await ctx.db.read(store.list_methods)
    # Without our own: programs written for upstream know its list.
    templates = sorted(
        (template for template in TEMPLATES if template.kind == kind and template not in OWN),
        key=lambda template: template.name,
    )
    return [
        NotificationTemplate(
            id=template.id,
            name=template.name,
            title_template=template.title,
            body_template=template.body,
            actions=template.actions,
            group=template.group,
            method=methods.get(template.id, ""),
            kind=template.kind,
            enabled_by_default=template.enabled_by_default,
        )
        for template in templates
    ]


def dispatch_methods(ctx: Context) -> NotificationMethodsResponse:
    return NotificationMethodsResponse(available=list(METHODS), default=ctx.config.notifications_method)


def delivery(ctx: Context) -> NotificationDelivery:
    site = site_of(ctx)
    return NotificationDelivery(methods=sorted(site.methods | ({"inbox"} if site.inbox else set())))


async def set_template_method(
    ctx: Context, subject: Subject, template_id: UUID, request: UpdateNotificationTemplateMethod
) -> bool:
    """Set the delivery method of a template. Return False when nothing changes. Raises NotFound, Invalid."""
    require(subject, "update", Class("notification_template"))
    if template_id not in BY_ID:
        raise NotFound
    check_request(request)
    return await ctx.db.run(store.put_method, template_id, request.method or "")
