"""Steps the server takes by itself: autostop, autostart, stopping what failed, dormancy, deletion; deadlines.

One transaction a workspace: its row is locked, the step decided again and taken. A row somebody else holds is left for
the next turn, so several replicas may do this at once. What is due is `domain/autobuild.py`, when a build has to stop
`domain/autostop.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

from coder.coderd.services import notifications
from coder.coderd.services.build_orders import BuildOrder, Rules, place_build
from coder.coderd.services.build_parameters import Prepare, Target, run_with_values
from coder.coderd.services.errors import Refusal
from coder.coderd.services.notifications import Notice
from coder.coderd.store import autobuilds as store
from coder.coderd.store import builds as build_store
from coder.coderd.store import tasks as task_store
from coder.coderd.store import template_versions as version_store
from coder.coderd.store import templates as template_store
from coder.coderd.store import users as user_store
from coder.coderd.store import workspaces as workspace_store
from coder.coderd.store.changes import notify_change
from coder.coderd.store.templates import TemplateRow
from coder.coderd.store.workspaces import WorkspaceRow
from coder.domain import notice_templates as notices
from coder.domain.autobuild import Step, next_step
from coder.domain.autostop import Deadlines, Requirement, bumped_deadline, deadlines
from coder.domain.policy import SYSTEM
from coder.domain.schedules import ScheduleError, WeeklySchedule, parse_daily
from coder.domain.workspaces import next_start

if TYPE_CHECKING:
    from coder.coderd.services.context import Context
    from coder.coderd.store.database import Tx

DEFAULT_QUIET_HOURS = "CRON_TZ=UTC 0 0 * * *"


@dataclass(frozen=True, slots=True)
class Taken:
    """A step that was taken."""

    workspace_id: UUID
    step: Step


async def take_steps(ctx: Context, now: datetime) -> list[Taken]:
    """One turn. `now` is the full minute; a workspace that cannot be built keeps nobody else waiting."""
    taken: list[Taken] = []
    for workspace_id in await ctx.db.read(store.list_due, now):
        try:
            site = notifications.site_of(ctx)
            step = await run_with_values(ctx, partial(_run_step, ctx, workspace_id, now, site))
        except Refusal as refusal:
            ctx.log.warn("a workspace was not built by itself", workspace=workspace_id, reason=refusal.message)
            continue
        if step is not None:
            taken.append(Taken(workspace_id, step))
    if any(done.step.transition for done in taken):
        ctx.wake_provisioners()
    return taken


async def _run_step(
    ctx: Context, workspace_id: UUID, tick: datetime, site: notifications.Site, prepare: Prepare
) -> Step | None:
    return await ctx.db.run(_take_step, workspace_id, tick, ctx.clock.now(), site, prepare)


async def _take_step(
    tx: Tx, workspace_id: UUID, tick: datetime, now: datetime, site: notifications.Site, prepare: Prepare
) -> Step | None:
    found = await store.lock_candidate(tx, workspace_id)
    if found is None:
        return None
    workspace, candidate = found
    step = next_step(candidate, tick)
    template = await template_store.get_template(tx, workspace.template_id)
    if step is None or template is None:
        return None
    if step.transition is not None:
        await _build(tx, workspace, template, step, now, site, prepare)
    if step.falls_asleep:
        await _fall_asleep(tx, workspace, template, now, site)
    return step


async def _build(
    tx: Tx,
    workspace: WorkspaceRow,
    template: TemplateRow,
    step: Step,
    now: datetime,
    site: notifications.Site,
    prepare: Prepare,
) -> None:
    order = BuildOrder(
        transition=str(step.transition),
        initiator_id=workspace.owner_id,
        version_id=await _version(tx, workspace, template, step),
        reason=await _reason(tx, workspace, step),
    )
    order = prepare(order, Target(workspace.owner_id, template.id, workspace.id))
    await place_build(tx, SYSTEM, workspace, template, order, Rules(), now)
    if order.version_id is not None:
        version = await version_store.get_version(tx, order.version_id)
        labels = {
            "name": workspace.name,
            "template_version_name": version.name if version else "",
            "template_version_message": version.message if version else "",
        }
        about = (workspace.id, workspace.owner_id, template.id)
        notice = Notice(notices.WORKSPACE_AUTO_UPDATED, workspace.owner_id, labels, about)
        await notifications.enqueue(tx, site, notice, now)


async def _reason(tx: Tx, workspace: WorkspaceRow, step: Step) -> str:
    """A task's workspace does not stop: its task pauses."""
    if step.reason == "autostop" and await task_store.get_task_of(tx, workspace.id) is not None:
        return "task_auto_pause"
    return step.reason


async def _version(tx: Tx, workspace: WorkspaceRow, template: TemplateRow, step: Step) -> UUID | None:
    """A start takes the active version where the owner or the template wants it; None keeps the last build's."""
    if step.transition != "start" or not (workspace.automatic_updates == "always" or template.require_active_version):
        return None
    last = await build_store.get_latest_build(tx, workspace.id)
    return None if last and last.template_version_id == template.active_version_id else template.active_version_id


