"""Notifications to a template's administrators when a user changes a workspace's template version manually."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from coder.coderd.services.notifications import notifications
from coder.coderd.services.notifications.notifications import Notification
from coder.coderd.services.notifications.prebuild_notifications import TEMPLATE_ADMINS
from coder.coderd.store.audit import audit as audit_store
from coder.coderd.store.notifications import notifications as notification_store
from coder.coderd.store.people import system_organizations, system_users
from coder.coderd.store.templates import system_template_versions, system_templates
from coder.domain.notifications.notification_templates import WORKSPACE_MANUALLY_UPDATED

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx


async def workspace_updated(ctx: Context, job_id: UUID) -> None:
    """Notify of a queued start with another version. Never raises: the build must continue."""
    site, now = notifications.site_of(ctx), ctx.clock.now()

    async def write(tx: Tx) -> None:
        for notice in await _notices(tx, job_id):
            await notifications.enqueue(tx, site, notice, now)

    try:
        await ctx.db.run(write)
    except Exception as error:
        ctx.log.error("queueing a notification of an update failed", job=job_id, error=error)


async def _notices(tx: Tx, job_id: UUID) -> list[Notification]:
    facts = await audit_store.get_build_facts(tx, job_id)
    if facts is None:
        return []
    organization = await system_organizations.get_organization(tx, facts.organization_id)
    template = await system_templates.get_template(tx, facts.template_id)
    version = await system_template_versions.get_version(tx, facts.template_version_id)
    initiator = await system_users.get_user(tx, facts.initiator_id)
    labels = {
        "organization": organization.name if organization else "",
        "initiator": initiator.username if initiator else "",
        "workspace": facts.workspace_name,
        "workspace_owner_username": facts.owner_name,
        "template": template.name if template else "",
        "version": version.name if version else "",
    }
    about = (facts.workspace_id, facts.owner_id, facts.template_id, facts.organization_id)
    admins = await notification_store.list_admins(tx, TEMPLATE_ADMINS, facts.organization_id)
    return [
        Notification(WORKSPACE_MANUALLY_UPDATED, admin, labels, about)
        for admin in admins
        if admin != facts.initiator_id
    ]
