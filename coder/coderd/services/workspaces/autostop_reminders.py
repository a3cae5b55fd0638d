"""Reminders that a workspace stops soon, sent as long before the stop as the template says.

A user gets one reminder for each deadline. Activity moves the deadline, and the new one gets its own reminder.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from coder.coderd.services.foundation.isolated_items import process_items
from coder.coderd.services.notifications import notifications
from coder.coderd.services.notifications.notifications import Notification, NotificationSite
from coder.coderd.store.notifications import notification_marks
from coder.coderd.store.workspaces import autobuilds as store
from coder.coderd.store.workspaces.autobuilds import UpcomingStop
from coder.domain.notifications.notification_templates import WORKSPACE_AUTOSTOP_REMINDER

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

_MARKS_KEPT = timedelta(days=30)
"""Longer than the time between any reminder and its deadline."""


async def remind(ctx: Context) -> int:
    """Send all reminders that are due; return how many were sent."""
    now = ctx.clock.now()
    due = await ctx.db.read(store.list_soon_stopped, now)
    site = notifications.site_of(ctx)
    return sum(
        await process_items(
            ctx.log,
            "an autostop reminder could not be sent",
            due,
            lambda reminder: ctx.db.run(_remind, reminder, now, site),
            lambda reminder: {"workspace": reminder.workspace_id},
        )
    )


async def _remind(tx: Tx, reminder: UpcomingStop, now: datetime, site: NotificationSite) -> int:
    deadline = reminder.deadline.isoformat()
    if not await notification_marks.mark(tx, WORKSPACE_AUTOSTOP_REMINDER, reminder.build_id, deadline, now):
        return 0
    await notification_marks.forget_marks(tx, WORKSPACE_AUTOSTOP_REMINDER, now - _MARKS_KEPT)
    labels = {"workspace": reminder.name, "deadline": f"{reminder.deadline:%Y-%m-%d %H:%M %Z}"}
    about = (reminder.workspace_id, reminder.owner_id, reminder.template_id, reminder.organization_id)
    await notifications.enqueue(
        tx, site, Notification(WORKSPACE_AUTOSTOP_REMINDER, reminder.owner_id, labels, about), now
    )
    return 1
