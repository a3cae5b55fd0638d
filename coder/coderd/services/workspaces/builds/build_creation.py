"""Creating builds of existing workspaces: permission, values, queueing.

The first build of a new workspace is created by `services/workspaces/workspace_creation.py`.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import (
    FORBIDDEN_DETAIL,
    Conflict,
    Forbidden,
)
from coder.api.workspaces.build_requests import CreateWorkspaceBuildRequest
from coder.api.workspaces.builds import WorkspaceBuild
from coder.coderd.services.access.authorization import require
from coder.coderd.services.access.workspace_access import (
    hold_template_of,
    load_workspace,
    lock_workspace,
    workspace_resource,
)
from coder.coderd.services.notifications import update_notifications
from coder.coderd.services.workspaces.builds.build_checks import require_template_access
from coder.coderd.services.workspaces.builds.build_input import read_request
from coder.coderd.services.workspaces.builds.build_metrics import counted
from coder.coderd.services.workspaces.builds.build_parameters import BuildTarget, enqueue_with_values
from coder.coderd.services.workspaces.builds.build_requests import BuildRequest, BuildRules, rules_of
from coder.coderd.services.workspaces.builds.new_builds import enqueue_build
from coder.coderd.services.workspaces.builds.queued_builds import QueuedBuild, load_queued_build, present_queued
from coder.coderd.store.workspaces import workspaces as workspace_store
from coder.domain.access.policy import Subject

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

_ACTIONS = {"start": "start", "stop": "stop", "delete": "delete"}
_ACTION_NAMES = {"start": "update", "stop": "update", "delete": "delete"}
"Action of each transition, as the refusal's message names it."


async def create_build(
    ctx: Context, subject: Subject, workspace_id: UUID, body: CreateWorkspaceBuildRequest
) -> WorkspaceBuild:
    """Queue a start, stop or delete build.

    Raises InvalidFields, NotFound, Forbidden, Conflict (a build is active), Invalid.
    """
    request = read_request(subject, body)
    view = await load_workspace(ctx, subject, workspace_id)
    _check_buildable(
        subject, view.workspace, request
    )  # before the values are computed; `enqueue_next_build` checks again
    await require_template_access(ctx, subject, view, request)
    target = BuildTarget(view.workspace.owner_id, view.workspace.template_id, workspace_id)

    async def enqueue(request: BuildRequest) -> QueuedBuild:
        return await ctx.db.run(enqueue_next_build, subject, workspace_id, request, rules_of(ctx), ctx.clock.now())

    with counted(ctx, request) as count:
        queued = await enqueue_with_values(ctx, request, target, enqueue)
        count(queued.view.job.provisioner)
    before, after = view.latest.build.template_version_id, queued.view.build.template_version_id
    if request.transition == "start" and before != after:
        await update_notifications.workspace_updated(ctx, queued.view.build.job_id)
    return present_queued(ctx, queued)


def _check_buildable(subject: Subject, row: workspace_store.WorkspaceRow, request: BuildRequest) -> None:
    _require_transition(subject, row, request)
    if row.deleted:
        raise Conflict(f'Workspace "{row.name}" was deleted.')


def _require_transition(subject: Subject, row: workspace_store.WorkspaceRow, request: BuildRequest) -> None:
    # Starting activates a dormant workspace, so permission is checked for an active one.
    dormant = False if request.transition == "start" else None
    try:
        require(subject, _ACTIONS[request.transition], workspace_resource(row, dormant=dormant))
    except Forbidden as refusal:
        # The user may read the workspace, so the message names the action. No other refusal of permission does.
        message = f"You do not have permission to {_ACTION_NAMES[request.transition]} this workspace."
        raise Forbidden(message, FORBIDDEN_DETAIL) from refusal


async def enqueue_next_build(
    tx: Tx, subject: Subject, workspace_id: UUID, request: BuildRequest, rules: BuildRules, now: datetime
) -> QueuedBuild:
    """Check permission and queue another build inside a transaction. Raises what `enqueue_build` does."""
    template = await hold_template_of(tx, workspace_id)
    workspace = (await lock_workspace(tx, subject, workspace_id, "read")).workspace
    _check_buildable(subject, workspace, request)
    build = await enqueue_build(tx, subject, workspace, template, request, rules, now)
    return await load_queued_build(tx, build.id, rules, now)
