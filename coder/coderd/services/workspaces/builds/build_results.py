"""Storing the result of a build's job: state, resources, agents, deadline, deletion.

Called inside the transaction that completes or fails the job (`services/provisioning/daemon_calls.py`), which also ends
the job and notifies watchers. Nothing here may wait for anything except the database.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal
from uuid import UUID

from coder.coderd.services.activity.deadlines import build_deadlines
from coder.coderd.services.provisioning.resources import insert_resources
from coder.coderd.store.agents import agents as agent_store
from coder.coderd.store.engine.pubsub import notify
from coder.coderd.store.provisioning import jobs as job_store
from coder.coderd.store.provisioning.jobs import JobRow, TimingRow
from coder.coderd.store.site.site_settings import PREBUILDS_USER_ID
from coder.coderd.store.tasks import tasks as task_store
from coder.coderd.store.templates import system_templates
from coder.coderd.store.workspaces import builds as build_store
from coder.coderd.store.workspaces import system_builds, system_workspaces
from coder.coderd.store.workspaces import workspaces as workspace_store
from coder.coderd.store.workspaces.builds import BuildRow
from coder.coderd.store.workspaces.prebuilds import CLAIMED
from coder.domain.provisioning.jobs import clean_text
from coder.domain.workspaces.workspaces import next_start
from coder.rpc.proto import provisioner_pb2, provisionerd_pb2

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx
    from coder.coderd.store.workspaces.workspaces import WorkspaceRow


async def complete_build(
    tx: Tx,
    job: JobRow,
    result: provisionerd_pb2.CompletedJob.WorkspaceBuild,
    now: datetime,
    default_quiet_hours: str = "",
) -> None:
    """Store the result of a successful build.

    Agents are new rows, and only a start has any. A delete marks the workspace deleted. Raises BadResultError when the
    result cannot be stored: the caller rolls back and fails the job with its message.
    """
    build = await system_builds.get_build_by_job(tx, job.id)
    if build is None:
        return  # purged meanwhile
    workspace = await system_workspaces.get_workspace(tx, build.workspace_id, lock=True)
    if workspace is None:
        return
    inserted = await insert_resources(tx, job.id, build.transition, result.resources, now, workspace_id=workspace.id)
    await agent_store.delete_older_agents(tx, workspace.id, job.id)
    template = await system_templates.get_template(tx, workspace.template_id)
    deadlines = await build_deadlines(tx, workspace, template, build.transition, now, default_quiet_hours)
    await build_store.update_build(
        tx,
        build.id,
        updated_at=now,
        provisioner_state=bytes(result.state),
        deadline=deadlines.deadline,
        max_deadline=deadlines.maximum,
        has_ai_task=bool(result.ai_tasks),
        ai_task_app_id=_task_app(result, inserted.app_ids),
        has_external_agent=inserted.has_external_agent,
    )
    await build_store.settle_cost(tx, build.id)
    await _settle_workspace(tx, workspace, build, now, template.autostart_days if template else 127)
    await _notify_claimed(tx, workspace, build)


async def _notify_claimed(tx: Tx, workspace: WorkspaceRow, build: BuildRow) -> None:
    """Notify the agents of a claimed workspace of their new owner: they keep running, and keep their tokens."""
    if build.transition != "start" or workspace.owner_id == PREBUILDS_USER_ID:
        return
    previous = await system_builds.get_previous_build(tx, build)
    if previous is not None and previous.initiator_id == PREBUILDS_USER_ID:
        await notify(tx, CLAIMED, str(workspace.id))


def _task_app(result: provisionerd_pb2.CompletedJob.WorkspaceBuild, app_ids: Mapping[str, UUID]) -> UUID | None:
    """Return the app of the workspace's task; older providers give it as the sidebar's app."""
    for task in result.ai_tasks:
        return app_ids.get(task.app_id or task.sidebar_app.id)
    return None


async def fail_build(
    tx: Tx, job: JobRow, failed: provisionerd_pb2.FailedJob.WorkspaceBuild | None, now: datetime
) -> None:
    """Store a failed build, with the state Terraform left: its resources still have to be destroyed one day."""
    build = await system_builds.get_build_by_job(tx, job.id)
    if build is None:
        return
    await build_store.update_build(tx, build.id, updated_at=now)
    if failed is not None and failed.state:
        await build_store.set_state(tx, build.id, bytes(failed.state))


async def keep_state(tx: Tx, job: JobRow, state: bytes) -> None:
    """Store the state of a running build, in case its daemon never reconnects."""
    build = await system_builds.get_build_by_job(tx, job.id)
    if build is not None:
        await build_store.set_state(tx, build.id, state)


async def touch_ended_build(tx: Tx, job_id: UUID, now: datetime) -> None:
    """Update a build whose job ended without a daemon (canceled while pending, or reaped)."""
    build = await system_builds.get_build_by_job(tx, job_id)
    if build is not None:
        await build_store.update_build(tx, build.id, updated_at=now)


async def _settle_workspace(
    tx: Tx, workspace: WorkspaceRow, build: BuildRow, now: datetime, autostart_days: int
) -> None:
    if build.transition == "delete":
        await workspace_store.update_workspace(tx, workspace.id, deleted=True, next_start_at=None)
        await task_store.forget_task_of(tx, workspace.id, now)
    elif workspace.autostart_schedule:
        following = next_start(workspace.autostart_schedule, now, allowed_days=autostart_days)
        await workspace_store.update_workspace(tx, workspace.id, next_start_at=following)


async def insert_timings(tx: Tx, job: JobRow, timings: Iterable[provisioner_pb2.Timing]) -> None:
    """Store the durations of a build's steps, as its daemon measured them."""
    rows = (
        TimingRow(
            job_id=job.id,
            started_at=timing.start.ToDatetime(UTC),
            ended_at=timing.end.ToDatetime(UTC),
            stage=clean_text(timing.stage),
            source=clean_text(timing.source),
            action=clean_text(timing.action),
            resource=clean_text(timing.resource),
        )
        for timing in timings
        # A step that was cut off lacks one of its ends: it has no duration.
        if _is_valid_time(timing, "start") and _is_valid_time(timing, "end")
    )
    await job_store.insert_timings(tx, rows)


def _is_valid_time(timing: provisioner_pb2.Timing, name: Literal["start", "end"]) -> bool:
    """Return whether the timestamp is set and a valid date."""
    try:
        return timing.HasField(name) and bool(getattr(timing, name).ToDatetime(UTC))
    except (ValueError, OverflowError):
        return False
