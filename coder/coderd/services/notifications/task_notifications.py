"""Notifications about a task to its owner: new statuses of its app, and pausing or resuming the task."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from coder.coderd.services.notifications.notifications import Notification, NotificationSite, enqueue
from coder.coderd.store.agents.agent_apps import AppStatusRow
from coder.coderd.store.agents.agents import CurrentAgent
from coder.coderd.store.audit.audit import BuildFacts
from coder.coderd.store.tasks import system_tasks
from coder.coderd.store.workspaces import system_builds
from coder.domain.notifications import notification_templates

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx

_SAID = {
    "working": notification_templates.TASK_WORKING,
    "idle": notification_templates.TASK_IDLE,
    "complete": notification_templates.TASK_COMPLETED,
    "failure": notification_templates.TASK_FAILED,
}
_PAUSED = {"task_manual_pause": "manual", "task_auto_pause": "idle timeout"}


async def notify_app_status(
    tx: Tx,
    site: NotificationSite,
    agent_place: CurrentAgent,
    app_status: AppStatusRow,
    before: str | None,
    now: datetime,
) -> None:
    """Notify of the status `app_status`, which was just stored. `before` is the app's last state.

    A repeated status, and the first working status, are not reported.
    """
    if app_status.state == before or (before is None and app_status.state == "working"):
        return
    task = await system_tasks.get_task_of(tx, agent_place.workspace_id)
    build = await system_builds.get_build(tx, agent_place.build_id) if task else None
    if task is None or build is None or build.ai_task_app_id != app_status.app_id:
        return
    labels = {"task": task.display_name or task.name, "task_id": str(task.id), "workspace": agent_place.workspace_name}
    about = (
        task.id,
        agent_place.workspace_id,
        agent_place.owner_id,
        agent_place.template_id,
        agent_place.organization_id,
    )
    await enqueue(tx, site, Notification(_SAID[app_status.state], task.owner_id, labels, about), now)


async def build_notifications(tx: Tx, facts: BuildFacts, about: tuple[UUID, ...]) -> list[Notification]:
    """Return the notification of a workspace's task after a successful build."""
    if facts.reason not in _PAUSED and facts.reason != "task_resume":
        return []
    task = await system_tasks.get_task_of(tx, facts.workspace_id)
    if task is None:
        return []
    labels = {"task": task.display_name or task.name, "task_id": str(task.id), "workspace": facts.workspace_name}
    if facts.reason == "task_resume":
        return [Notification(notification_templates.TASK_RESUMED, task.owner_id, labels, about)]
    labels["pause_reason"] = _PAUSED[facts.reason]
    return [Notification(notification_templates.TASK_PAUSED, task.owner_id, labels, about)]
