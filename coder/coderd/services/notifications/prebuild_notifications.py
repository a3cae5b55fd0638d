"""Notifications to a template's administrators about prebuilt workspaces.

Reported are builds that keep failing, and resources that a claim replaced, which defeats the purpose of a prebuilt
workspace.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from coder.coderd.services.notifications.notifications import Notification
from coder.coderd.store.notifications import notifications as notification_store
from coder.coderd.store.people import system_organizations
from coder.coderd.store.site.site_settings import PREBUILDS_USER_ID
from coder.coderd.store.templates import system_template_versions, system_templates
from coder.coderd.store.workspaces import system_builds
from coder.domain.notifications.notification_templates import PREBUILD_FAILURE_LIMIT, PREBUILD_RESOURCE_REPLACED

if TYPE_CHECKING:
    from coder.coderd.store.audit.audit import BuildFacts
    from coder.coderd.store.engine.database import Tx
    from coder.coderd.store.workspaces.prebuilds import PrebuildPreset

TEMPLATE_ADMINS = ("owner", "template-admin")
ReplacedPaths = Mapping[str, Sequence[str]]
"""Paths that force a replacement, by resource."""


async def replacement_notifications(tx: Tx, facts: BuildFacts, replaced: ReplacedPaths) -> list[Notification]:
    """Return the notifications of a successful build; none unless it claimed a prebuilt workspace."""
    if not replaced or facts.transition != "start" or facts.owner_id == PREBUILDS_USER_ID:
        return []
    build = await system_builds.get_build(tx, facts.build_id)
    previous = await system_builds.get_previous_build(tx, build) if build else None
    if previous is None or previous.initiator_id != PREBUILDS_USER_ID:
        return []
    labels = await _labels(tx, facts.template_id, facts.template_version_id, facts.organization_id) | {
        "workspace": facts.workspace_name,
        "workspace_build_num": str(facts.build_number),
        "claimant": facts.owner_name,
        "replacements": "; ".join(f"{name} ({', '.join(paths)})" for name, paths in sorted(replaced.items())),
    }
    about = (facts.workspace_id, facts.owner_id, facts.template_id, facts.organization_id)
    admins = await notification_store.list_admins(tx, TEMPLATE_ADMINS, facts.organization_id)
    return [Notification(PREBUILD_RESOURCE_REPLACED, admin, labels, about) for admin in admins]


async def failure_notifications(tx: Tx, preset: PrebuildPreset) -> list[Notification]:
    """Return the notifications of a preset whose prebuilds are suspended."""
    labels = await _labels(tx, preset.template_id, preset.version_id, preset.organization_id) | {"preset": preset.name}
    about: tuple[UUID, ...] = (preset.template_id, preset.organization_id)
    admins = await notification_store.list_admins(tx, TEMPLATE_ADMINS, preset.organization_id)
    return [Notification(PREBUILD_FAILURE_LIMIT, admin, labels, about) for admin in admins]


async def _labels(tx: Tx, template_id: UUID, version_id: UUID, organization_id: UUID) -> dict[str, str]:
    template = await system_templates.get_template(tx, template_id)
    version = await system_template_versions.get_version(tx, version_id)
    organization = await system_organizations.get_organization(tx, organization_id)
    return {
        "template": template.name if template else "",
        "template_version": version.name if version else "",
        "org": organization.name if organization else "",
    }
