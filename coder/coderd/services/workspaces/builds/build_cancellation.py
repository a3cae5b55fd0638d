"""Canceling a build: the users and jobs for which it is allowed, and the order of locks."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import (
    Forbidden,
    Invalid,
    Precondition,
)
from coder.coderd.services.access.authorization import require
from coder.coderd.services.access.workspace_access import (
    load_workspace,
    lock_workspace,
    workspace_resource,
)
from coder.coderd.services.provisioning import jobs as job_service
from coder.coderd.services.workspaces.builds.build_results import touch_ended_build
from coder.coderd.services.workspaces.builds.builds import load_build
from coder.coderd.store.provisioning import system_jobs
from coder.coderd.store.workspaces.builds import BuildRow
from coder.coderd.store.workspaces.workspaces import WorkspaceView
from coder.domain.access.policy import Subject
from coder.domain.provisioning.allowed_actions import is_silent, may_cancel

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx
    from coder.coderd.store.provisioning.jobs import JobRow

_CANCEL_REFUSED = "User is not allowed to cancel workspace builds. Owner role is required."


async def cancel_build(ctx: Context, subject: Subject, build_id: UUID, expect: str = "") -> None:
    """Request cancellation of the build's job.

    Raises NotFound, Invalid (the job ended, unknown expectation), Forbidden (the template does not let users cancel),
    Precondition (the job is not in the expected state).
    """
    if expect and expect not in {"pending", "running"}:
        raise Invalid(f"Invalid expect_status \"{expect}\". Only 'running' or 'pending' are allowed.")
    view = await load_build(ctx, subject, build_id)
    workspace = await load_workspace(ctx, subject, view.build.workspace_id)
    if not _allows_cancel(subject, workspace) and not _may_cancel(view.job, ctx.clock.now()):
        raise Forbidden(_CANCEL_REFUSED)
    require(subject, "update", workspace_resource(workspace.workspace))
    await ctx.db.run(_cancel, subject, view.build, expect, ctx.clock.now())


def _allows_cancel(subject: Subject, workspace: WorkspaceView) -> bool:
    return workspace.template.allow_user_cancel_workspace_jobs or subject.is_owner


def _may_cancel(job: JobRow, now: datetime) -> bool:
    """Return whether the job may be canceled against the template's setting: if pending, or if its daemon is silent."""
    completed = job.completed_at is not None
    return not completed and may_cancel(job.status, silent=is_silent(job.updated_at, now), template_allows=False)


async def _cancel(tx: Tx, subject: Subject, build: BuildRow, expect: str, now: datetime) -> None:
    # Checked again on locked rows: meanwhile the workspace may have got another owner, and a daemon may have acquired
    # the job. The job is locked first, in the order in which a build is completed.
    job = await system_jobs.get_job(tx, build.job_id, lock=True)
    workspace = await lock_workspace(tx, subject, build.workspace_id)
    if expect and job is not None and job.status != expect:
        raise Precondition("Job is not in the expected state.", f'Expected: "{expect}", actual: "{job.status}".')
    allowed = _allows_cancel(subject, workspace)
    if job is not None and job.completed_at is None and not allowed and not _may_cancel(job, now):
        raise Forbidden(_CANCEL_REFUSED)
    changed = await job_service.cancel_job(tx, build.job_id, now)
    if changed.completed_at is not None:
        await touch_ended_build(tx, build.job_id, now)
