"""Queueing a build: from a `BuildRequest` to a job in the queue, in one transaction.

Users' builds come from `build_creation.py`, `services/workspaces/new_workspaces.py` (the first build) and
`services/tasks/task_builds.py`; the server's own from `services/workspaces/autobuilds.py`,
`services/workspaces/prebuild_builds.py` and `services/workspaces/orphaning.py`. `enqueue_job`
(coder/coderd/services/provisioning/new_jobs.py) puts the job into the queue.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from coder.api.base.refusals import Conflict
from coder.base.ids import new_uuid
from coder.coderd.services.provisioning.new_jobs import NewJob, enqueue_job
from coder.coderd.services.workspaces.builds.build_checks import (
    check_logins,
    check_privileges,
    check_required_version,
    check_template_access,
    select_version,
)
from coder.coderd.services.workspaces.builds.build_consent import job_input
from coder.coderd.services.workspaces.builds.build_requests import BuildRequest, BuildRules
from coder.coderd.services.workspaces.builds.build_values import resolve_tags, resolve_values
from coder.coderd.store.provisioning import system_jobs
from coder.coderd.store.templates.templates import TemplateRow
from coder.coderd.store.workspaces import builds as build_store
from coder.coderd.store.workspaces import system_builds
from coder.coderd.store.workspaces import workspaces as workspace_store
from coder.coderd.store.workspaces.builds import BuildRow
from coder.coderd.store.workspaces.change_feed import notify_change
from coder.coderd.store.workspaces.workspaces import WorkspaceRow
from coder.domain.access.policy import Subject
from coder.domain.workspaces.builds import is_active

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx

ACTIVE = "A workspace build is already active."


async def enqueue_build(
    tx: Tx,
    subject: Subject,
    workspace: WorkspaceRow,
    template: TemplateRow,
    request: BuildRequest,
    rules: BuildRules,
    now: datetime,
) -> BuildRow:
    """Queue the build. `workspace` must be locked by `tx`; the caller has checked permission for the transition.

    Raises Conflict (a build is active), Forbidden, InvalidFields (parameters), Invalid, StaleValuesError,
    FormNeededError.
    """
    last = await system_builds.get_latest_build(tx, workspace.id)
    if last is not None:
        await _check_idle(tx, last)
    check_template_access(subject, template, request, last.template_version_id if last else None)
    version, version_job = await select_version(tx, template, request, last)
    check_privileges(subject, template, request, rules)
    await check_required_version(tx, subject, workspace, template, version, request, last)
    check_logins(version, request)
    parameters = await resolve_values(tx, template, version, request, last)
    build_id = new_uuid()
    job = await enqueue_job(
        tx,
        NewJob(
            organization_id=workspace.organization_id,
            initiator_id=request.initiator_id,
            provisioner=template.provisioner,
            file_id=version_job.file_id,
            type="workspace_build",
            input={"workspace_build_id": str(build_id), **await job_input(tx, subject)},
            tags=await resolve_tags(tx, workspace, template, version_job, parameters, request, last),
            priority=request.priority,
        ),
        now,
    )
    build = BuildRow(
        id=build_id,
        created_at=now,
        updated_at=now,
        workspace_id=workspace.id,
        template_version_id=version.id,
        build_number=last.build_number + 1 if last else 1,
        transition=request.transition,
        initiator_id=request.initiator_id,
        job_id=job.id,
        reason=request.reason,
        log_level=request.log_level,
        deadline=None,
        max_deadline=None,
        daily_cost=last.daily_cost if last else 0,  # see services/people/quotas.py
        template_version_preset_id=request.preset_id,
        has_ai_task=None,
        has_external_agent=None,
        requested_within=subject.narrowed_to,
    )
    await build_store.insert_build(tx, build, state=await _state(tx, request, last), parameters=parameters)
    if request.transition == "start" and workspace.dormant_at is not None:
        await workspace_store.update_workspace(tx, workspace.id, dormant_at=None, deleting_at=None, last_used_at=now)
    await notify_change(tx, "state", owner_id=workspace.owner_id, workspace_id=workspace.id)
    return build


async def _check_idle(tx: Tx, last: BuildRow) -> None:
    job = await system_jobs.get_job(tx, last.job_id)
    if job is not None and is_active(job.status):
        raise Conflict(ACTIVE, ACTIVE)


async def _state(tx: Tx, request: BuildRequest, last: BuildRow | None) -> bytes | None:
    if request.orphan:
        return None
    if request.state is not None:
        return request.state
    return await system_builds.get_state(tx, last.id) if last else None
