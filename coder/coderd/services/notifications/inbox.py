"""The notification inbox of a user: list notifications, mark them as read, and follow new ones."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

import msgspec
import trio

from coder.api.base.refusals import Failed
from coder.api.notifications.notifications import (
    GetInboxNotificationResponse,
    InboxNotification,
    InboxNotificationAction,
    ListInboxNotificationsResponse,
)
from coder.coderd.services.access.authorization import may, require
from coder.coderd.store.engine.pubsub import notify
from coder.coderd.store.notifications import inbox as store
from coder.coderd.store.notifications import system_inbox
from coder.coderd.store.notifications.inbox import InboxRow
from coder.domain.access.policy import Class, Object, Subject
from coder.domain.foundation.markdown import plain_text

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

_CHANNEL = "inbox"
_UNMARKED = "Failed to update inbox notification read status."


@dataclass(frozen=True, slots=True)
class InboxSelection:
    """Filter of notifications; the default matches all."""

    targets: tuple[UUID, ...] = ()
    "Targets that a notification must all have."
    templates: tuple[UUID, ...] = ()
    "Templates of which a notification must have one."
    read: bool | None = None
    "Whether read or unread; None for both."

    def takes(self, row: InboxRow) -> bool:
        return (
            all(str(target) in row.targets for target in self.targets)
            and (not self.templates or row.template_id in self.templates)
            and (self.read is None or self.read == (row.read_at is not None))
        )


EVERYTHING = InboxSelection()


def _inbox_of(user_id: UUID, *, narrowed: bool = False) -> Class:
    return Class("inbox_notification", owner_id=user_id, narrowed=narrowed)


def _item(user_id: UUID, notification_id: UUID) -> Object:
    return Object("inbox_notification", str(notification_id), owner_id=user_id)


async def list_inbox(
    ctx: Context, subject: Subject, selection: InboxSelection = EVERYTHING, *, before: UUID | None = None
) -> ListInboxNotificationsResponse:
    """List a page of the caller's own notifications, newest first. Raises Forbidden."""
    user_id = subject.user_id
    require(subject, "read", _inbox_of(user_id), hidden=False)
    rows = await ctx.db.read(
        store.list_inbox,
        user_id,
        targets=[str(target) for target in selection.targets],
        templates=list(selection.templates),
        read=selection.read,
        before=before,
    )
    unread = await ctx.db.read(store.count_unread, user_id)
    return ListInboxNotificationsResponse(notifications=[_present(row) for row in rows], unread_count=unread)


async def mark_all_read(ctx: Context, subject: Subject) -> None:
    """Mark every notification of the caller as read. Raises Forbidden."""
    require(subject, "update", _inbox_of(subject.user_id), hidden=False)
    await ctx.db.run(store.set_all_read, subject.user_id, ctx.clock.now())


async def mark_read(
    ctx: Context, subject: Subject, notification_id: UUID, *, is_read: bool
) -> GetInboxNotificationResponse:
    """Mark a notification as read. Raises Failed (upstream's text) unless the caller has it and may change it."""
    user_id = subject.user_id
    if not may(subject, "update", _item(user_id, notification_id)):
        raise Failed(_UNMARKED)
    row = await ctx.db.run(store.set_read, user_id, notification_id, ctx.clock.now() if is_read else None)
    if row is None:
        raise Failed(_UNMARKED)
    return await _response(ctx, user_id, row)


async def notify_followers(tx: Tx, user_id: UUID, notification_id: UUID) -> None:
    """Notify followers when the transaction commits."""
    await notify(tx, _CHANNEL, f"{user_id} {notification_id}")


def require_readable(subject: Subject) -> None:
    """Require that the caller may read some of the own notifications. Raises Forbidden."""
    require(subject, "read", _inbox_of(subject.user_id, narrowed=True), hidden=False)


async def follow_inbox(
    ctx: Context,
    subject: Subject,
    selection: InboxSelection,
    show: Callable[[GetInboxNotificationResponse], Awaitable[None]],
    *,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Send each new notification that the caller may read, until cancelled.

    Call it when the subscription is active, so that none is missed.
    """
    user_id = subject.user_id
    async with ctx.db.listen(_CHANNEL) as arrivals:
        task_status.started()
        async for _, payload in arrivals:
            whose, _, which = payload.partition(" ")
            notification_id = _parse_id(which)
            if whose != str(user_id) or notification_id is None:  # a replica of an older version sends only the user
                continue
            row = await ctx.db.read(system_inbox.get_inbox, user_id, notification_id)
            if row is not None and selection.takes(row) and may(subject, "read", _item(user_id, row.id)):
                await show(await _response(ctx, user_id, row))


def _parse_id(text: str) -> UUID | None:
    with contextlib.suppress(ValueError):
        return UUID(text)
    return None


def in_plain_text(response: GetInboxNotificationResponse) -> GetInboxNotificationResponse:
    """Return the notification without Markdown markup."""
    notification = response.notification
    notification = msgspec.structs.replace(
        notification, title=plain_text(notification.title), content=plain_text(notification.content)
    )
    return msgspec.structs.replace(response, notification=notification)


async def _response(ctx: Context, user_id: UUID, row: InboxRow) -> GetInboxNotificationResponse:
    unread = await ctx.db.read(store.count_unread, user_id)
    return GetInboxNotificationResponse(notification=_present(row), unread_count=unread)


def _present(row: InboxRow) -> InboxNotification:
    return InboxNotification(
        id=row.id,
        user_id=row.user_id,
        template_id=row.template_id,
        targets=list(row.targets) or None,
        title=row.title,
        content=row.content,
        icon=row.icon,
        actions=[InboxNotificationAction(label=a["label"], url=a["url"]) for a in row.actions],
        read_at=row.read_at,
        created_at=row.created_at,
    )
