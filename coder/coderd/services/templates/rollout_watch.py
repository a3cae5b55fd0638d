"""Watcher of rollouts: stops those whose builds fail too often or that reach no workspace, and ends those that a change
elsewhere made void.

A stop notifies the user who started the rollout and the template's author, unless they left the
organization.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from coder.coderd.services.audit import audit
from coder.coderd.services.audit.audit import AuditEvent, Origin
from coder.coderd.services.foundation.isolated_items import process_items
from coder.coderd.services.notifications.notifications import Notification, enqueue, site_of
from coder.coderd.services.notifications.prebuild_notifications import TEMPLATE_ADMINS
from coder.coderd.services.templates.rollout_endings import end_void_rollout
from coder.coderd.store.audit import audit as audit_store
from coder.coderd.store.notifications import notifications as notification_store
from coder.coderd.store.people import organizations, system_organizations
from coder.coderd.store.templates import rollouts as store
from coder.coderd.store.templates import system_template_versions, system_templates
from coder.coderd.store.templates import templates as template_store
from coder.coderd.store.templates.rollouts import RolloutRow
from coder.coderd.store.workspaces.change_feed import notify_changes
from coder.domain.notifications.own_templates import ROLLOUT_STOPPED
from coder.domain.provisioning.jobs import ACTIVE
from coder.domain.templates.rollouts import BuildCounts, exceeds_limit, is_member, reaches_nobody

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.services.notifications.notifications import NotificationSite
    from coder.coderd.store.engine.database import Tx
    from coder.coderd.store.templates.templates import TemplateRow


_GROUP_DELETED = "The group was deleted."
"Of a group that a server of an earlier version deleted."


async def watch_rollouts(ctx: Context) -> list[UUID]:
    """Check each open rollout once; return the templates whose rollout was stopped or ended."""

    async def check(template_id: UUID) -> UUID | None:
        return template_id if await ctx.db.run(_check, template_id, ctx.clock.now(), site) else None

    site = site_of(ctx)
    templates = await ctx.db.read(store.list_open_templates)
    return await process_items(
        ctx.log, "a rollout could not be checked", templates, check, lambda template_id: {"template": template_id}
    )


async def _check(tx: Tx, template_id: UUID, now: datetime, site: NotificationSite) -> bool:
    """Check the template's rollout under the template's lock, which every other change takes; return any change."""
    template = await system_templates.get_template(tx, template_id, lock=True)
    if template is None:
        return False
    before = await audit_store.take_snapshot(tx, "template", template_id)
    rollout = await end_void_rollout(tx, template, now)
    if rollout is not None:
        counts = await count_builds(tx, rollout)
        reason = _reason_to_stop(rollout, counts)
        if not reason:
            return False
        message = f"Stopped automatically: {reason}."
        await store.update_rollout(tx, rollout.id, status="stopped", message=message, updated_at=now)
        for notice in await _notices(tx, template, rollout, reason):
            await enqueue(tx, site, notice, now)
    after = await audit_store.take_snapshot(tx, "template", template_id)
    if before == after:
        return False  # ended by another replica meanwhile
    await audit.write(tx, AuditEvent("template", "write", Origin(), 200, before, after), now)
    await notify_changes(tx, "settings", await template_store.list_workspace_places(tx, template_id))
    return True


def _reason_to_stop(rollout: RolloutRow, counts: BuildCounts) -> str:
    """Return why the rollout must not go on, as a part of a sentence; empty if it may."""
    if rollout.status != "running":
        return ""
    if reaches_nobody(rollout.percent, has_group=rollout.group_id is not None):
        return f"it reaches no workspace. {rollout.message or _GROUP_DELETED}".rstrip(".")
    if exceeds_limit(counts, rollout.failure_percent, rollout.minimum_builds):
        return f"{counts.failed} of {counts.finished} builds failed (limit {rollout.failure_percent} percent)"
    return ""


async def _notices(tx: Tx, template: TemplateRow, rollout: RolloutRow, reason: str) -> list[Notification]:
    """Return a notification for each recipient, without those who left the organization since."""
    version = await system_template_versions.get_version(tx, rollout.template_version_id)
    organization = await system_organizations.get_organization(tx, template.organization_id)
    labels = {
        "template": template.name,
        "template_version": version.name if version else "",
        "org": organization.name if organization else "",
        "percent": str(rollout.percent),
        "reason": reason,
    }
    about = (template.id, template.organization_id)
    admins = await notification_store.list_admins(tx, TEMPLATE_ADMINS, template.organization_id)
    return [
        Notification(ROLLOUT_STOPPED, user_id, labels, about)
        for user_id in dict.fromkeys((rollout.created_by, template.created_by))
        if user_id in admins or await organizations.is_active_member(tx, template.organization_id, user_id)
    ]


async def count_builds(tx: Tx, rollout: RolloutRow) -> BuildCounts:
    """Count the starts with the rollout's version in workspaces that belong to its current stage."""
    offer = rollout.offer
    statuses = [
        build.status
        for build in await store.list_builds(tx, rollout)
        if is_member(offer, build.workspace_id, in_group=build.in_group)
    ]
    return BuildCounts(
        succeeded=statuses.count("succeeded"),
        failed=statuses.count("failed"),
        unfinished=sum(status in ACTIVE for status in statuses),
    )
