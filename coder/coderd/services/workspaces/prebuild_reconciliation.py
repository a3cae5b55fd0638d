"""Reconciling prebuilt workspaces: every preset gets the number it should have.

`domain/workspaces/prebuilds.py` decides the number; `prebuild_builds.py` creates and deletes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from coder.coderd.services.foundation.isolated_items import process_items
from coder.coderd.services.notifications import prebuild_notifications
from coder.coderd.services.notifications.notifications import NotificationSite, enqueue, site_of
from coder.coderd.services.workspaces.builds.build_metrics import EnqueuedBuild
from coder.coderd.services.workspaces.builds.build_parameters import Prepare, run_with_values
from coder.coderd.services.workspaces.prebuild_builds import create_prebuild, delete_prebuild
from coder.coderd.services.workspaces.prebuilds import is_paused
from coder.coderd.store.notifications import notification_marks
from coder.coderd.store.workspaces import prebuilds as store
from coder.coderd.store.workspaces.prebuilds import PrebuildPreset
from coder.domain.notifications.notification_templates import PREBUILD_FAILURE_LIMIT
from coder.domain.workspaces.prebuilds import Failures, desired_instances, plan

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

_FAILURES_READ = 10
"""Failures that count for the backoff between attempts."""


@dataclass(frozen=True, slots=True)
class Reconciled:
    """Numbers of builds that a reconciliation queued."""

    created: int = 0
    deleted: int = 0


async def reconcile(ctx: Context) -> Reconciled:
    """Reconcile all presets once."""
    now = ctx.clock.now()
    if await ctx.db.read(is_paused):
        return Reconciled()
    presets = await ctx.db.read(store.list_prebuild_presets)
    existing = await ctx.db.read(store.list_existing)
    leftovers = [row.id for key in existing.keys() - {preset.preset_id for preset in presets} for row in existing[key]]

    async def reconcile_preset(preset: PrebuildPreset) -> Reconciled:
        created, deleted = await run_with_values(ctx, partial(_run_reconcile, ctx, preset, now))
        _count(ctx, [*created, *deleted])
        return Reconciled(len(created), len(deleted))

    async def delete_leftover(workspace_id: UUID) -> Reconciled:
        builds = await ctx.db.run(delete_prebuild, workspace_id, now)
        _count(ctx, builds)
        return Reconciled(deleted=len(builds))

    results = [
        *await process_items(
            ctx.log,
            "prebuilt workspaces of a preset could not be reconciled",
            presets,
            reconcile_preset,
            lambda preset: {"preset": preset.preset_id},
        ),
        # Workspaces of versions that are no longer active.
        *await process_items(
            ctx.log, "a prebuilt workspace was not deleted", leftovers, delete_leftover, lambda key: {"workspace": key}
        ),
    ]
    return Reconciled(sum(result.created for result in results), sum(result.deleted for result in results))


def _count(ctx: Context, builds: Sequence[EnqueuedBuild]) -> None:
    for build in builds:
        build.count(ctx)


async def _run_reconcile(
    ctx: Context, preset: PrebuildPreset, now: datetime, prepare: Prepare
) -> tuple[list[EnqueuedBuild], list[EnqueuedBuild]]:
    config = ctx.config
    rules = Failures(
        limit=config.workspace_prebuilds_failure_hard_limit,
        backoff=config.workspace_prebuilds_reconciliation_backoff_interval,
        lookback=config.workspace_prebuilds_reconciliation_backoff_lookback_period,
    )
    return await ctx.db.run(_reconcile, preset, now, prepare, rules, site_of(ctx))


async def _reconcile(
    tx: Tx, preset: PrebuildPreset, now: datetime, prepare: Prepare, rules: Failures, site: NotificationSite
) -> tuple[list[EnqueuedBuild], list[EnqueuedBuild]]:
    """Reconcile one preset; return the builds that create and the builds that delete."""
    if not await store.lock(tx):
        return [], []
    existing = (await store.list_existing(tx)).get(preset.preset_id, [])
    desired = desired_instances(preset.desired_instances, preset.schedules, preset.scheduling_timezone, now)
    count, last_at = await store.count_failures(tx, preset.preset_id, max(rules.limit, _FAILURES_READ))
    failures = replace(rules, count=count, last_at=last_at)
    if failures.at_limit and desired:
        await _notify_limit(tx, preset, now, site)
    steps = plan(existing, desired, now, expire_after_seconds=preset.expire_after_seconds, failures=failures)
    created = [build for _ in range(steps.create) for build in await create_prebuild(tx, preset, now, prepare)]
    deleted = [build for workspace_id in steps.delete for build in await delete_prebuild(tx, workspace_id, now)]
    return created, deleted


async def _notify_limit(tx: Tx, preset: PrebuildPreset, now: datetime, site: NotificationSite) -> None:
    if await notification_marks.mark(tx, PREBUILD_FAILURE_LIMIT, preset.preset_id, "limit", now):
        for notice in await prebuild_notifications.failure_notifications(tx, preset):
            await enqueue(tx, site, notice, now)
