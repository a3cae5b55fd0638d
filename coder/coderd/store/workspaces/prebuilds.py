"""Queries on prebuilt workspaces: presets with a desired number, existing ones, and one to claim."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import text

from coder.base.json_types import JsonObject
from coder.coderd.store.site.site_settings import PREBUILDS_USER_ID
from coder.domain.workspaces.prebuilds import Prebuilt

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx

CLAIMED = "prebuild_claimed"
"""Notified with the workspace's id when the claiming build has ended: its agent restarts."""
_OWNER = {"owner": PREBUILDS_USER_ID}


@dataclass(frozen=True, slots=True)
class PrebuildPreset:
    """Preset of an active version that defines prebuilt workspaces."""

    preset_id: UUID
    name: str
    version_id: UUID
    template_id: UUID
    organization_id: UUID
    desired_instances: int | None
    expire_after_seconds: int
    scheduling_timezone: str
    schedules: list[JsonObject]


_WANTING = text(
    """SELECT p.id, p.name, p.template_version_id, t.id, t.organization_id, p.desired_instances,
        p.expire_after_seconds, p.scheduling_timezone, p.schedules
    FROM templates t JOIN template_version_presets p ON p.template_version_id = t.active_version_id
    WHERE NOT t.deleted AND t.deprecated = '' AND (p.desired_instances IS NOT NULL OR p.schedules <> '[]')
    ORDER BY p.id"""
)
# The preset is the first build's: later builds of the same workspace name none.
_EXISTING = text(
    """SELECT w.id, first.template_version_preset_id, w.created_at, b.transition, j.completed_at, j.error,
        j.canceled_at, coalesce(p.invalidated_at >= w.created_at, false)
    FROM workspaces w JOIN workspace_builds b ON b.id = w.latest_build_id
    JOIN provisioner_jobs j ON j.id = b.job_id
    JOIN workspace_builds first ON first.workspace_id = w.id AND first.build_number = 1
    LEFT JOIN template_version_presets p ON p.id = first.template_version_preset_id
    WHERE w.owner_id = :owner AND NOT w.deleted"""
)
_FAILURES = text(
    """SELECT j.error <> '', j.completed_at FROM workspace_builds b JOIN provisioner_jobs j ON j.id = b.job_id
    WHERE b.template_version_preset_id = :preset AND b.build_number = 1 AND b.initiator_id = :owner
        AND j.completed_at IS NOT NULL
    ORDER BY b.created_at DESC, j.completed_at DESC, j.error <> '' DESC LIMIT :most"""
)
"""Builds of one turn have the same creation time: the one that ended last counts, and the failure in case of a tie."""
_CLAIMABLE = text(
    """SELECT w.id FROM workspaces w JOIN workspace_builds b ON b.id = w.latest_build_id
    JOIN provisioner_jobs j ON j.id = b.job_id
    WHERE w.owner_id = :owner AND NOT w.deleted AND b.build_number = 1 AND b.transition = 'start'
        AND b.template_version_preset_id = :preset AND j.completed_at IS NOT NULL AND j.error = ''
        AND j.canceled_at IS NULL
        AND NOT EXISTS (SELECT 1 FROM template_version_presets p
            WHERE p.id = :preset AND p.invalidated_at >= w.created_at)
        AND NOT EXISTS (SELECT 1 FROM workspace_agents a WHERE a.job_id = b.job_id AND NOT a.deleted
            AND a.parent_id IS NULL AND a.lifecycle_state <> 'ready')
    ORDER BY w.created_at LIMIT 1 FOR UPDATE OF w SKIP LOCKED"""
)
_INVALIDATE = text(
    """UPDATE template_version_presets p SET invalidated_at = :now
    FROM template_versions v JOIN templates t ON t.active_version_id = v.id
    WHERE t.id = :template AND p.template_version_id = v.id
        AND (p.desired_instances IS NOT NULL OR p.schedules <> '[]')
    RETURNING t.name, v.name, p.name"""
)
# Unclaimed, or claimed with the first build still running.
_MAY_BE_GIVEN = text(
    """SELECT 1 FROM workspaces w WHERE w.id = :workspace AND NOT w.deleted AND (w.owner_id = :owner OR EXISTS (
        SELECT 1 FROM workspace_builds b JOIN provisioner_jobs j ON j.id = b.job_id
        JOIN workspace_builds before ON before.workspace_id = w.id AND before.build_number = b.build_number - 1
        WHERE b.id = w.latest_build_id AND before.initiator_id = :owner AND j.completed_at IS NULL))"""
)
_LOCK = text("SELECT pg_try_advisory_xact_lock(7307)")


async def lock(tx: Tx) -> bool:
    """Lock the reconciliation; False when another replica holds it. Held until the transaction ends."""
    return bool((await tx.execute(_LOCK)).scalar_one())


async def list_prebuild_presets(tx: Tx) -> list[PrebuildPreset]:
    return [PrebuildPreset(*row) for row in await tx.execute(_WANTING)]


async def list_existing(tx: Tx) -> dict[UUID | None, list[Prebuilt]]:
    """Return unclaimed workspaces by preset. A preset may belong to a version that is no longer active."""
    results: dict[UUID | None, list[Prebuilt]] = {}
    for row in await tx.execute(_EXISTING, _OWNER):
        workspace_id, preset_id, created_at, transition, completed_at, error, canceled_at, outdated = row
        failed = bool(error) or (completed_at is not None and canceled_at is not None)
        result = Prebuilt(
            id=workspace_id,
            created_at=created_at,
            is_running=transition == "start" and completed_at is not None and not failed,
            is_busy=completed_at is None,
            has_failed=failed or transition == "delete",
            is_outdated=outdated,
        )
        results.setdefault(preset_id, []).append(result)
    return results


async def invalidate(tx: Tx, template_id: UUID, now: datetime) -> list[tuple[str, str, str]]:
    """Return (template, version, preset) of each preset of the active version whose workspaces become outdated."""
    result = await tx.execute(_INVALIDATE, {"template": template_id, "now": now})
    return sorted((row[0], row[1], row[2]) for row in result)


async def may_be_claimed(tx: Tx, workspace_id: UUID) -> bool:
    """Return whether the workspace is unclaimed, or its claiming build still runs."""
    return (await tx.execute(_MAY_BE_GIVEN, {**_OWNER, "workspace": workspace_id})).first() is not None


async def count_failures(tx: Tx, preset_id: UUID, limit: int) -> tuple[int, datetime | None]:
    """Return the failed first builds of the preset since the last success, and when the last of them ended."""
    times: list[datetime] = []
    for failed, completed_at in await tx.execute(_FAILURES, {**_OWNER, "preset": preset_id, "most": limit}):
        if not failed:
            break
        times.append(completed_at)
    return len(times), times[0] if times else None


async def lock_claimable(tx: Tx, preset_id: UUID) -> UUID | None:
    """Return the oldest workspace of the preset whose agents are ready, locked."""
    row: UUID | None = (await tx.execute(_CLAIMABLE, {**_OWNER, "preset": preset_id})).scalar_one_or_none()
    return row
