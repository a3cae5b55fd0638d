"""Abandoning a workspace: deleting it here without destroying its resources.

For owners whose daemon or cloud is gone for good: `delete` would wait forever. Nothing outside the server changes;
`workspace_inventory.py` lists the resources to remove by hand. For template managers, `orphan` does the same.

The resources may still exist, so an abandoned workspace keeps its cost in the owner's quota, until a template manager
abandons it, too, which confirms that they are gone.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import Conflict, Forbidden, NotFound
from coder.api.workspaces.workspace_inventory import WorkspaceInventory
from coder.coderd.services.access.authorization import may
from coder.coderd.services.access.workspace_access import load_workspace, lock_workspace, template_resource
from coder.coderd.services.provisioning.job_endings import end_with_error
from coder.coderd.services.provisioning.job_handlers import AfterCommit
from coder.coderd.services.provisioning.jobs import cancel_job, match_provisioners, notify_job_change
from coder.coderd.services.workspaces.builds import build_events
from coder.coderd.services.workspaces.builds.build_metrics import counted
from coder.coderd.services.workspaces.builds.build_requests import BuildRequest, BuildRules, rules_of
from coder.coderd.services.workspaces.builds.build_results import complete_build, touch_ended_build
from coder.coderd.services.workspaces.builds.new_builds import enqueue_build
from coder.coderd.services.workspaces.workspace_inventory import load_inventory, require_abandonable
from coder.coderd.store.provisioning import jobs as job_store
from coder.coderd.store.provisioning import system_jobs
from coder.coderd.store.provisioning.jobs import JobRow
from coder.coderd.store.templates import system_templates
from coder.coderd.store.workspaces import builds as build_store
from coder.coderd.store.workspaces import system_builds
from coder.coderd.store.workspaces.builds import BuildRow
from coder.domain.access.policy import SYSTEM, Subject
from coder.domain.provisioning.allowed_actions import is_silent, may_abandon
from coder.rpc.proto import provisionerd_pb2

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

_CAN_BE_DELETED = "Only template managers may abandon a workspace that can still be deleted."
_CAN_BE_DELETED_DETAIL = (
    "Delete the workspace. You can abandon it if the deletion fails, or if no connected provisioner could do it."
)
ABANDONED = "the workspace was abandoned while the provisioner was silent"


async def abandon(ctx: Context, subject: Subject, workspace_id: UUID) -> WorkspaceInventory:
    """Delete the workspace in the database only; return the resources that may remain.

    Raises NotFound, Forbidden (it can still be deleted), Gone (already deleted), Conflict (a daemon works on it: cancel
    first).
    """
    workspace = (await load_workspace(ctx, subject, workspace_id)).workspace
    if workspace.deleted:
        confirmed = await ctx.db.run(_confirm, subject, workspace_id)
        if confirmed is not None:
            return confirmed
    require_abandonable(subject, workspace)
    request = BuildRequest("delete", subject.user_id, orphan=True, ephemeral=frozenset())
    with counted(ctx, request) as count:
        inventory, job, follow_up = await ctx.db.run(
            _abandon, ctx, subject, request, workspace_id, rules_of(ctx), ctx.clock.now()
        )
        count(job.provisioner)
    follow_up()
    return inventory


async def _confirm(tx: Tx, subject: Subject, workspace_id: UUID) -> WorkspaceInventory | None:
    """Remove the cost of an abandoned workspace; None if it has none, or the caller does not manage the template."""
    workspace = (await lock_workspace(tx, subject, workspace_id, "read")).workspace
    template = await system_templates.get_template(tx, workspace.template_id)
    last = await system_builds.get_latest_build(tx, workspace_id)
    if template is None or last is None or not may(subject, "update", template_resource(template)):
        return None
    if not await build_store.is_abandoned(tx, last.id) or not last.daily_cost:
        return None
    await build_store.update_build(tx, last.id, daily_cost=0, granted_cost=0)
    return await load_inventory(tx, workspace_id)


async def _abandon(
    tx: Tx,
    ctx: Context,
    subject: Subject,
    request: BuildRequest,
    workspace_id: UUID,
    rules: BuildRules,
    now: datetime,
) -> tuple[WorkspaceInventory, JobRow, AfterCommit]:
    """Return the resources that may remain, the job of the build that deleted the workspace, and what follows it."""
    workspace = (await lock_workspace(tx, subject, workspace_id, "read")).workspace
    require_abandonable(subject, workspace)
    template = await system_templates.get_template(tx, workspace.template_id)
    if template is None:
        raise NotFound
    last = await system_builds.get_latest_build(tx, workspace_id)
    manages = may(subject, "update", template_resource(template))
    if last is not None:
        await _end_last(tx, last, rules, now, manages=manages)
    inventory = await load_inventory(tx, workspace_id)
    build = await enqueue_build(tx, SYSTEM, workspace, template, request, BuildRules(), now)
    job = await system_jobs.get_job(tx, build.job_id, lock=True)
    if job is None:
        raise NotFound
    if last is not None and not manages:
        await build_store.update_build(tx, build.id, granted_cost=last.daily_cost)
    await complete_build(tx, job, provisionerd_pb2.CompletedJob.WorkspaceBuild(), now)
    # In the transaction that queued it: no daemon ever acquires the job.
    await job_store.update_job(tx, job.id, started_at=now, completed_at=now, updated_at=now)
    await notify_job_change(tx, job)
    return inventory, job, await build_events.record_build_end(ctx, tx, job.id)


async def _end_last(tx: Tx, last: BuildRow, rules: BuildRules, now: datetime, *, manages: bool) -> None:
    """End the last build if its daemon is silent.

    Raises Conflict while a daemon works on it, Forbidden if the caller can still delete the workspace.
    """
    job = await system_jobs.get_job(tx, last.job_id, lock=True)
    if job is None:
        return
    silent = is_silent(job.updated_at, now)
    served = bool((await match_provisioners(tx, job, now, strict=rules.strict_tags)).available)
    if not may_abandon(job.status, last.transition, silent=silent, served=served, manages=manages):
        if job.status in {"running", "canceling"}:
            raise Conflict(
                "A provisioner is working on the workspace.", "Cancel the build first, or wait until it has ended."
            )
        raise Forbidden(_CAN_BE_DELETED, _CAN_BE_DELETED_DETAIL)
    if job.completed_at is not None:
        return
    if job.started_at is None:
        await _cancel(tx, job, now)
    else:
        await end_with_error(tx, job, ABANDONED, "", now)
        await touch_ended_build(tx, job.id, now)


async def _cancel(tx: Tx, job: JobRow, now: datetime) -> None:
    if job.canceled_at is None:
        await cancel_job(tx, job.id, now)
    await touch_ended_build(tx, job.id, now)
