"""Automatic steps of the server: autostop, autostart, stopping failed workspaces, dormancy, deletion.

Each workspace that has a step has a transaction of its own: its row is locked, the step is decided again and taken. A
row that is locked elsewhere is left for the next turn, so several replicas may run at once.
`domain/workspaces/autobuild.py` decides what is due, `domain/workspaces/autostop.py` when a build has to stop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

import trio

from coder.coderd.services.access.authentication import subject_of
from coder.coderd.services.foundation.isolated_items import process_items
from coder.coderd.services.notifications import notifications
from coder.coderd.services.notifications.notifications import Notification
from coder.coderd.services.templates.rollout_offers import find_offered_version
from coder.coderd.services.workspaces.builds.build_checks import may_use
from coder.coderd.services.workspaces.builds.build_metrics import EnqueuedBuild
from coder.coderd.services.workspaces.builds.build_parameters import BuildTarget, Prepare, run_with_values
from coder.coderd.services.workspaces.builds.build_requests import BuildRequest, BuildRules
from coder.coderd.services.workspaces.builds.new_builds import enqueue_build
from coder.coderd.services.workspaces.workspace_dormancy import make_dormant
from coder.coderd.services.workspaces.workspace_settings import edit_workspace
from coder.coderd.store.access import keys as key_store
from coder.coderd.store.tasks import system_tasks
from coder.coderd.store.templates import system_template_versions, system_templates
from coder.coderd.store.templates.templates import TemplateRow
from coder.coderd.store.workspaces import autobuilds as store
from coder.coderd.store.workspaces import system_builds
from coder.coderd.store.workspaces.workspaces import WorkspaceRow
from coder.domain.access.policy import SYSTEM, Subject
from coder.domain.notifications import notification_templates
from coder.domain.workspaces.autobuild import AutobuildCandidate, AutobuildStep, next_step

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

NO_TEMPLATE_ACCESS = "autostart, which is now turned off: you no longer have access to the template's new version"
_PIECE = 50
"""Workspaces, our own value, after which other tasks have their turn: a schedule takes some 60 us to evaluate."""

_Step = tuple[AutobuildStep | None, EnqueuedBuild | None]
"""Step decided for a workspace, and the build that follows from it."""


@dataclass(frozen=True, slots=True)
class TakenStep:
    """A step that was taken."""

    workspace_id: UUID
    step: AutobuildStep


async def take_due_steps(ctx: Context) -> list[TakenStep]:
    """Take all steps that are due in the minute that began; return the steps taken."""
    started = ctx.clock.monotonic()
    taken = await take_steps(ctx, full_minute(ctx.clock.now()))
    metrics = ctx.services.metrics
    metrics["coderd_lifecycle_autobuild_execution_duration_seconds"].observe(ctx.clock.monotonic() - started)
    return taken


def full_minute(now: datetime) -> datetime:
    """Return the full minute of a turn, as upstream does: 09:00 means the first turn of that minute."""
    return now.replace(second=0, microsecond=0)


async def take_steps(ctx: Context, now: datetime) -> list[TakenStep]:
    """Take all steps due at `now`, a full minute. A workspace whose build fails does not block the rest."""
    site = notifications.site_of(ctx)

    async def take(workspace_id: UUID) -> TakenStep | None:
        step, build = await run_with_values(ctx, partial(_run_step, ctx, workspace_id, now, site))
        if build is not None:
            build.count(ctx)
        return None if step is None else TakenStep(workspace_id, step)

    due = await _only_due(await ctx.db.read(store.list_due, now), now)
    return await process_items(
        ctx.log, "an automatic workspace step failed", due, take, lambda workspace_id: {"workspace": workspace_id}
    )


async def _only_due(candidates: Sequence[tuple[UUID, AutobuildCandidate]], now: datetime) -> list[UUID]:
    """Return the workspaces that have a step: a transaction a minute for each of thousands with a schedule would cost
    more than all other work."""
    due = []
    for number, (workspace_id, candidate) in enumerate(candidates, 1):
        if next_step(candidate, now) is not None:
            due.append(workspace_id)
        if number % _PIECE == 0:
            await trio.lowlevel.checkpoint()
    return due


async def _run_step(
    ctx: Context, workspace_id: UUID, tick: datetime, site: notifications.NotificationSite, prepare: Prepare
) -> _Step:
    subject_for = partial(subject_of, ctx)
    return await ctx.db.run(_take_step, workspace_id, tick, ctx.clock.now(), site, prepare, subject_for)


async def _take_step(
    tx: Tx,
    workspace_id: UUID,
    tick: datetime,
    now: datetime,
    site: notifications.NotificationSite,
    prepare: Prepare,
    subject_for: Callable[[key_store.KeyUser], Subject],
) -> _Step:
    locked = await store.lock_candidate(tx, workspace_id)
    if locked is None:
        return None, None
    workspace, candidate = locked
    step = next_step(candidate, tick)
    template = await system_templates.get_template(tx, workspace.template_id)
    if step is None or template is None:
        return None, None
    build = None
    if step.transition is not None:
        version_id = await _build_version(tx, workspace, template, step)
        if version_id is not None and not await _owner_may_use(tx, workspace, template, subject_for):
            await _end_autostart(tx, workspace, template, now, site)
            return None, None
        request = BuildRequest(
            transition=step.transition,
            initiator_id=workspace.owner_id,
            version_id=version_id,
            reason=await _build_reason(tx, workspace, step),
        )
        build = await _enqueue_step(tx, workspace, template, request, now, site, prepare)
    if step.falls_asleep:
        await make_dormant(tx, workspace, template, now, site)
    return step, build


async def _enqueue_step(
    tx: Tx,
    workspace: WorkspaceRow,
    template: TemplateRow,
    request: BuildRequest,
    now: datetime,
    site: notifications.NotificationSite,
    prepare: Prepare,
) -> EnqueuedBuild:
    request = prepare(request, BuildTarget(workspace.owner_id, template.id, workspace.id))
    await enqueue_build(tx, SYSTEM, workspace, template, request, BuildRules(), now)
    if request.version_id is not None:
        version = await system_template_versions.get_version(tx, request.version_id)
        labels = {
            "name": workspace.name,
            "template_version_name": version.name if version else "",
            "template_version_message": version.message if version else "",
        }
        about = (workspace.id, workspace.owner_id, template.id)
        notice = Notification(notification_templates.WORKSPACE_AUTO_UPDATED, workspace.owner_id, labels, about)
        await notifications.enqueue(tx, site, notice, now)
    return EnqueuedBuild(request, template.provisioner)


async def _owner_may_use(
    tx: Tx, workspace: WorkspaceRow, template: TemplateRow, subject_for: Callable[[key_store.KeyUser], Subject]
) -> bool:
    owner = await key_store.find_user_with_roles(tx, workspace.owner_id)
    return owner is not None and may_use(subject_for(owner), template)


async def _end_autostart(
    tx: Tx, workspace: WorkspaceRow, template: TemplateRow, now: datetime, site: notifications.NotificationSite
) -> None:
    """Remove the autostart schedule of a workspace, and notify its owner.

    The owner lost access to the template, and this start would build a version that the owner never had.
    """
    await edit_workspace(tx, workspace, autostart_schedule=None, next_start_at=None)
    labels = {"name": workspace.name, "reason": NO_TEMPLATE_ACCESS}
    about = (workspace.id, workspace.owner_id, template.id)
    notice = Notification(notification_templates.WORKSPACE_AUTOBUILD_FAILED, workspace.owner_id, labels, about)
    await notifications.enqueue(tx, site, notice, now)


async def _build_reason(tx: Tx, workspace: WorkspaceRow, step: AutobuildStep) -> str:
    """Return the build's reason; a task pauses when its workspace stops."""
    if step.reason == "autostop" and await system_tasks.get_task_of(tx, workspace.id) is not None:
        return "task_auto_pause"
    return step.reason


async def _build_version(tx: Tx, workspace: WorkspaceRow, template: TemplateRow, step: AutobuildStep) -> UUID | None:
    """Return the version of an automatic update for a start if the owner or the template requires it; None keeps the
    last build's. It is the active version, or during a rollout the one that the workspace is offered."""
    if step.transition != "start" or not (workspace.automatic_updates == "always" or template.require_active_version):
        return None
    last = await system_builds.get_latest_build(tx, workspace.id)
    current = last.template_version_id if last else None
    offered = await find_offered_version(tx, template, workspace.id, workspace.owner_id, current)
    return None if current == offered else offered
