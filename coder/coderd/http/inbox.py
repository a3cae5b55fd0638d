"""The notification inbox of the caller."""

from __future__ import annotations

from uuid import UUID

import msgspec
import trio
from quart import Blueprint, Response, websocket

from coder.api.notifications import (
    GetInboxNotificationResponse,
    InboxNotification,
    InboxNotificationAction,
    ListInboxNotificationsResponse,
)
from coder.coderd.http.auth import authenticated, context, subject
from coder.coderd.http.json import no_content, read_body, reply
from coder.coderd.http.query import Query, path_uuid
from coder.coderd.services.errors import Failed, Invalid
from coder.coderd.store import inbox as store
from coder.coderd.store.inbox import InboxRow

blueprint = Blueprint("inbox", __name__, url_prefix="/api/v2/notifications")

_READ = {"": None, "all": None, "read": True, "unread": False}


class ReadStatus(msgspec.Struct):
    is_read: bool = False


@blueprint.get("/inbox")
@authenticated
async def get_inbox() -> Response:
    query = Query()
    targets, templates = query.uuids("targets"), query.uuids("templates")
    before = query.uuid("starting_before")
    query.check()
    status = query.text("read_status")
    if status not in _READ:
        raise Invalid("starting_before query parameter should be any of 'all', 'read', 'unread'.")
    user_id = subject().user_id
    rows = await context().db.read(
        store.list_inbox,
        user_id,
        targets=[str(target) for target in targets],
        templates=templates,
        read=_READ[status],
        before=before,
    )
    unread = await context().db.read(store.count_unread, user_id)
    return reply(ListInboxNotificationsResponse(notifications=[_view(row) for row in rows], unread_count=unread))


@blueprint.put("/inbox/mark-all-as-read")
@authenticated
async def put_all_read() -> Response:
    ctx = context()
    await ctx.db.run(store.set_all_read, subject().user_id, ctx.clock.now())
    return no_content()


@blueprint.put("/inbox/<notification>/read-status")
@authenticated
async def put_read_status(notification: str) -> Response:
    ctx = context()
    body = await read_body(ReadStatus)
    at = ctx.clock.now() if body.is_read else None
    row = await ctx.db.run(store.set_read, subject().user_id, path_uuid(notification), at)
    if row is None:
        raise Failed("Failed to update inbox notification read status.")
    unread = await ctx.db.read(store.count_unread, subject().user_id)
    return reply(GetInboxNotificationResponse(notification=_view(row), unread_count=unread))


@blueprint.websocket("/inbox/watch")
@authenticated
async def watch_inbox() -> None:
    """New notifications as they come; the connection stays open until either side leaves."""
    await websocket.accept()
    ctx = context()
    async with ctx.db.listen("inbox") as notices, trio.open_nursery() as nursery:
        nursery.start_soon(_forward, notices, subject().user_id)
        await ctx.stopping.wait()
        nursery.cancel_scope.cancel()
    await websocket.close(1001)


async def _forward(notices: trio.MemoryReceiveChannel[tuple[str, str]], user_id: UUID) -> None:
    ctx = context()
    async for _, payload in notices:
        if payload != str(user_id):
            continue
        rows = await ctx.db.read(store.list_inbox, user_id)
        unread = await ctx.db.read(store.count_unread, user_id)
        if rows:
            answer = GetInboxNotificationResponse(notification=_view(rows[0]), unread_count=unread)
            await websocket.send(msgspec.json.encode(answer).decode())


def _view(row: InboxRow) -> InboxNotification:
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
