"""Every build of every workspace the caller may read, told when its job moves: for programs that watch a deployment.

An experiment of upstream's (`workspace-build-updates`). Nothing is said of what is over: the first message is the first
move after the stream began.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.workspaces.builds import WorkspaceBuildUpdate
from coder.coderd.services.access.authorization import may
from coder.coderd.services.access.workspace_access import workspace_resource
from coder.coderd.services.events.change_feed import WorkspaceChanges
from coder.coderd.services.foundation.errors import Forbidden
from coder.coderd.store.workspaces import workspaces as workspace_store
from coder.domain.access.policy import Subject

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

EXPERIMENT = "workspace-build-updates"
_OFF = "Workspace Build Updates Channel functionality requires enabling the 'workspace-build-updates' experiment."


def require_experiment(ctx: Context) -> None:
    """Raises Forbidden unless the server was started with `--experiments workspace-build-updates` (or `*`)."""
    if not {EXPERIMENT, "*"} & set(ctx.config.experiments):
        raise Forbidden(_OFF)


async def watch_builds(ctx: Context, subject: Subject) -> AsyncIterator[WorkspaceBuildUpdate | None]:
    """None first, once nothing is missed any more. Ends when the server stops. Raises Forbidden."""
    require_experiment(ctx)
    changes = ctx.part(WorkspaceChanges)
    await changes.wait_ready()
    told: dict[UUID, WorkspaceBuildUpdate] = {}
    with changes.watch(everything=True) as watch:
        yield None
        while True:
            change = await watch.next()
            if ctx.stopping.is_set():
                return
            if change.kind != "state" or change.workspace_id is None:
                continue
            update = await _look(ctx, subject, change.workspace_id)
            # A workspace that was edited moved no build.
            if update is not None and told.get(update.workspace_id) != update:
                told[update.workspace_id] = update
                yield update


async def _look(ctx: Context, subject: Subject, workspace_id: UUID) -> WorkspaceBuildUpdate | None:
    view = await ctx.db.read(workspace_store.get_view, workspace_id)
    if view is None or not may(subject, "read", workspace_resource(view.workspace)):
        return None
    latest = view.latest
    return WorkspaceBuildUpdate(
        workspace_id=workspace_id,
        workspace_name=view.workspace.name,
        build_id=latest.build.id,
        transition=latest.build.transition,
        job_status=latest.job.status,
        build_number=latest.build.build_number,
    )