async def _fall_asleep(
    tx: Tx, workspace: WorkspaceRow, template: TemplateRow, now: datetime, site: notifications.Site
) -> None:
    delete_after = template.time_til_dormant_autodelete_ms
    values: dict[str, Any] = {
        "dormant_at": now,
        "deleting_at": now + timedelta(milliseconds=delete_after) if delete_after else None,
    }
    await workspace_store.update_workspace(tx, workspace.id, **values)
    labels = {
        "name": workspace.name,
        "reason": "inactivity exceeded the dormancy threshold",
        "timeTilDormant": _in_words(template.time_til_dormant_ms),
        "dormancyHours": str(delete_after // 3_600_000),
    }
    about = (workspace.id, template.id, workspace.owner_id)
    notice = Notice(notices.WORKSPACE_DORMANT, workspace.owner_id, labels, about)
    await notifications.enqueue(tx, site, notice, now)
    await notify_change(tx, "state", owner_id=workspace.owner_id, workspace_id=workspace.id)


def _in_words(milliseconds: int) -> str:
    days, hours = divmod(milliseconds // 3_600_000, 24)
    return f"{days} days" if days > 1 and not hours else f"{milliseconds // 3_600_000} hours"


# ---- deadlines


def quiet_hours(chosen: str, default: str) -> WeeklySchedule:
    """A user's quiet hours, or the deployment's."""
    for text in (chosen, default, DEFAULT_QUIET_HOURS):
        if text:
            try:
                return parse_daily(text)
            except ScheduleError:  # a zone this machine no longer knows: the next best counts
                continue
    raise ScheduleError("there are no quiet hours")


async def build_deadlines(
    tx: Tx, workspace: WorkspaceRow, template: TemplateRow | None, transition: str, now: datetime, default_quiet: str
) -> Deadlines:
    """The deadlines of a build of `workspace` that ended well at `now`."""
    if template is None:
        return deadlines(now, workspace.ttl_ms, Requirement(0), None)
    ttl_ms = workspace.ttl_ms if template.allow_user_autostop else template.default_ttl_ms or None
    if transition != "start" or not template.autostop_days:
        return deadlines(now, ttl_ms, Requirement(0), None)
    owner = await user_store.get_user(tx, workspace.owner_id)
    quiet = quiet_hours(owner.quiet_hours_schedule if owner else "", default_quiet)
    return deadlines(now, ttl_ms, Requirement(template.autostop_days, template.autostop_weeks), quiet)


async def note_activity(tx: Tx, workspace_id: UUID, build_id: UUID, now: datetime) -> None:
    """Somebody works in the workspace: it counts as used, and its deadline moves on."""
    await store.touch_workspace(tx, workspace_id, now)
    found = await store.get_bumpable(tx, build_id)
    if found is None:
        return
    schedule = found.autostart_schedule if found.allow_user_autostart else None
    moved = bumped_deadline(
        now,
        found.deadline,
        found.max_deadline,
        bump_ms=found.activity_bump_ms,
        next_autostart=next_start(schedule, now, allowed_days=found.autostart_days),
        ttl_ms=found.ttl_ms if found.allow_user_autostop else found.default_ttl_ms,
    )
    if moved is not None:
        await build_store.update_build(tx, build_id, deadline=moved)


async def apply_template_schedule(
    tx: Tx, before: TemplateRow, after: TemplateRow, now: datetime, default_quiet: str
) -> None:
    """What a template's new schedule means for workspaces that exist: next starts, deletion, latest stops."""
    if before.autostart_days != after.autostart_days:
        for one in await store.list_scheduled(tx, after.id):
            following = next_start(one.autostart_schedule, now, allowed_days=after.autostart_days)
            await workspace_store.update_workspace(tx, one.id, next_start_at=following)
    if before.time_til_dormant_autodelete_ms != after.time_til_dormant_autodelete_ms:
        await store.set_deleting(tx, after.id, after.time_til_dormant_autodelete_ms, now, restart=False)
    if (before.autostop_days, before.autostop_weeks) != (after.autostop_days, after.autostop_weeks):
        requirement = Requirement(after.autostop_days, after.autostop_weeks)
        for build in await store.list_running(tx, template_id=after.id):
            await _move_maximum(tx, build, requirement, now, default_quiet)


async def _move_maximum(
    tx: Tx, build: store.RunningBuild, requirement: Requirement, now: datetime, default_quiet: str
) -> None:
    """A stop that is required now counts from now: nobody is stopped for a requirement of the past."""
    maximum = deadlines(now, None, requirement, quiet_hours(build.quiet_hours, default_quiet)).maximum
    deadline = build.deadline
    if maximum is not None and (deadline is None or maximum < deadline):
        deadline = maximum
    await build_store.update_build(tx, build.id, deadline=deadline, max_deadline=maximum, updated_at=now)
    await notify_change(tx, "settings", owner_id=build.owner_id, workspace_id=build.workspace_id)
