"""Tasks: a prompt carried out in a workspace made for it. Creating, reading, listing, pausing, resuming, deleting.

What a task and its user say to each other is `task_conversation.py`; whom its progress is told,
`services/notifications/task_notifications.py`. A task and its workspace are made in one transaction and go in one.
"""

from __future__ import annotations

import secrets
import string
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

from msgspec import UNSET

from coder.api.agents.agents import WorkspaceAgentHealth
from coder.api.base.refusals import Conflict, Forbidden, Invalid, NotFound
from coder.api.tasks.tasks import CreateTaskRequest, Task, TasksListResponse, TaskStateEntry
from coder.api.workspaces.builds import WorkspaceBuild
from coder.base.ids import new_uuid
from coder.coderd.services.access.authorization import may, require
from coder.coderd.services.access.workspace_access import (
    load_workspace,
    readable_in,
    template_resource,
    workspace_resource,
)
from coder.coderd.services.agents.agent_view import health_of, status_of
from coder.coderd.services.foundation.uniqueness import told_as
from coder.coderd.services.people.query_terms import find_organization
from coder.coderd.services.workspaces.build_metrics import counted
from coder.coderd.services.workspaces.build_parameters import BuildTarget, enqueue_with_values
from coder.coderd.services.workspaces.build_requests import BuildRequest, BuildRules
from coder.coderd.services.workspaces.builds import QueuedBuild, enqueue_next, given_id, present_new, rules_of
from coder.coderd.services.workspaces.workspaces import CreateSpec, enqueue_first, name_taken
from coder.coderd.store.engine import names as name_store
from coder.coderd.store.engine.names import as_id, as_uuid
from coder.coderd.store.tasks import tasks as store
from coder.coderd.store.tasks.tasks import TaskFilter, TaskReaders, TaskRow, TaskView
from coder.coderd.store.templates import template_versions as version_store
from coder.coderd.store.templates import templates as template_store
from coder.coderd.store.workspaces import workspaces as workspace_store
from coder.domain.access.policy import Resource, Subject, allowed_ids, allowed_organizations, decide, scope_allows
from coder.domain.foundation.search import Terms, parse_query
from coder.domain.tasks import tasks as laws

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx
    from coder.coderd.store.workspaces.workspaces import WorkspaceView

_NIL = UUID(int=0)
_NAME_INDEXES = ("ix_tasks_owner_id_name_living", "ix_workspaces_owner_id_name_living")
_BAD_NAME = "Unable to create a Task with the provided name."
_LETTERS = string.ascii_lowercase + string.digits


def task_resource(row: TaskRow) -> Resource:
    return Resource("task", id=str(row.id), owner_id=row.owner_id, organization_id=row.organization_id)


# ---- creating


async def create_task(ctx: Context, subject: Subject, owner_id: UUID, body: CreateTaskRequest) -> Task:
    """A task, its workspace and that one's first start.

    Raises NotFound (no such version), Invalid (no input, no task in the template, a bad name, parameters), Forbidden,
    Conflict (the name is taken).
    """
    version_id = body.template_version_id
    if not body.input.strip():
        raise _no_input()
    organization_id = await ctx.db.read(_check_version, subject, version_id)
    if not decide(subject, "create", Resource("task", owner_id=owner_id, organization_id=organization_id)):
        raise Forbidden
    row = _new_row(owner_id, organization_id, body, ctx.clock.now())
    spec = CreateSpec(
        owner_id=owner_id,
        name=row.name,
        template_id=None,
        version_id=version_id,
        autostart_schedule=None,
        ttl_ms=None,
        automatic_updates="never",
        given={},
        preset_id=given_id(body.template_version_preset_id),
    )
    request = BuildRequest(
        transition="start", initiator_id=subject.user_id, version_id=version_id, given={}, preset_id=spec.preset_id
    )

    async def enqueue(request: BuildRequest) -> tuple[TaskView, str]:
        return await ctx.db.run(_create, subject, row, spec, request, rules_of(ctx), ctx.clock.now())

    with told_as(dict.fromkeys(_NAME_INDEXES, name_taken(row.name))), counted(ctx, request) as count:
        view, provisioner = await enqueue_with_values(ctx, request, BuildTarget(owner_id, None), enqueue)
        count(provisioner)
    return present_task(ctx, view)


