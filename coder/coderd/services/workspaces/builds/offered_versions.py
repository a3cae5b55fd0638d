"""Versions that updates of workspaces would bring, while rollouts of their templates are open."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.templates.rollouts import OfferedVersion
from coder.coderd.services.access.authorization import may
from coder.coderd.services.access.workspace_access import workspace_resource
from coder.coderd.store.templates import rollouts as store
from coder.coderd.store.templates import system_template_versions
from coder.coderd.store.templates.rollouts import RolloutRow
from coder.coderd.store.workspaces import workspaces as workspace_store
from coder.domain.access.policy import Subject
from coder.domain.templates.rollouts import offered_version

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx


async def list_offered_versions(
    ctx: Context, subject: Subject, workspace_ids: Collection[UUID]
) -> list[OfferedVersion]:
    """Return the offers of those workspaces that the caller may read and whose template has an open rollout."""
    rows = await ctx.db.read(workspace_store.list_with_owners, list(workspace_ids))
    readable: dict[UUID, set[UUID]] = {}
    for row, _ in rows:
        if may(subject, "read", workspace_resource(row)):
            readable.setdefault(row.template_id, set()).add(row.id)
    return await ctx.db.read(_list, readable) if readable else []


async def _list(tx: Tx, workspace_ids: dict[UUID, set[UUID]]) -> list[OfferedVersion]:
    """Return the offers of workspaces, given by their templates. Their reader was checked."""
    applying = await store.list_applying(tx, workspace_ids.keys())
    return [
        offer
        for template_id, rollout in applying.items()
        for offer in await _of_rollout(tx, rollout, workspace_ids[template_id])
    ]


async def _of_rollout(tx: Tx, rollout: RolloutRow, workspace_ids: set[UUID]) -> list[OfferedVersion]:
    versions = (rollout.template_version_id, rollout.former_version_id)
    names = {key: row.name for key, row in (await system_template_versions.get_versions(tx, versions)).items()}
    results = []
    for item in await store.list_workspaces(tx, rollout, workspace_ids):
        offered = offered_version(
            rollout.former_version_id, rollout.offer, item.id, item.version_id, in_group=item.in_group
        )
        results.append(
            OfferedVersion(
                workspace_id=item.id,
                template_version_id=offered,
                template_version_name=names.get(offered, ""),
                rollout_id=rollout.id,
                is_staged=offered == rollout.template_version_id,
                outdated=offered != item.version_id,
            )
        )
    return results
