"""Versions that workspaces are offered while a rollout of their template is open."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from coder.coderd.store.templates import rollouts as store
from coder.coderd.store.templates.templates import TemplateRow
from coder.domain.templates.rollouts import offered_version

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx


async def find_offered_version(
    tx: Tx, template: TemplateRow, workspace_id: UUID, owner_id: UUID, current_version_id: UUID | None
) -> UUID:
    """Return the version to which an update brings a workspace of the template."""
    rollout = (await store.list_applying(tx, [template.id])).get(template.id)
    if rollout is None:
        return template.active_version_id
    in_group = await store.is_in_group(tx, rollout.group_id, owner_id)
    return offered_version(
        template.active_version_id, rollout.offer, workspace_id, current_version_id, in_group=in_group
    )
