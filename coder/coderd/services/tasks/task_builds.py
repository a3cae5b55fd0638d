"""Builds of a task's workspace: pausing, resuming, deleting.

The task and its workspace are deleted in one transaction.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import Conflict
from coder.api.workspaces.builds import WorkspaceBuild
from coder.coderd.services.access.authorization import require
from coder.coderd.services.access.workspace_access import (
    load_workspace,
    workspace_resource,
)
from coder.coderd.services.tasks.tasks import load_task
from coder.coderd.services.workspaces.builds.build_checks import require_template_access
from coder.coderd.services.workspaces.builds.build_creation import enqueue_next_build
from coder.coderd.services.workspaces.builds.build_metrics import counted
from coder.coderd.services.workspaces.builds.build_parameters import BuildTarget, enqueue_with_values
from coder.coderd.services.workspaces.builds.build_requests import BuildRequest, BuildRules, rules_of
from coder.coderd.services.workspaces.builds.queued_builds import QueuedBuild, present_queued
from coder.coderd.store.tasks import tasks as store
from coder.coderd.store.tasks.tasks import TaskRow, TaskView
from coder.coderd.store.workspaces import system_workspaces
from coder.domain.access.policy import Subject

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx
    from coder.coderd.store.workspaces.workspaces import WorkspaceView


async def pause(ctx: Context, subject: Subject, owner_id: UUID, reference: str) -> WorkspaceBuild:
    """Stop the task's workspace. Raises NotFound, Forbidden, Conflict (already stopped, or a build is active)."""
    workspace = await _workspace(ctx, subject, await load_task(ctx, subject, owner_id, reference, "update"), "stop")
    status = workspace.latest.status
    if status == "stopped":
        raise Conflict("Task workspace is already stopped.", f'Workspace status is "{status}".')
    request = BuildRequest(transition="stop", initiator_id=subject.user_id, reason="task_manual_pause")
    return await _build(ctx, subject, workspace, request)


async def resume(ctx: Context, subject: Subject, owner_id: UUID, reference: str) -> WorkspaceBuild:
    """Start the task's workspace. Raises NotFound, Forbidden, Conflict (already running, or a build is active),
    Invalid."""
    workspace = await _workspace(ctx, subject, await load_task(ctx, subject, owner_id, reference, "update"), "start")
    status = workspace.latest.status
    if workspace.latest.build.transition == "start" and status in {"running", "pending", "starting"}:
        raise Conflict(f"Task workspace is already {status}.", f'Workspace status is "{status}".')
    request = BuildRequest(transition="start", initiator_id=subject.user_id, reason="task_resume")
    return await _build(ctx, subject, workspace, request)


async def _workspace(ctx: Context, subject: Subject, view: TaskView, action: str) -> WorkspaceView:
    if view.task.workspace_id is None:
        raise Conflict("Task does not have a workspace.", "Delete the task and create another one.")
    workspace = await load_workspace(ctx, subject, view.task.workspace_id)
    # Starting activates a dormant workspace, so permission is checked for an active one.
    resource = workspace_resource(workspace.workspace, dormant=False if action == "start" else None)
    require(subject, action, resource)
    if workspace.workspace.deleted:
        raise Conflict("The task's workspace was deleted.", "Delete the task and create another one.")
    return workspace


async def _build(ctx: Context, subject: Subject, workspace: WorkspaceView, request: BuildRequest) -> WorkspaceBuild:
    row = workspace.workspace
    await require_template_access(ctx, subject, workspace, request)

    async def enqueue(request: BuildRequest) -> QueuedBuild:
        return await ctx.db.run(enqueue_next_build, subject, row.id, request, rules_of(ctx), ctx.clock.now())

    with counted(ctx, request) as count:
        queued = await enqueue_with_values(ctx, request, BuildTarget(row.owner_id, row.template_id, row.id), enqueue)
        count(queued.view.job.provisioner)
    return present_queued(ctx, queued)


async def delete_task(ctx: Context, subject: Subject, owner_id: UUID, reference: str) -> None:
    """Delete the task and its workspace. Raises NotFound, Forbidden, Conflict (a build is active)."""
    view = await load_task(ctx, subject, owner_id, reference, "delete")
    workspace_id = view.task.workspace_id
    if workspace_id is not None:
        workspace = await load_workspace(ctx, subject, workspace_id)
        require(subject, "delete", workspace_resource(workspace.workspace))
    request = BuildRequest(transition="delete", initiator_id=subject.user_id)
    with counted(ctx, request) as count:
        queued = await ctx.db.run(_delete, subject, view.task, request, rules_of(ctx), ctx.clock.now())
        if queued is not None:
            count(queued.view.job.provisioner)


async def _delete(
    tx: Tx, subject: Subject, task: TaskRow, request: BuildRequest, rules: BuildRules, now: datetime
) -> QueuedBuild | None:
    await store.forget_task(tx, task.id, now)
    row = await system_workspaces.get_workspace(tx, task.workspace_id) if task.workspace_id else None
    if row is None or row.deleted:
        return None
    return await enqueue_next_build(tx, subject, row.id, request, rules, now)