def _no_input() -> Invalid:
    return Invalid("Task input is required.", validations=[("input", "must not be empty")])


async def _check_version(tx: Tx, subject: Subject, version_id: UUID) -> UUID:
    """The organization of a version whose workspaces can carry out tasks."""
    version = await version_store.get_version(tx, version_id)
    template = await template_store.get_template(tx, version.template_id) if version and version.template_id else None
    if version is None or template is None or not may(subject, "read", template_resource(template)):
        raise NotFound
    if not version.has_ai_task:
        raise Invalid('Template does not have a valid "coder_ai_task" resource.')
    return template.organization_id


def _new_row(owner_id: UUID, organization_id: UUID, body: CreateTaskRequest, now: datetime) -> TaskRow:
    for field, text in (("input", body.input), ("display_name", body.display_name or "")):
        if "\x00" in text:
            raise Invalid("Validation failed.", validations=[(field, "must not contain NUL")])
    display_name = (body.display_name or "").strip()
    bad = laws.explain_name(body.name) if body.name else ""
    if bad:
        raise Invalid(_BAD_NAME, bad)
    bad = laws.explain_display_name(display_name)
    if bad:
        raise Invalid("Unable to create a Task with the provided display name.", bad)
    suffix = "".join(secrets.choice(_LETTERS) for _ in range(4))
    return TaskRow(
        id=new_uuid(),
        organization_id=organization_id,
        owner_id=owner_id,
        name=body.name or laws.name_from_prompt(display_name or body.input, suffix),
        display_name=display_name or laws.display_name_from_prompt(body.input),
        workspace_id=None,
        template_version_id=body.template_version_id,
        prompt=body.input,
        created_at=now,
    )


async def _create(
    tx: Tx, subject: Subject, row: TaskRow, spec: CreateSpec, request: BuildRequest, rules: BuildRules, now: datetime
) -> tuple[TaskView, str]:
    """The task, and the provisioner of its first build."""
    queued, workspace = await enqueue_first(tx, subject, spec, request, None, rules, now)
    await store.insert_task(tx, replace(row, workspace_id=workspace.workspace.id))
    return await _read(tx, row.id), queued.view.job.provisioner


async def _read(tx: Tx, task_id: UUID) -> TaskView:
    view = await store.get_view(tx, task_id)
    if view is None:
        raise NotFound
    return view


# ---- reading


async def load_task(ctx: Context, subject: Subject, owner_id: UUID, reference: str, action: str = "read") -> TaskView:
    """A living task of `owner_id`, by id or name. Raises NotFound (also when it may not be read), Forbidden."""
    task_id = as_id(reference)
    if task_id is not None:
        view = await ctx.db.read(store.get_view, task_id)
    else:
        view = await ctx.db.read(store.get_view_by_name, owner_id, reference.replace("\x00", ""))
    if view is None or view.task.owner_id != owner_id:
        raise NotFound
    require(subject, "read", task_resource(view.task))
    if action != "read":
        require(subject, action, task_resource(view.task))
    return view


def status_of_task(ctx: Context, view: TaskView) -> str:
    """One of `laws.STATUSES`, now."""
    return laws.task_status(*_facts(ctx, view))


def _facts(ctx: Context, view: TaskView) -> tuple[laws.Build | None, laws.TaskAgent | None, str | None]:
    build = laws.Build(view.build.transition, view.build.status) if view.build else None
    if view.app is None:
        return build, None, None
    row = view.app.agent
    return build, laws.TaskAgent(status_of(row, ctx.clock.now()), row.lifecycle_state), view.app.health


