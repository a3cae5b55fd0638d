"""The weekly report on failed builds, for template admins."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from coder.coderd.services.notifications import notifications
from coder.coderd.services.notifications.notifications import Notification, NotificationSite
from coder.coderd.services.notifications.prebuild_notifications import TEMPLATE_ADMINS
from coder.coderd.store.notifications import notification_marks
from coder.coderd.store.notifications import notifications as notification_store
from coder.coderd.store.workspaces import build_reports as store
from coder.coderd.store.workspaces.build_reports import FailedBuilds
from coder.domain.notifications.notification_templates import REPORT_BUILDS_FAILED

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

REPORT_INTERVAL = timedelta(days=7)
MAX_NAMED = 10
"""Failed builds that a report names for each version; the rest are counted."""
_SITE = UUID(int=0)


async def report(ctx: Context) -> int:
    """Send the report if a week has passed since the last one; return the number of readers. The first call starts a
    week."""
    return await ctx.db.run(_report, notifications.site_of(ctx), ctx.clock.now())


async def _report(tx: Tx, site: NotificationSite, now: datetime) -> int:
    last = await notification_marks.get_mark(tx, REPORT_BUILDS_FAILED, _SITE)
    since = datetime.fromisoformat(last) if last else now
    if last and now - since < REPORT_INTERVAL:
        return 0
    await notification_marks.mark(tx, REPORT_BUILDS_FAILED, _SITE, now.isoformat(), now)
    failed = await store.list_failed(tx, since, now) if last else []
    return sum(
        [
            await _send_report(tx, reader, versions, site, now)
            for reader, versions in (await _readers(tx, failed)).items()
        ]
    )


async def _readers(tx: Tx, failed: Sequence[FailedBuilds]) -> dict[UUID, list[FailedBuilds]]:
    """Group the failed builds by reader: each admin gets one report on all their organizations."""
    readers: dict[UUID, list[FailedBuilds]] = {}
    for organization_id in {item.organization_id for item in failed}:
        for admin in await notification_store.list_admins(tx, TEMPLATE_ADMINS, organization_id):
            readers.setdefault(admin, []).extend(item for item in failed if item.organization_id == organization_id)
    return readers


async def _send_report(
    tx: Tx, reader: UUID, versions: Sequence[FailedBuilds], site: NotificationSite, now: datetime
) -> int:
    labels = {"report_frequency": "week", "summary": summary(versions)}
    about = tuple({item.template_id for item in versions})
    await notifications.enqueue(tx, site, Notification(REPORT_BUILDS_FAILED, reader, labels, about), now)
    return 1


def summary(versions: Sequence[FailedBuilds]) -> str:
    """Format the report's list in Markdown."""
    lines = []
    for item in versions:
        workspaces = ", ".join(item.failed[:MAX_NAMED]) + (", …" if len(item.failed) > MAX_NAMED else "")
        lines.append(
            f"- **{item.template}** {item.version}: {len(item.failed)} of {item.total} builds failed ({workspaces})"
        )
    return "\n".join(lines)
