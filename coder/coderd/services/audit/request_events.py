"""Events of a request that changed something: an audit entry, and notifications to the affected users.

Written in a separate transaction after the change has been committed. `services/workspaces/builds/build_events.py`
handles the end of a build.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from coder.base.json_types import Json, as_text
from coder.coderd.services.audit import audit
from coder.coderd.services.audit.audit import AuditEvent
from coder.coderd.services.foundation.outages import SETTLED_WITHIN, run_once, settling_doubts, until_available
from coder.coderd.services.notifications import notifications
from coder.coderd.services.notifications.notifications import Notification, NotificationSite
from coder.coderd.store.audit import audit as store
from coder.coderd.store.audit.audit import AuditSnapshot
from coder.coderd.store.engine.errors import DatabaseAwayError
from coder.coderd.store.notifications import notifications as notification_store
from coder.coderd.store.people import system_users
from coder.coderd.store.templates import system_templates
from coder.coderd.store.templates import templates as template_store
from coder.domain.notifications import notification_templates

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

_USER_ADMINS = ("owner", "user-admin")
_TEMPLATE_ADMINS = ("owner", "template-admin")


async def record_event(ctx: Context, event: AuditEvent) -> None:
    """Write the entry and queue notifications, once. During an outage of the database they are written afterwards."""
    site, now = notifications.site_of(ctx), ctx.clock.now()

    async def write() -> None:
        await until_available(run_once, ctx.db, _record_event, event, site, now)

    try:
        with settling_doubts(SETTLED_WITHIN):
            await ctx.db.run(_record_event, event, site, now)
    except DatabaseAwayError as error:
        if error.in_doubt:
            raise
        target = event.snapshot.id if event.snapshot is not None else event.resource_id
        what = f"audit entry: {event.action} {event.kind} {target} by {event.origin.user_id}"
        await ctx.services.deferred_work.enqueue(what, write)


async def _record_event(tx: Tx, event: AuditEvent, site: NotificationSite, now: datetime) -> None:
    await audit.write(tx, event, now)
    if not event.succeeded:
        return
    if event.kind == "task" and event.action == "create" and event.after is not None:
        workspace = await store.take_snapshot(tx, "workspace", UUID(as_text(event.after.state["workspace_id"])))
        await _record_event(tx, replace(event, kind="workspace", after=workspace), site, now)
    handler = _HANDLERS.get(event.kind)
    if handler is None:
        return
    for notice in await handler(tx, event):
        await notifications.enqueue(tx, site, notice, now)


async def _initiator(tx: Tx, event: AuditEvent) -> str:
    row = await system_users.get_user(tx, event.origin.user_id) if event.origin.user_id else None
    return row.name if row else ""  # the full name alone, as recorded: empty for a user without one


async def _about_user(tx: Tx, event: AuditEvent) -> list[Notification]:
    before, after = event.before, event.after
    snapshot = event.snapshot
    if snapshot is None or snapshot.id is None:
        return []
    name = snapshot.target
    initiator = await _initiator(tx, event)
    admins = [admin for admin in await notification_store.list_admins(tx, _USER_ADMINS) if admin != snapshot.id]

    def notify_each(template: UUID, label: str, readers: Sequence[UUID]) -> list[Notification]:
        labels = {label: name, f"{label}_user_name": str(snapshot.state.get("name", "")), "initiator": initiator}
        return [Notification(template, reader, labels, (snapshot.id,) if snapshot.id else ()) for reader in readers]

    if event.action == "create":
        return notify_each(notification_templates.USER_CREATED, "created_account_name", admins)
    if event.action == "delete":
        return notify_each(notification_templates.USER_DELETED, "deleted_account_name", admins)
    status = _changed(before, after, "status")
    if status == "suspended":
        return notify_each(notification_templates.USER_SUSPENDED, "suspended_account_name", admins) + notify_each(
            notification_templates.YOUR_ACCOUNT_SUSPENDED, "suspended_account_name", [snapshot.id]
        )
    if status == "active" and before is not None and before.state["status"] == "suspended":
        return notify_each(notification_templates.USER_ACTIVATED, "activated_account_name", admins) + notify_each(
            notification_templates.YOUR_ACCOUNT_ACTIVATED, "activated_account_name", [snapshot.id]
        )
    return []


def _changed(before: AuditSnapshot | None, after: AuditSnapshot | None, name: str) -> Json:
    """Return the new value of a changed field; None for an unchanged one."""
    if before is None or after is None or before.state.get(name) == after.state.get(name):
        return None
    return after.state.get(name)


async def _about_template(tx: Tx, event: AuditEvent) -> list[Notification]:
    snapshot = event.snapshot
    if snapshot is None or snapshot.id is None:
        return []
    if event.action == "delete":
        admins = await notification_store.list_admins(tx, _TEMPLATE_ADMINS, snapshot.organization_id)
        labels = {"name": snapshot.target, "initiator": await _initiator(tx, event)}
        return [
            Notification(notification_templates.TEMPLATE_DELETED, admin, labels, (snapshot.id,))
            for admin in admins
            if admin != event.origin.user_id
        ]
    message = _changed(event.before, event.after, "deprecated")
    if message:
        labels = {"template": snapshot.target, "message": str(message), "organization": ""}
        owners = await template_store.list_workspace_owners(tx, snapshot.id)
        return [
            Notification(notification_templates.TEMPLATE_DEPRECATED, owner, labels, (snapshot.id,)) for owner in owners
        ]
    return []


async def _about_workspace(tx: Tx, event: AuditEvent) -> list[Notification]:
    snapshot = event.after
    if snapshot is None or snapshot.id is None:
        return []
    owner_id = UUID(as_text(snapshot.state["owner_id"]))
    if event.action == "create":
        template = await system_templates.get_template(tx, UUID(as_text(snapshot.state["template_id"])))
        admins = await notification_store.list_admins(tx, _TEMPLATE_ADMINS, snapshot.organization_id)
        labels = {
            "workspace": snapshot.target,
            "template": template.name if template else "",
            "workspace_owner_username": snapshot.owner,
        }
        return [
            Notification(notification_templates.WORKSPACE_CREATED, admin, labels, (snapshot.id,))
            for admin in admins
            if admin != owner_id
        ]
    if _changed(event.before, event.after, "dormant_at") and owner_id != event.origin.user_id:
        initiator = await _initiator(tx, event)
        labels = {"name": snapshot.target, "reason": f"a request of {initiator or 'a user'}", "dormancyHours": ""}
        return [Notification(notification_templates.WORKSPACE_DORMANT, owner_id, labels, (snapshot.id,))]
    return []


_HANDLERS: dict[str, Callable[[Tx, AuditEvent], Awaitable[list[Notification]]]] = {
    "user": _about_user,
    "template": _about_template,
    "workspace": _about_workspace,
}
