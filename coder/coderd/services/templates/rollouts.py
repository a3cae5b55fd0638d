"""Staged rollouts of a template's version: start, progress, and the steps of an administrator.

`coder/domain/templates/rollouts.py` has the rules, `rollout_watch.py` stops a rollout whose builds fail.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from msgspec import UNSET

from coder.api.base.refusals import Conflict, Invalid, InvalidFields, NotFound
from coder.api.templates.rollouts import (
    CreateTemplateRollout,
    TemplateRollout,
    TemplateRolloutProgress,
    UpdateTemplateRollout,
)
from coder.base.ids import new_uuid
from coder.coderd.services.access.workspace_access import load_template, lock_template
from coder.coderd.services.people.groups import load_group
from coder.coderd.services.templates.rollout_endings import end_void_rollout
from coder.coderd.services.templates.rollout_watch import count_builds
from coder.coderd.services.templates.template_changes import check_promotion, promote
from coder.coderd.store.templates import rollouts as store
from coder.coderd.store.templates import templates as template_store
from coder.coderd.store.templates.rollouts import RolloutChanges, RolloutRow, RolloutView
from coder.coderd.store.templates.templates import TemplateRow
from coder.coderd.store.workspaces.change_feed import notify_changes
from coder.domain.access.policy import Subject
from coder.domain.templates import rollouts as rules

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

_SHOWN = 20
"""Rollouts in the list of a template."""
_NOT_OPEN = "The template has no such rollout that is running or stopped."


async def list_rollouts(ctx: Context, subject: Subject, template_id: UUID) -> list[TemplateRollout]:
    """Return the latest rollouts of a template, the latest first. Raises NotFound, Forbidden."""
    template = await load_template(ctx, subject, template_id, "update")
    return await ctx.db.read(_show, template.id)


async def _show(tx: Tx, template_id: UUID) -> list[TemplateRollout]:
    applying = await store.list_applying(tx, [template_id])
    views = await store.list_views(tx, template_id, _SHOWN)
    return [
        _present(view, await _progress(tx, view.rollout) if template_id in applying else None)
        if view.rollout.status in rules.OPEN
        else _present(view, None)
        for view in views
    ]


async def _progress(tx: Tx, rollout: RolloutRow) -> TemplateRolloutProgress:
    items, counts = await store.list_workspaces(tx, rollout), await count_builds(tx, rollout)
    has_it = [item for item in items if item.version_id == rollout.template_version_id]
    reached = {item.id for item in has_it}
    if rollout.status == "running":
        offer = rollout.offer
        reached |= {item.id for item in items if rules.is_member(offer, item.id, in_group=item.in_group)}
    return TemplateRolloutProgress(
        workspaces=len(items),
        offered=len(reached),
        updated=sum(item.has_succeeded for item in has_it),
        builds_succeeded=counts.succeeded,
        builds_failed=counts.failed,
        builds_unfinished=counts.unfinished,
        failure_percent=round(counts.failed * 100 / counts.finished, 1) if counts.finished else None,
    )


def _present(view: RolloutView, progress: TemplateRolloutProgress | None) -> TemplateRollout:
    row = view.rollout
    return TemplateRollout(
        id=row.id,
        template_id=row.template_id,
        template_version_id=row.template_version_id,
        template_version_name=view.version_name,
        former_version_id=row.former_version_id,
        former_version_name=view.former_version_name,
        group_id=row.group_id,
        group_name=view.group_name,
        stages=list(row.stages),
        percent=row.percent,
        status=row.status,
        message=row.message,
        failure_percent=row.failure_percent,
        minimum_builds=row.minimum_builds,
        created_by_name=view.created_by_name,
        created_at=row.created_at,
        updated_at=row.updated_at,
        stage_started_at=row.stage_started_at,
        ended_at=row.ended_at,
        progress=progress,
    )


async def start_rollout(
    ctx: Context, subject: Subject, template_id: UUID, body: CreateTemplateRollout
) -> TemplateRollout:
    """Start a rollout at its first stage.

    Raises InvalidFields, Invalid, Conflict (one is open), Forbidden (also for a failed import), NotFound.
    """
    template = await load_template(ctx, subject, template_id, "update")
    await _check_group(ctx, subject, template, body.group_id or None)
    rollout = _new_rollout(subject, template, body, ctx.clock.now())
    await ctx.db.run(_start, subject, rollout)
    return await _show_one(ctx, template.id, rollout.id)


async def _check_group(ctx: Context, subject: Subject, template: TemplateRow, group_id: UUID | None) -> None:
    if group_id is None:
        return
    group = await load_group(ctx, subject, group_id)
    if group.organization_id != template.organization_id:
        raise InvalidFields(("group_id", "The group belongs to another organization."))
    if group.is_everyone:
        raise InvalidFields(("group_id", "The group contains all users. Choose a percentage instead."))


def _new_rollout(subject: Subject, template: TemplateRow, body: CreateTemplateRollout, now: datetime) -> RolloutRow:
    """Return the requested rollout. Raises InvalidFields."""
    group_id = body.group_id or None
    defaults = rules.DEFAULT_STAGES if group_id is None else rules.DEFAULT_GROUP_STAGES
    stages = list(defaults) if body.stages is UNSET else body.stages
    failures = rules.DEFAULT_FAILURE_PERCENT if body.failure_percent is UNSET else body.failure_percent
    builds = rules.DEFAULT_MINIMUM_BUILDS if body.minimum_builds is UNSET else body.minimum_builds
    no_failures, no_builds = rules.explain_limits(failures, builds)
    faults = (
        ("stages", rules.explain_stages(stages, has_group=group_id is not None)),
        ("failure_percent", no_failures),
        ("minimum_builds", no_builds),
    )
    if any(fault for _, fault in faults):
        raise InvalidFields(*((name, fault) for name, fault in faults if fault))
    return RolloutRow(
        id=new_uuid(),
        template_id=template.id,
        template_version_id=body.template_version_id,
        former_version_id=template.active_version_id,
        group_id=group_id,
        stages=stages,
        percent=stages[0],
        status="running",
        message="",
        failure_percent=failures,
        minimum_builds=builds,
        created_by=subject.user_id,
        created_at=now,
        updated_at=now,
        stage_started_at=now,
        ended_at=None,
    )


async def _start(tx: Tx, subject: Subject, rollout: RolloutRow) -> None:
    template = await lock_template(tx, subject, rollout.template_id)
    await check_promotion(tx, subject, template, rollout.template_version_id)
    if rollout.template_version_id == template.active_version_id:
        raise Invalid("The version is the active one already.")
    if await end_void_rollout(tx, template, rollout.created_at) is not None:
        raise Conflict("The template has a rollout already.", "Complete it or roll it back before you start another.")
    if rollout.group_id is not None and not await store.hold_group(tx, rollout.group_id):
        raise NotFound
    await store.insert_rollout(tx, replace(rollout, former_version_id=template.active_version_id))
    await _notify(tx, template.id)


async def change_rollout(
    ctx: Context, subject: Subject, template_id: UUID, body: UpdateTemplateRollout
) -> TemplateRollout:
    """Advance, stop, resume or roll back the open rollout.

    Raises NotFound (also if it is no longer open), Conflict (not possible in its present state), Forbidden.
    """
    await load_template(ctx, subject, template_id, "update")
    await ctx.db.run(_change, subject, template_id, body, ctx.clock.now())
    return await _show_one(ctx, template_id, body.rollout_id)


async def _change(tx: Tx, subject: Subject, template_id: UUID, body: UpdateTemplateRollout, now: datetime) -> None:
    template = await lock_template(tx, subject, template_id)
    rollout = await store.find_open(tx, template.id)
    if rollout is None or rollout.id != body.rollout_id:
        raise NotFound(_NOT_OPEN)
    if await end_void_rollout(tx, template, now) is None:
        return  # the answer shows how it ended
    if body.percent is not UNSET and body.percent != rollout.percent:
        raise Conflict(f"The rollout is at {rollout.percent} percent by now.")
    known = "running" if body.status is UNSET and body.action == "next" else body.status
    if known is not UNSET and known != rollout.status:
        raise Conflict(f"The rollout is {rollout.status} by now.", rollout.message)
    changes = _changes(rollout, body, now)
    if changes.get("status") == "completed":
        await check_promotion(tx, subject, template, rollout.template_version_id)
        await promote(tx, template, rollout.template_version_id, now)
    await store.update_rollout(tx, rollout.id, **changes)
    await _notify(tx, template.id)


def _changes(rollout: RolloutRow, body: UpdateTemplateRollout, now: datetime) -> RolloutChanges:
    """Return the columns to set. Raises Conflict."""
    ended: RolloutChanges = {"updated_at": now, "ended_at": now, "message": ""}
    running: RolloutChanges = {"updated_at": now, "status": "running", "message": "", "stage_started_at": now}
    match body.action:
        case "rollback":
            return {**ended, "status": "rolled_back"}
        case "stop":
            if rollout.status == "stopped":
                raise Conflict("The rollout is stopped already.")
            return {"updated_at": now, "status": "stopped", "message": ""}
        case "resume":
            if rollout.status == "running":
                raise Conflict("The rollout is running.")
            if rules.reaches_nobody(rollout.percent, has_group=rollout.group_id is not None):
                raise Conflict("The group of this stage was deleted.", "Go to the next stage, or roll back.")
            return running
        case "next":
            percent = rules.next_percent(rollout.stages, rollout.percent)
            if percent == rules.EVERYBODY:
                return {**ended, "status": "completed", "percent": percent}
            return {**running, "percent": percent}


async def _notify(tx: Tx, template_id: UUID) -> None:
    """Notify the watchers of the template's workspaces: they may be offered another version now."""
    await notify_changes(tx, "settings", await template_store.list_workspace_places(tx, template_id))


async def _show_one(ctx: Context, template_id: UUID, rollout_id: UUID) -> TemplateRollout:
    for item in await ctx.db.read(_show, template_id):
        if item.id == rollout_id:
            return item
    raise NotFound(_NOT_OPEN)
