"""Creating a task, its workspace and the workspace's first build, in one transaction."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import Forbidden, NotFound
from coder.api.tasks.tasks import CreateTaskRequest, Task
from coder.coderd.services.foundation.uniqueness import constraint_refusals
from coder.coderd.services.tasks.task_requests import check_version, missing_input, new_task_row
from coder.coderd.services.tasks.task_view import present_task
from coder.coderd.services.workspaces.builds.build_input import optional_id
from coder.coderd.services.workspaces.builds.build_metrics import counted
from coder.coderd.services.workspaces.builds.build_parameters import BuildTarget, enqueue_with_values
from coder.coderd.services.workspaces.builds.build_requests import BuildRequest, BuildRules, rules_of
from coder.coderd.services.workspaces.new_workspaces import CreateSpec, enqueue_first_build, name_taken
from coder.coderd.store.tasks import system_tasks
from coder.coderd.store.tasks import tasks as store
from coder.coderd.store.tasks.tasks import TaskRow, TaskView
from coder.domain.access.policy import Class, Subject, decide

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

_NAME_INDEXES = ("ix_tasks_owner_id_name_living", "ix_workspaces_owner_id_name_living")


async def create_task(ctx: Context, subject: Subject, owner_id: UUID, body: CreateTaskRequest) -> Task:
    """Create a task, its workspace and the workspace's first start build.

    Raises NotFound (no such version), Invalid (no input, no task in the template, an invalid name, parameters),
    Forbidden, Conflict (the name is taken).
    """
    version_id = body.template_version_id
    if not body.input.strip():
        raise missing_input()
    organization_id = await ctx.db.read(check_version, subject, version_id)
    if not decide(subject, "create", Class("task", owner_id=owner_id, organization_id=organization_id)):
        raise Forbidden
    row = new_task_row(owner_id, organization_id, body, ctx.clock.now())
    spec = CreateSpec(
        owner_id=owner_id,
        name=row.name,
        template_id=None,
        version_id=version_id,
        autostart_schedule=None,
        ttl_ms=None,
        automatic_updates="never",
        parameters={},
        preset_id=optional_id(body.template_version_preset_id),
    )
    request = BuildRequest(
        transition="start", initiator_id=subject.user_id, version_id=version_id, parameters={}, preset_id=spec.preset_id
    )

    async def enqueue(request: BuildRequest) -> tuple[TaskView, str]:
        return await ctx.db.run(_create, subject, row, spec, request, rules_of(ctx), ctx.clock.now())

    with constraint_refusals(dict.fromkeys(_NAME_INDEXES, name_taken(row.name))), counted(ctx, request) as count:
        view, provisioner = await enqueue_with_values(ctx, request, BuildTarget(owner_id, None), enqueue)
        count(provisioner)
    return present_task(ctx, view)


async def _create(
    tx: Tx, subject: Subject, row: TaskRow, spec: CreateSpec, request: BuildRequest, rules: BuildRules, now: datetime
) -> tuple[TaskView, str]:
    """Insert the task; return it and the provisioner of its first build."""
    queued, workspace = await enqueue_first_build(tx, subject, spec, request, None, rules, now)
    await store.insert_task(tx, replace(row, workspace_id=workspace.workspace.id))
    return await _read(tx, row.id), queued.view.job.provisioner


async def _read(tx: Tx, task_id: UUID) -> TaskView:
    view = await system_tasks.get_view(tx, task_id)
    if view is None:
        raise NotFound
    return view
