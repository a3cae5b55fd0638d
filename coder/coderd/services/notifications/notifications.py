"""Queue notifications, in the transaction of the event they report. A loop sends them.

`enqueue` renders a template for one recipient and queues a message for each delivery method (inbox, and email or
webhook where configured), unless the recipient disabled the template. `notification_delivery.py` sends the messages,
`services/audit/request_events.py` maps events to recipients.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.notifications.notifications import CustomNotificationContent, CustomNotificationRequest
from coder.base.ids import new_uuid
from coder.coderd.services.access.authorization import require
from coder.coderd.services.foundation.field_checks import check_request
from coder.coderd.store.engine.pubsub import notify
from coder.coderd.store.notifications import notifications as store
from coder.coderd.store.notifications.notifications import MessagePayload, MessageRow
from coder.coderd.store.people import system_users
from coder.domain.access.policy import Class, Subject
from coder.domain.notifications.message_template import MessageTemplate
from coder.domain.notifications.notification_templates import CUSTOM, ONE_TIME_PASSCODE, TEST
from coder.domain.notifications.notification_texts import BY_ID, Reader, render

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx


@dataclass(frozen=True, slots=True)
class NotificationSite:
    """Deployment data for messages, read before the transaction."""

    access_url: str
    methods: frozenset[str]
    "Configured delivery methods."
    default_method: str
    inbox: bool = True


@dataclass(frozen=True, slots=True)
class Notification:
    """Notification to one user."""

    template_id: UUID
    user_id: UUID
    labels: Mapping[str, str] = field(default_factory=dict)
    targets: Sequence[UUID] = ()
    "Objects it is about, by which recipients filter."


def site_of(ctx: Context) -> NotificationSite:
    config = ctx.config
    methods = {"smtp": config.email_smarthost, "webhook": config.notifications_webhook_endpoint}
    return NotificationSite(
        access_url=ctx.access_url,
        methods=frozenset(name for name, endpoint in methods.items() if endpoint),
        default_method=config.notifications_method,
        inbox=config.notifications_inbox_enabled,
    )


async def enqueue(tx: Tx, site: NotificationSite, notice: Notification, now: datetime) -> None:
    """Queue a notification. Do nothing for a deleted recipient, or one who disabled the template."""
    template = BY_ID[notice.template_id]
    disabled = await store.get_preference(tx, notice.user_id, template.id)
    if disabled or (disabled is None and not template.enabled_by_default):
        return
    reader = await system_users.get_user(tx, notice.user_id)
    if reader is None or reader.deleted:
        return
    recipient = Reader(reader.id, reader.name, reader.username, reader.email)
    message = render(template, recipient, notice.labels, site.access_url)
    payload: MessagePayload = {
        "title": message.title,
        "body": message.body,
        "icon": message.icon,
        "actions": message.actions,
        "labels": dict(notice.labels),
    }
    targets = [str(target) for target in notice.targets]
    for method in await _methods(tx, template, site):
        content = _without_secrets(template, payload) if method == "inbox" else payload
        await store.insert_message(tx, MessageRow(new_uuid(), template.id, reader.id, method, content, targets, 0, now))
    await notify(tx, store.CHANNEL)


def _without_secrets(template: MessageTemplate, payload: MessagePayload) -> MessagePayload:
    """Return the inbox's payload: a key with read access to the inbox must not give access to a passcode."""
    return {**payload, "actions": [], "labels": {}} if template.id == ONE_TIME_PASSCODE else payload


async def _methods(tx: Tx, template: MessageTemplate, site: NotificationSite) -> list[str]:
    chosen = (await store.list_methods(tx)).get(template.id) or site.default_method
    return (["inbox"] if site.inbox else []) + ([chosen] if chosen in site.methods else [])


async def reaches_outside_inbox(ctx: Context, template_id: UUID) -> bool:
    """Whether notifications of the template reach a user who cannot log in: the inbox alone does not."""
    methods = await ctx.db.read(_methods, BY_ID[template_id], site_of(ctx))
    return any(method != "inbox" for method in methods)


async def send_test(ctx: Context, subject: Subject) -> None:
    """Send a test notification to the caller. Raises Forbidden."""
    require(subject, "update", Class("deployment_config"), hidden=False)
    await _send(ctx, Notification(TEST, subject.user_id))


async def send_custom(ctx: Context, subject: Subject, request: CustomNotificationRequest) -> None:
    """Send the caller's own text to the caller. Raises Invalid."""
    check_request(request)
    content = request.content or CustomNotificationContent()
    labels = {"custom_title": content.title, "custom_message": content.message}
    await _send(ctx, Notification(CUSTOM, subject.user_id, labels))


async def _send(ctx: Context, notice: Notification) -> None:
    await ctx.db.run(enqueue, site_of(ctx), notice, ctx.clock.now())