def present_task(ctx: Context, view: TaskView) -> Task:
    """The API's shape of a task."""
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
        workspace_status=cast("Any", build.status) if build else UNSET,
        workspace_build_number=build.number if build else UNSET,
        workspace_agent_id=app.agent.id if app else None,
        workspace_agent_lifecycle=cast("Any", app.agent.lifecycle_state) if app else None,
        workspace_agent_health=WorkspaceAgentHealth(healthy=health.healthy, reason=health.reason or UNSET)
        if health
        else None,
        workspace_app_id=app.id if app else None,
        initial_prompt=row.prompt,
        status=cast("Any", status_of_task(ctx, view)),
        current_state=_current_state(ctx, view),
        created_at=row.created_at,
        updated_at=view.workspace_updated_at or row.created_at,
    )


def _current_state(ctx: Context, view: TaskView) -> TaskStateEntry | None:
    """What the app last said, or how far its start has come."""
    said, build = view.app_status, view.build
    if build is None or build.transition != "start":
        return None
    if said is not None:
        state = laws.APP_STATES.get(said.state, "working")
        return TaskStateEntry(timestamp=said.created_at, state=cast("Any", state), message=said.message, uri=said.uri)
    message = laws.startup_message(*_facts(ctx, view))
    if not message:
        return None
    return TaskStateEntry(timestamp=build.created_at, state="working", message=message, uri="")


async def list_tasks(
    ctx: Context, subject: Subject, query: str, *, limit: int = 0, offset: int = 0
) -> TasksListResponse:
    """The tasks `subject` may see and `query` asks for, newest first. Raises Invalid for a query with mistakes."""
    terms = parse_query(query.replace("\x00", ""), "owner")
    owner_id = await _owner(ctx, subject, terms)
    organization_id = await find_organization(ctx, subject, terms)
    status = terms.choice("status", laws.STATUSES)
    wrong = terms.refusals()
    if wrong:
        raise Invalid("Invalid task search query.", validations=[(item.field, item.detail) for item in wrong])
    if not scope_allows(subject, "read", "task"):
        return TasksListResponse(tasks=[], count=0)
    organizations = allowed_organizations(subject, "read", "task")
    own_in = readable_in(subject, "task", owner_id=subject.user_id)
    readers = TaskReaders(organizations is None, sorted(organizations or ()), subject.user_id, own_in)
    listed = allowed_ids(subject, "task")
    ids = None if listed is None else [found for found in map(as_uuid, listed) if found is not None]
    views = await ctx.db.read(store.list_views, TaskFilter(owner_id, organization_id, ids), readers)
    if status:
        views = [view for view in views if status_of_task(ctx, view) == status]
    page = views[offset : offset + limit] if limit else views[offset:]
    return TasksListResponse(tasks=[present_task(ctx, view) for view in page], count=len(views))


async def _owner(ctx: Context, subject: Subject, terms: Terms) -> UUID | None:
    text = terms.one("owner")
    if text in {"", "me"}:
        return subject.user_id if text else None
    named = as_id(text)
    if named is not None:
        return named  # an id tells nothing: only tasks that may be read are listed
    found = await ctx.db.read(name_store.find_user, text)
    if found is None or not may(subject, "read", Resource("user", id=str(found), owner_id=found)):
        terms.refuse(
            "owner",
            f'Query param "owner" has invalid value: user "{text}" either does not exist, or you are unauthorized '
            "to view them",
        )
        return None
    return found


# ---- changing


async def update_input(ctx: Context, subject: Subject, owner_id: UUID, reference: str, prompt: str) -> None:
    """Another prompt for the next start. Raises NotFound, Forbidden, Invalid, Conflict (the task is not paused)."""
    view = await load_task(ctx, subject, owner_id, reference, "update")
    if not prompt.strip():
        raise _no_input()
    if "\x00" in prompt:
        raise Invalid("Validation failed.", validations=[("input", "must not contain NUL")])
    if status_of_task(ctx, view) != "paused":
        raise Conflict(
            "Unable to update task input, task must be paused.",
            "Please stop the task's workspace before updating the input.",
        )
    await ctx.db.run(store.set_prompt, view.task.id, prompt)


