"""Dormancy: marking a workspace dormant and activating it, at a user's request or after inactivity."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.workspaces.workspaces import Workspace
from coder.coderd.services.access.authorization import require
from coder.coderd.services.access.workspace_access import load_workspace, lock_workspace, workspace_resource
from coder.coderd.services.notifications import notifications
from coder.coderd.services.notifications.notifications import Notification
from coder.coderd.services.workspaces.workspace_settings import edit_workspace
from coder.coderd.services.workspaces.workspaces import present
from coder.coderd.store.templates import system_templates
from coder.coderd.store.templates.templates import TemplateRow
from coder.coderd.store.workspaces import workspaces as workspace_store
from coder.coderd.store.workspaces.workspaces import WorkspaceRow
from coder.domain.access.policy import Subject
from coder.domain.notifications import notification_templates
from coder.domain.workspaces.autobuild import in_words

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx


async def set_dormant(ctx: Context, subject: Subject, workspace_id: UUID, dormant: bool) -> Workspace | None:
    """Mark a workspace dormant or activate it; return None if nothing changed.

    A running workspace keeps running until its schedule or its owner stops it (recorded: no build is queued here).
    """
    if not await ctx.db.run(_set_dormant, subject, workspace_id, dormant, ctx.clock.now()):
        return None
    return await present(ctx, subject, await load_workspace(ctx, subject, workspace_id))


async def _set_dormant(tx: Tx, subject: Subject, workspace_id: UUID, dormant: bool, now: datetime) -> bool:
    row = (await lock_workspace(tx, subject, workspace_id, "read")).workspace
    if (row.dormant_at is not None) == dormant:
        return False
    require(subject, "update", workspace_resource(row))
    template = await system_templates.get_template(tx, row.template_id)
    deletes_after = template.time_til_dormant_autodelete_ms if template else 0
    values: workspace_store.WorkspaceChanges = {"dormant_at": None, "deleting_at": None, "last_used_at": now}
    if dormant:
        deleting_at = now + timedelta(milliseconds=deletes_after) if deletes_after else None
        values = {"dormant_at": now, "deleting_at": deleting_at}
    await edit_workspace(tx, row, "state", **values)
    return True


async def make_dormant(
    tx: Tx, workspace: WorkspaceRow, template: TemplateRow, now: datetime, site: notifications.NotificationSite
) -> None:
    """Mark a workspace dormant after inactivity, and notify its owner."""
    delete_after = template.time_til_dormant_autodelete_ms
    deleting_at = now + timedelta(milliseconds=delete_after) if delete_after else None
    await edit_workspace(tx, workspace, "state", dormant_at=now, deleting_at=deleting_at)
    labels = {
        "name": workspace.name,
        "reason": "inactivity exceeded the dormancy threshold",
        "timeTilDormant": in_words(template.time_til_dormant_ms),
        "dormancyHours": str(delete_after // 3_600_000) if delete_after else "",
    }
    about = (workspace.id, template.id, workspace.owner_id)
    notice = Notification(notification_templates.WORKSPACE_DORMANT, workspace.owner_id, labels, about)
    await notifications.enqueue(tx, site, notice, now)
