"""Prebuilt workspaces: made ahead for presets, and given to the first who asks for the same.

They belong to a system user until somebody claims them. A claim changes the owner and builds once more, with the agents
that run already. How many there should be is `domain/workspaces/prebuilds.py`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import Refusal
from coder.api.templates.parameters import InvalidatedPreset
from coder.api.workspaces.workspace_requests import PrebuildsSettings
from coder.base.ids import new_uuid
from coder.coderd.services.access.authorization import require
from coder.coderd.services.access.workspace_access import load_template, lock_template
from coder.coderd.services.foundation.isolated_items import one_by_one
from coder.coderd.services.notifications import prebuild_notifications
from coder.coderd.services.notifications.notifications import NotificationSite, enqueue, site_of
from coder.coderd.services.people import quotas
from coder.coderd.services.workspaces.build_metrics import EnqueuedBuild
from coder.coderd.services.workspaces.build_parameters import BuildTarget, Prepare, run_with_values
from coder.coderd.services.workspaces.build_requests import BuildRequest, BuildRules, enqueue_build
from coder.coderd.store.access.keys import notify_shared_less
from coder.coderd.store.notifications import notification_marks
from coder.coderd.store.site import site_settings
from coder.coderd.store.site.site_settings import PREBUILDS_USER_ID
from coder.coderd.store.templates import templates as template_store
from coder.coderd.store.workspaces import port_shares
from coder.coderd.store.workspaces import prebuilds as store
from coder.coderd.store.workspaces import workspaces as workspace_store
from coder.coderd.store.workspaces.change_feed import notify_change
from coder.coderd.store.workspaces.prebuilds import Wanting
from coder.coderd.store.workspaces.workspaces import WorkspaceRow
from coder.domain.access.policy import SYSTEM, Resource, Subject
from coder.domain.notifications.notification_templates import PREBUILD_FAILURE_LIMIT
from coder.domain.workspaces.prebuilds import Failures, desired_instances, plan

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

_SETTINGS = "prebuilds_settings"
_PRIORITY = 1
_COUNTED = 10
"""Failures that are looked at for the wait between tries."""


@dataclass(frozen=True, slots=True)
class Reconciled:
    created: int = 0
    deleted: int = 0


async def is_paused(tx: Tx) -> bool:
    stored = await site_settings.get_config(tx, _SETTINGS)
    return bool(stored and json.loads(stored).get("reconciliation_paused"))


async def settings(ctx: Context, subject: Subject) -> PrebuildsSettings:
    """Whether prebuilds rest. Raises Forbidden."""
    require(subject, "read", Resource("deployment_config"), hidden=False)
    return PrebuildsSettings(reconciliation_paused=await ctx.db.read(is_paused))


async def set_paused(ctx: Context, subject: Subject, paused: bool) -> bool:
    """False when it was so already. Raises Forbidden."""
    require(subject, "update", Resource("deployment_config"), hidden=False)

    async def write(tx: Tx) -> bool:
        if await is_paused(tx) == paused:
            return False
        await site_settings.put_config(tx, _SETTINGS, json.dumps({"reconciliation_paused": paused}))
        return True

    return await ctx.db.run(write)


async def invalidate(ctx: Context, subject: Subject, template_id: UUID) -> list[InvalidatedPreset]:
    """Has every waiting workspace of the template's presets replaced; none of them is claimed. Raises NotFound."""
    await load_template(ctx, subject, template_id, "update")
    now = ctx.clock.now()

    async def write(tx: Tx) -> list[tuple[str, str, str]]:
        await lock_template(tx, subject, template_id)
        return await store.invalidate(tx, template_id, now)

    found = await ctx.db.run(write)
    return [InvalidatedPreset(template, version, preset) for template, version, preset in found]


async def reconcile(ctx: Context) -> Reconciled:
    """One turn: every preset gets the workspaces it should have."""
    now = ctx.clock.now()
    if await ctx.db.read(is_paused):
        return Reconciled()
    wanting = await ctx.db.read(store.list_wanting)
    existing = await ctx.db.read(store.list_existing)
    left_over = [one.id for key in existing.keys() - {one.preset_id for one in wanting} for one in existing[key]]

    async def fill(one: Wanting) -> Reconciled:
        created, deleted = await run_with_values(ctx, partial(_run_reconcile, ctx, one, now))
        _count(ctx, [*created, *deleted])
        return Reconciled(len(created), len(deleted))

    async def leave(workspace_id: UUID) -> Reconciled:
        gone = await ctx.db.run(_delete, workspace_id, now)
        _count(ctx, gone)
        return Reconciled(deleted=len(gone))

    done = [
        *await one_by_one(ctx.log, "no workspace was prebuilt", wanting, fill, lambda one: {"preset": one.preset_id}),
        # Those of versions that are active no more.
        *await one_by_one(
            ctx.log, "a prebuilt workspace was not deleted", left_over, leave, lambda found: {"workspace": found}
        ),
    ]
    return Reconciled(sum(one.created for one in done), sum(one.deleted for one in done))


def _count(ctx: Context, builds: Sequence[EnqueuedBuild]) -> None:
    for build in builds:
        build.count(ctx)


async def _run_reconcile(
    ctx: Context, one: Wanting, now: datetime, prepare: Prepare
) -> tuple[list[EnqueuedBuild], list[EnqueuedBuild]]:
    config = ctx.config
    rules = Failures(
        limit=config.workspace_prebuilds_failure_hard_limit,
        backoff=config.workspace_prebuilds_reconciliation_backoff_interval,
        lookback=config.workspace_prebuilds_reconciliation_backoff_lookback_period,
    )
    return await ctx.db.run(_reconcile, one, now, prepare, rules, site_of(ctx))


