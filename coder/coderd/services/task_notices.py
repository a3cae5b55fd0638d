"""Whom a task's progress is told: its owner, when its app says something new, and when it pauses or goes on."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from coder.coderd.services.notifications import Notice, Site, enqueue
from coder.coderd.store import builds as build_store
from coder.coderd.store import tasks as store
from coder.coderd.store.agents import AgentPlace, AppStatusRow
from coder.coderd.store.audit import BuildFacts
from coder.domain import notice_templates as notices

if TYPE_CHECKING:
    from coder.coderd.store.database import Tx

_SAID = {
    "working": notices.TASK_WORKING,
    "idle": notices.TASK_IDLE,
    "complete": notices.TASK_COMPLETED,
    "failure": notices.TASK_FAILED,
}
_PAUSED = {"task_manual_pause": "manual", "task_auto_pause": "idle timeout"}


async def app_said(
    tx: Tx, site: Site, place: AgentPlace, said: AppStatusRow, before: str | None, now: datetime
) -> None:
    """`said` was just stored, `before` is the app's last state. The same again is no news, nor is the first work."""
    if said.state == before or (before is None and said.state == "working"):
        return
    task = await store.get_task_of(tx, place.workspace_id)
    build = await build_store.get_build(tx, place.build_id) if task else None
    if task is None or build is None or build.ai_task_app_id != said.app_id:
        return
    labels = {"task": task.display_name or task.name, "task_id": str(task.id), "workspace": place.workspace_name}
    about = (task.id, place.workspace_id, place.owner_id, place.template_id, place.organization_id)
    await enqueue(tx, site, Notice(_SAID[said.state], task.owner_id, labels, about), now)


async def of_build(tx: Tx, facts: BuildFacts, about: tuple[UUID, ...]) -> list[Notice]:
    """What the end of a good build says of its workspace's task."""
    if facts.reason not in _PAUSED and facts.reason != "task_resume":
        return []
    task = await store.get_task_of(tx, facts.workspace_id)
    if task is None:
        return []
    labels = {"task": task.display_name or task.name, "task_id": str(task.id), "workspace": facts.workspace_name}
    if facts.reason == "task_resume":
        return [Notice(notices.TASK_RESUMED, task.owner_id, labels, about)]
    labels["pause_reason"] = _PAUSED[facts.reason]
    return [Notice(notices.TASK_PAUSED, task.owner_id, labels, about)]
