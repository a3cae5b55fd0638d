"""The notification inbox of a user: what arrived, what was read, and what arrives while somebody looks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

import trio

from coder.api.events.notifications import (
    GetInboxNotificationResponse,
    InboxNotification,
    InboxNotificationAction,
    ListInboxNotificationsResponse,
)
from coder.coderd.services.foundation.errors import Failed
from coder.coderd.store.events import inbox as store
from coder.coderd.store.events.inbox import InboxRow

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

_CHANNEL = "inbox"


async def list_inbox(
    ctx: Context,
    user_id: UUID,
    *,
    targets: Sequence[UUID] = (),
    templates: Sequence[UUID] = (),
    read: bool | None = None,
    before: UUID | None = None,
) -> ListInboxNotificationsResponse:
    """A page of the user's own notifications, newest first. `read` None: both kinds."""
    rows = await ctx.db.read(
        store.list_inbox,
        user_id,
        targets=[str(target) for target in targets],
        templates=list(templates),
        read=read,
        before=before,
    )
    unread = await ctx.db.read(store.count_unread, user_id)
    return ListInboxNotificationsResponse(notifications=[_present(row) for row in rows], unread_count=unread)


async def mark_all_read(ctx: Context, user_id: UUID) -> None:
    await ctx.db.run(store.set_all_read, user_id, ctx.clock.now())


async def mark_read(
    ctx: Context, user_id: UUID, notification_id: UUID, *, is_read: bool
) -> GetInboxNotificationResponse:
    """Raises Failed when the user has no such notification (in upstream's words)."""
    row = await ctx.db.run(store.set_read, user_id, notification_id, ctx.clock.now() if is_read else None)
    if row is None:
        raise Failed("Failed to update inbox notification read status.")
    return await _answer(ctx, user_id, row)


async def follow_inbox(
    ctx: Context,
    user_id: UUID,
    show: Callable[[GetInboxNotificationResponse], Awaitable[None]],
    *,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Shows the newest notification each time one arrives, until cancelled. Started when none can be missed."""
    async with ctx.db.listen(_CHANNEL) as arrivals:
        task_status.started()
        async for _, payload in arrivals:
            if payload != str(user_id):
                continue
            rows = await ctx.db.read(store.list_inbox, user_id)
            if rows:
                await show(await _answer(ctx, user_id, rows[0]))


async def _answer(ctx: Context, user_id: UUID, row: InboxRow) -> GetInboxNotificationResponse:
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