async def _reconcile(
    tx: Tx, one: Wanting, now: datetime, prepare: Prepare, rules: Failures, site: NotificationSite
) -> tuple[list[EnqueuedBuild], list[EnqueuedBuild]]:
    """Builds that create, and builds that delete."""
    if not await store.lock(tx):
        return [], []
    mine = (await store.list_existing(tx)).get(one.preset_id, [])
    wanted = desired_instances(one.desired_instances, one.schedules, one.scheduling_timezone, now)
    count, last_at = await store.count_failures(tx, one.preset_id, max(rules.limit, _COUNTED))
    failures = replace(rules, count=count, last_at=last_at)
    if failures.at_limit and wanted:
        await _tell_limit(tx, one, now, site)
    steps = plan(mine, wanted, now, expire_after_seconds=one.expire_after_seconds, failures=failures)
    created = [build for _ in range(steps.create) for build in await _create(tx, one, now, prepare)]
    deleted = [build for workspace_id in steps.delete for build in await _delete(tx, workspace_id, now)]
    return created, deleted


async def _tell_limit(tx: Tx, one: Wanting, now: datetime, site: NotificationSite) -> None:
    if await notification_marks.mark(tx, PREBUILD_FAILURE_LIMIT, one.preset_id, "limit", now):
        for notice in await prebuild_notifications.of_failures(tx, one):
            await enqueue(tx, site, notice, now)


async def _create(tx: Tx, one: Wanting, now: datetime, prepare: Prepare) -> list[EnqueuedBuild]:
    template = await template_store.get_template(tx, one.template_id, hold=True)
    if template is None or template.deleted:
        return []
    workspace_id = new_uuid()
    workspace = WorkspaceRow(
        id=workspace_id,
        created_at=now,
        updated_at=now,
        owner_id=PREBUILDS_USER_ID,
        organization_id=one.organization_id,
        template_id=one.template_id,
        name=f"prebuild-{workspace_id.hex[-12:]}",
        deleted=False,
        autostart_schedule=None,
        ttl_ms=None,
        last_used_at=now,
        dormant_at=None,
        deleting_at=None,
        next_start_at=None,
        automatic_updates="never",
        favorite=False,
        user_acl={},
        group_acl={},
        latest_build_id=None,
    )
    await workspace_store.insert_workspace(tx, workspace)
    request = BuildRequest(
        transition="start",
        initiator_id=PREBUILDS_USER_ID,
        version_id=one.version_id,
        preset_id=one.preset_id,
        priority=_PRIORITY,
    )
    request = prepare(request, BuildTarget(PREBUILDS_USER_ID, one.template_id))
    await enqueue_build(tx, SYSTEM, workspace, template, request, BuildRules(), now)
    return [EnqueuedBuild(request, template.provisioner)]


async def _delete(tx: Tx, workspace_id: UUID, now: datetime) -> list[EnqueuedBuild]:
    """The build, or none: it was claimed meanwhile, or is being built."""
    workspace = await workspace_store.get_workspace(tx, workspace_id, lock=True)
    if workspace is None or workspace.deleted or workspace.owner_id != PREBUILDS_USER_ID:
        return []
    template = await template_store.get_template(tx, workspace.template_id)
    if template is None:
        return []
    request = BuildRequest("delete", PREBUILDS_USER_ID, ephemeral=frozenset(), priority=_PRIORITY)
    try:
        await enqueue_build(tx, SYSTEM, workspace, template, request, BuildRules(), now)
    except Refusal:  # a build of it is under way: the next turn looks again
        return []
    return [EnqueuedBuild(request, template.provisioner)]


async def claim(tx: Tx, wanted: WorkspaceRow, preset_id: UUID | None) -> WorkspaceRow | None:
    """A prebuilt workspace of the preset, now `wanted`'s in everything but id and age. None: there is none ready, or
    its new owner's quota is too small for it; it runs already, and no later refusal would stop it.

    The caller builds it: that is its second build, and its first as theirs.
    """
    if preset_id is None:
        return None
    workspace_id = await store.lock_claimable(tx, preset_id)
    before = await workspace_store.get_workspace(tx, workspace_id) if workspace_id else None
    if before is None or workspace_id is None or not await quotas.affords(tx, before, wanted.owner_id):
        return None
    changes: workspace_store.WorkspaceChanges = {
        "owner_id": wanted.owner_id,
        "name": wanted.name,
        "autostart_schedule": wanted.autostart_schedule,
        "next_start_at": wanted.next_start_at,
        "ttl_ms": wanted.ttl_ms,
        "automatic_updates": wanted.automatic_updates,
        "last_used_at": wanted.last_used_at,
        "updated_at": wanted.updated_at,
        "created_at": wanted.created_at,
        # Whoever administers could have let themselves in before it was given away.
        "favorite": wanted.favorite,
        "user_acl": wanted.user_acl,
        "group_acl": wanted.group_acl,
        "dormant_at": wanted.dormant_at,
        "deleting_at": wanted.deleting_at,
    }
    await workspace_store.update_workspace(tx, workspace_id, **changes)
    await port_shares.delete_port_shares(tx, workspace_id)
    await notify_shared_less(tx)
    await notify_change(tx, "state", owner_id=PREBUILDS_USER_ID, workspace_id=workspace_id)
    return await workspace_store.get_workspace(tx, workspace_id)
