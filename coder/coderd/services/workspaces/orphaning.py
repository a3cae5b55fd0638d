"""Giving a workspace up without destroying what it made, and the list of what may remain.

For owners whose daemon or cloud is gone for good: `delete` would wait for ever. Nothing is touched outside of the
server; the answer names what somebody has to remove by hand. What `orphan` is to template managers.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import Conflict, Gone, NotFound
from coder.api.workspaces.workspace_inventory import RemainingResource, WorkspaceInventory
from coder.coderd.services.access.authorization import require
from coder.coderd.services.access.workspace_access import load_workspace, lock_workspace, workspace_resource
from coder.coderd.services.provisioning.job_endings import end_with_error
from coder.coderd.services.provisioning.jobs import cancel_job, notify_job_change
from coder.coderd.services.workspaces import build_events
from coder.coderd.services.workspaces.build_metrics import counted
from coder.coderd.services.workspaces.build_requests import BuildRequest, BuildRules, enqueue_build
from coder.coderd.services.workspaces.build_results import build_ended, complete_build
from coder.coderd.store.provisioning import jobs as job_store
from coder.coderd.store.provisioning.jobs import JobRow
from coder.coderd.store.templates import templates as template_store
from coder.coderd.store.workspaces import builds as build_store
from coder.coderd.store.workspaces.builds import BuildRow
from coder.coderd.store.workspaces.workspaces import WorkspaceRow
from coder.domain.access.policy import SYSTEM, Subject
from coder.domain.provisioning.allowed_actions import allowed_actions, is_silent
from coder.domain.workspaces.inventory import read_inventory
from coder.rpc.proto import provisionerd_pb2

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

GIVEN_UP = "the workspace was abandoned while the provisioner was silent"


async def show_inventory(ctx: Context, subject: Subject, workspace_id: UUID) -> WorkspaceInventory:
    """What the last build's state knows. Raises NotFound, Forbidden."""
    _check(subject, (await load_workspace(ctx, subject, workspace_id)).workspace)
    return await ctx.db.read(_inventory, workspace_id)


async def abandon(ctx: Context, subject: Subject, workspace_id: UUID) -> WorkspaceInventory:
    """Deletes the workspace here and nothing elsewhere; returns what may remain.

    Raises NotFound, Forbidden, Gone (deleted before), Conflict (a daemon works on it: cancel first).
    """
    _check(subject, (await load_workspace(ctx, subject, workspace_id)).workspace)
    request = BuildRequest("delete", subject.user_id, orphan=True, ephemeral=frozenset())
    with counted(ctx, request) as count:
        found, job = await ctx.db.run(_abandon, subject, request, workspace_id, ctx.clock.now())
        count(job.provisioner)
    await build_events.build_over(ctx, job.id)
    return found


def _check(subject: Subject, workspace: WorkspaceRow) -> None:
    require(subject, "delete", workspace_resource(workspace))
    if workspace.deleted:
        raise Gone("The workspace is deleted already.")


async def _abandon(
    tx: Tx, subject: Subject, request: BuildRequest, workspace_id: UUID, now: datetime
) -> tuple[WorkspaceInventory, JobRow]:
    """What may remain, and the job of the build that deleted it."""
    workspace = (await lock_workspace(tx, subject, workspace_id, "read")).workspace
    _check(subject, workspace)
    template = await template_store.get_template(tx, workspace.template_id)
    if template is None:
        raise NotFound
    last = await build_store.get_latest_build(tx, workspace_id)
    if last is not None:
        await _end_last(tx, last, now)
    found = await _inventory(tx, workspace_id)
    build = await enqueue_build(tx, SYSTEM, workspace, template, request, BuildRules(), now)
    job = await job_store.get_job(tx, build.job_id, lock=True)
    if job is None:
        raise NotFound
    await complete_build(tx, job, provisionerd_pb2.CompletedJob.WorkspaceBuild(), now)
    # In the transaction that posted it: no daemon ever sees the job.
    await job_store.update_job(tx, job.id, started_at=now, completed_at=now, updated_at=now)
    await notify_job_change(tx, job)
    return found, job


async def _end_last(tx: Tx, last: BuildRow, now: datetime) -> None:
    """The last build must be over, or nobody's business any more."""
    job = await job_store.get_job(tx, last.job_id, lock=True)
    if job is None or job.completed_at is not None:
        return
    if "abandon" not in allowed_actions(job.status, silent=is_silent(job.updated_at, now)):
        raise Conflict("A provisioner works on the workspace.", "Cancel the build first, or wait until it has ended.")
    if job.started_at is None:
        await _cancel(tx, job, now)
    else:
        await end_with_error(tx, job, GIVEN_UP, "", now)
        await build_ended(tx, job.id, now)


async def _cancel(tx: Tx, job: JobRow, now: datetime) -> None:
    if job.canceled_at is None:
        await cancel_job(tx, job.id, now)
    await build_ended(tx, job.id, now)


async def _inventory(tx: Tx, workspace_id: UUID) -> WorkspaceInventory:
    last = await build_store.get_latest_build(tx, workspace_id)
    state = await build_store.get_state(tx, last.id) if last is not None else b""
    found = read_inventory(state or b"")
    return WorkspaceInventory(
        workspace_id=workspace_id,
        readable=found is not None,
        resources=[
            RemainingResource(address=one.address, type=one.type, name=one.name, provider=one.provider, id=one.id)
            for one in found or []
        ],
    )
