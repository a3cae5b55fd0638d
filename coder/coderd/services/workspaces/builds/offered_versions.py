"""Versions to which updates would bring workspaces, for clients that follow rollouts."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.templates.rollouts import OfferedVersion
from coder.coderd.services.access.authorization import may
from coder.coderd.services.access.workspace_access import workspace_resource
from coder.coderd.services.templates.rollout_offers import find_offers
from coder.coderd.store.templates import rollouts as store
from coder.coderd.store.templates import system_template_versions
from coder.coderd.store.workspaces import workspaces as workspace_store
from coder.domain.access.policy import Subject

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx


async def list_offered_versions(
    ctx: Context, subject: Subject, workspace_ids: Collection[UUID]
) -> list[OfferedVersion]:
    """Return the offers of those workspaces that the caller may read."""
    rows = await ctx.db.read(workspace_store.list_with_owners, list(workspace_ids))
    readable = [row.id for row, _ in rows if may(subject, "read", workspace_resource(row))]
    return await ctx.db.read(_list, readable) if readable else []


async def _list(tx: Tx, workspace_ids: Collection[UUID]) -> list[OfferedVersion]:
    """Return the offers. The caller's permission to read the workspaces was checked."""
    offers = await find_offers(tx, await store.list_current_versions(tx, workspace_ids))
    names = await system_template_versions.get_versions(tx, {offered for _, offered, _ in offers})
    return [
        OfferedVersion(
            workspace_id=item.id,
            template_version_id=offered,
            template_version_name=names[offered].name if offered in names else "",
            rollout_id=rollout.id if rollout is not None else None,
            is_staged=offered != item.active_version_id,
            outdated=offered != item.version_id,
        )
        for item, offered, rollout in offers
    ]
