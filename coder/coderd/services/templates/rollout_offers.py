"""Versions that workspaces are offered: the active ones, or those of open rollouts."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING
from uuid import UUID

from coder.coderd.store.site.site_settings import PREBUILDS_USER_ID
from coder.coderd.store.templates import rollouts as store
from coder.coderd.store.templates.rollouts import CurrentVersion, RolloutRow
from coder.coderd.store.templates.templates import TemplateRow
from coder.domain.templates.rollouts import offered_version

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx


async def find_offered_version(
    tx: Tx, template: TemplateRow, workspace_id: UUID, owner_id: UUID, current_version_id: UUID | None
) -> UUID:
    """Return the version to which an update brings a workspace of the template."""
    current = CurrentVersion(workspace_id, template.id, owner_id, template.active_version_id, current_version_id)
    ((_, offered, _),) = await find_offers(tx, [current])
    return offered


async def find_offers(
    tx: Tx, workspaces: Collection[CurrentVersion]
) -> list[tuple[CurrentVersion, UUID, RolloutRow | None]]:
    """Return each workspace with the version that it is offered, and the open rollout of its template."""
    applying = await store.list_applying(tx, {item.template_id for item in workspaces})
    members = {
        rollout.id: await store.list_members(tx, rollout.group_id)
        for rollout in applying.values()
        if rollout.group_id is not None
    }
    results = []
    for item in workspaces:
        rollout = applying.get(item.template_id)
        # Unclaimed prebuilt workspaces always have the active version.
        offer = rollout.offer if rollout is not None and item.owner_id != PREBUILDS_USER_ID else None
        in_group = rollout is not None and item.owner_id in members.get(rollout.id, ())
        offered = offered_version(item.active_version_id, offer, item.id, item.version_id, in_group=in_group)
        results.append((item, offered, rollout))
    return results
