"""Tasks as JSON: status, current state, and the workspace they run in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET

from coder.api.agents.agents import WorkspaceAgentHealth
from coder.api.tasks.tasks import Task, TaskStateEntry
from coder.coderd.services.agents.agent_view import health_of, status_of
from coder.coderd.store.tasks.tasks import TaskView
from coder.domain.tasks import tasks as rules

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context


def status_of_task(ctx: Context, view: TaskView) -> rules.TaskStatus:
    """Return the current status, one of `rules.STATUSES`."""
    return rules.task_status(*_facts(ctx, view))


def _facts(ctx: Context, view: TaskView) -> tuple[rules.Build | None, rules.TaskAgent | None, str | None]:
    build = rules.Build(view.build.transition, view.build.status) if view.build else None
    if view.app is None:
        return build, None, None
    row = view.app.agent
    return build, rules.TaskAgent(status_of(row, ctx.clock.now()), row.lifecycle_state), view.app.health


def present_task(ctx: Context, view: TaskView) -> Task:
    """Return the API's shape of a task."""
    row, build, app = view.task, view.build, view.app
    health = health_of(app.agent, ctx.clock.now()) if app else None
    return Task(
        id=row.id,
        organization_id=row.organization_id,
        owner_id=row.owner_id,
        owner_name=view.owner_username,
        owner_avatar_url=view.owner_avatar_url or UNSET,
        name=row.name,
        display_name=row.display_name,
        template_id=view.template_id,
        template_version_id=row.template_version_id,
        template_name=view.template_name,
        template_display_name=view.template_display_name,
        template_icon=view.template_icon,
        workspace_id=row.workspace_id,
        workspace_name=view.workspace_name,
        workspace_status=build.status if build else UNSET,
        workspace_build_number=build.number if build else UNSET,
        workspace_agent_id=app.agent.id if app else None,
        workspace_agent_lifecycle=app.agent.lifecycle_state if app else None,
        workspace_agent_health=WorkspaceAgentHealth(healthy=health.healthy, reason=health.reason or UNSET)
        if health
        else None,
        workspace_app_id=app.id if app else None,
        initial_prompt=row.prompt,
        status=status_of_task(ctx, view),
        current_state=_current_state(ctx, view),
        created_at=row.created_at,
        updated_at=view.workspace_updated_at or row.created_at,
    )


def _current_state(ctx: Context, view: TaskView) -> TaskStateEntry | None:
    """Return the app's last report, or the progress of its start."""
    report, build = view.app_status, view.build
    if build is None or build.transition != "start":
        return None
    if report is not None:
        state = rules.APP_STATES.get(report.state, "working")
        return TaskStateEntry(timestamp=report.created_at, state=state, message=report.message, uri=report.uri)
    message = rules.startup_message(*_facts(ctx, view))
    if not message:
        return None
    return TaskStateEntry(timestamp=build.created_at, state="working", message=message, uri="")
