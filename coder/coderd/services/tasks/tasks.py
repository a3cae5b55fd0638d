"""Tasks: a prompt carried out in a workspace created for it. Loading one, and changing its prompt.

Neighbours: `task_creation.py`, `task_search.py`, `task_builds.py` (pause, resume, delete). The messages between a task
and its user are in `task_conversation.py`, notifications of progress in `services/notifications/task_notifications.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import Conflict, Invalid, NotFound
from coder.coderd.services.access.authorization import require
from coder.coderd.services.tasks.task_requests import missing_input
from coder.coderd.services.tasks.task_view import status_of_task
from coder.coderd.store.engine.names import as_id
from coder.coderd.store.tasks import system_tasks
from coder.coderd.store.tasks import tasks as store
from coder.coderd.store.tasks.tasks import TaskRow, TaskView
from coder.domain.access.policy import Object, Subject, Target

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context


def task_resource(row: TaskRow) -> Target:
    """Return the task as the policy sees it."""
    return Object("task", str(row.id), owner_id=row.owner_id, organization_id=row.organization_id)


async def load_task(ctx: Context, subject: Subject, owner_id: UUID, reference: str, action: str = "read") -> TaskView:
    """Return a task of `owner_id` by id or name. Raises NotFound (also without read permission), Forbidden."""
    task_id = as_id(reference)
    if task_id is not None:
        view = await ctx.db.read(system_tasks.get_view, task_id)
    else:
        view = await ctx.db.read(system_tasks.get_view_by_name, owner_id, reference.replace("\x00", ""))
    if view is None or view.task.owner_id != owner_id:
        raise NotFound
    require(subject, "read", task_resource(view.task))
    if action != "read":
        require(subject, action, task_resource(view.task))
    return view


async def update_input(ctx: Context, subject: Subject, owner_id: UUID, reference: str, prompt: str) -> None:
    """Replace the prompt of the next start. Raises NotFound, Forbidden, Invalid, Conflict (the task is not paused)."""
    view = await load_task(ctx, subject, owner_id, reference, "update")
    if not prompt.strip():
        raise missing_input()
    if "\x00" in prompt:
        raise Invalid("Validation failed.", validations=[("input", "must not contain NUL")])
    if status_of_task(ctx, view) != "paused":
        raise Conflict(
            "Unable to update task input, task must be paused.",
            "Please stop the task's workspace before updating the input.",
        )
    await ctx.db.run(store.set_prompt, view.task.id, prompt)