async def pause(ctx: Context, subject: Subject, owner_id: UUID, reference: str) -> WorkspaceBuild:
    """Stops the task's workspace. Raises NotFound, Forbidden, Conflict (stopped already, or a build is active)."""
    workspace = await _workspace(ctx, subject, await load_task(ctx, subject, owner_id, reference, "update"), "stop")
    status = workspace.latest.status
    if status == "stopped":
        raise Conflict("Task workspace is already stopped.", f'Workspace status is "{status}".')
    request = BuildRequest(transition="stop", initiator_id=subject.user_id, reason="task_manual_pause")
    return await _build(ctx, subject, workspace, request)


async def resume(ctx: Context, subject: Subject, owner_id: UUID, reference: str) -> WorkspaceBuild:
    """Starts it again. Raises NotFound, Forbidden, Conflict (running already, or a build is active), Invalid."""
    workspace = await _workspace(ctx, subject, await load_task(ctx, subject, owner_id, reference, "update"), "start")
    status = workspace.latest.status
    if workspace.latest.build.transition == "start" and status in {"running", "pending", "starting"}:
        raise Conflict(f"Task workspace is already {status}.", f'Workspace status is "{status}".')
    request = BuildRequest(transition="start", initiator_id=subject.user_id, reason="task_resume")
    return await _build(ctx, subject, workspace, request)


async def _workspace(ctx: Context, subject: Subject, view: TaskView, action: str) -> WorkspaceView:
    if view.task.workspace_id is None:
        raise Conflict("Task does not have a workspace.", "Delete the task and create another one.")
    workspace = await load_workspace(ctx, subject, view.task.workspace_id)
    # Starting wakes a dormant workspace: it is judged as the workspace it will be.
    resource = workspace_resource(workspace.workspace, dormant=False if action == "start" else None)
    require(subject, action, resource)
    if workspace.workspace.deleted:
        raise Conflict("The task's workspace was deleted.", "Delete the task and create another one.")
    return workspace


async def _build(ctx: Context, subject: Subject, workspace: WorkspaceView, request: BuildRequest) -> WorkspaceBuild:
    row = workspace.workspace

    async def enqueue(request: BuildRequest) -> QueuedBuild:
        return await ctx.db.run(enqueue_next, subject, row.id, request, rules_of(ctx), ctx.clock.now())

    with counted(ctx, request) as count:
        queued = await enqueue_with_values(ctx, request, BuildTarget(row.owner_id, row.template_id, row.id), enqueue)
        count(queued.view.job.provisioner)
    return present_new(ctx, queued)


async def delete_task(ctx: Context, subject: Subject, owner_id: UUID, reference: str) -> None:
    """Forgets the task and deletes its workspace. Raises NotFound, Forbidden, Conflict (a build is active)."""
    view = await load_task(ctx, subject, owner_id, reference, "delete")
    workspace_id = view.task.workspace_id
    if workspace_id is not None:
        workspace = await load_workspace(ctx, subject, workspace_id)
        require(subject, "delete", workspace_resource(workspace.workspace))
    request = BuildRequest(transition="delete", initiator_id=subject.user_id)
    with counted(ctx, request) as count:
        queued = await ctx.db.run(_delete, subject, view.task, request, rules_of(ctx), ctx.clock.now())
        if queued is not None:
            count(queued.view.job.provisioner)


async def _delete(
    tx: Tx, subject: Subject, task: TaskRow, request: BuildRequest, rules: BuildRules, now: datetime
) -> QueuedBuild | None:
    await store.forget_task(tx, task.id, now)
    row = await workspace_store.get_workspace(tx, task.workspace_id) if task.workspace_id else None
    if row is None or row.deleted:
        return None
    return await enqueue_next(tx, subject, row.id, request, rules, now)
