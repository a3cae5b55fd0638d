"""The notification inbox of the caller."""

from __future__ import annotations

from uuid import UUID

import msgspec
import trio
from quart import Blueprint, Response, request, websocket

from coder.api.base.refusals import Invalid
from coder.api.notifications.notifications import GetInboxNotificationResponse, ListInboxNotificationsResponse
from coder.coderd.http.server.auth import context, subject
from coder.coderd.http.server.declarations import TEXT
from coder.coderd.http.server.json import no_content, read_body, reply
from coder.coderd.http.server.query import Query, path_uuid
from coder.coderd.http.server.route import WEBSOCKET, route
from coder.coderd.http.server.streams import UpgradeRefusal, needs_upgrade
from coder.coderd.services.notifications import inbox
from coder.coderd.services.notifications.inbox import InboxSelection

blueprint = Blueprint("inbox", __name__, url_prefix="/api/v2/notifications")

_READ = {"": None, "all": None, "read": True, "unread": False}


class ReadStatus(msgspec.Struct):
    is_read: bool = False


@route(
    blueprint,
    "GET",
    "/inbox",
    scope="inbox_notification:read",
    query={"read_status": str, "starting_before": UUID, "targets": list[UUID], "templates": list[UUID]},
    answers=ListInboxNotificationsResponse,
)
async def get_inbox() -> Response:
    query = Query()
    before = query.uuid("starting_before")
    selection = _selection(query, "starting_before")
    return reply(await inbox.list_inbox(context(), subject(), selection, before=before))


def _selection(query: Query, *others: str) -> InboxSelection:
    """Return the query's filter; only its parameters and `others` are allowed. Raises Invalid."""
    targets, templates = query.uuids("targets"), query.uuids("templates")
    query.only("targets", "templates", "read_status", *others)
    status = query.one("read_status")
    query.check()
    if status not in _READ:
        raise Invalid("starting_before query parameter should be any of 'all', 'read', 'unread'.")
    return InboxSelection(tuple(targets), tuple(templates), _READ[status])


@route(blueprint, "PUT", "/inbox/mark-all-as-read", scope="inbox_notification:update", status=204)
async def put_all_read() -> Response:
    await inbox.mark_all_read(context(), subject())
    return no_content()


@route(
    blueprint,
    "PUT",
    "/inbox/<id:notification>/read-status",
    scope="inbox_notification:update",
    body=ReadStatus,
    answers=GetInboxNotificationResponse,
    refuses=(500,),
)
async def put_read_status(notification: str) -> Response:
    body = await read_body(ReadStatus)
    marked = await inbox.mark_read(context(), subject(), path_uuid(notification), is_read=body.is_read)
    return reply(marked)


_WATCHED = {"format": str, "read_status": str, "targets": list[UUID], "templates": list[UUID]}


@route(blueprint, "GET", "/inbox/watch", scope="inbox_notification:read", query=_WATCHED, others={426: TEXT})
async def watch_without_upgrade() -> Response:
    inbox.require_readable(subject())
    _selection(Query(arguments=request.args.to_dict(flat=False)), "format")
    return needs_upgrade(UpgradeRefusal.NOTICES)


@route(blueprint, WEBSOCKET, "/inbox/watch", scope="inbox_notification:read", query=_WATCHED)
async def watch_inbox() -> None:
    """Send new notifications as they arrive; the connection stays open until either side disconnects. `format` is
    `markdown`, the stored form, or `plaintext`."""
    inbox.require_readable(subject())
    ctx, query = context(), Query(arguments=websocket.args.to_dict(flat=False))
    selection, plain = _selection(query, "format"), query.text("format") == "plaintext"

    async def show(answer: GetInboxNotificationResponse) -> None:
        converted = inbox.in_plain_text(answer) if plain else answer
        await websocket.send(msgspec.json.encode(converted).decode())

    async with trio.open_nursery() as nursery:
        # Subscribes first: a client with an open stream receives every message from then on.
        await nursery.start(inbox.follow_inbox, ctx, subject(), selection, show)
        await websocket.accept()
        await ctx.stopping.wait()
        nursery.cancel_scope.cancel()
    await websocket.close(1001)
