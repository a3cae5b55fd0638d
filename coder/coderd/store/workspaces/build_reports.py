"""Queries of the weekly report on failed builds."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import text

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx


@dataclass(frozen=True, slots=True)
class FailedBuilds:
    """Version of a template: the number of its finished builds, and the failed ones."""

    organization_id: UUID
    template_id: UUID
    template: str
    version: str
    total: int
    failed: list[str]
    """`owner/workspace #number`, the latest first."""


_FAILED = text(
    """SELECT t.organization_id, t.id, coalesce(nullif(t.display_name, ''), t.name), v.name, count(*),
        coalesce(array_agg(u.username || '/' || w.name || ' #' || b.build_number ORDER BY b.created_at DESC)
            FILTER (WHERE j.error <> ''), '{}')
    FROM workspace_builds b
    JOIN provisioner_jobs j ON j.id = b.job_id
    JOIN workspaces w ON w.id = b.workspace_id
    JOIN users u ON u.id = w.owner_id
    JOIN templates t ON t.id = w.template_id
    JOIN template_versions v ON v.id = b.template_version_id
    WHERE j.completed_at >= :since AND j.completed_at < :until AND NOT t.deleted
    GROUP BY t.id, v.id
    HAVING bool_or(j.error <> '')
    ORDER BY t.name, v.created_at DESC"""
)


async def list_failed(tx: Tx, since: datetime, until: datetime) -> list[FailedBuilds]:
    return [FailedBuilds(*row) for row in await tx.execute(_FAILED, {"since": since, "until": until})]
