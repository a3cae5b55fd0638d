"""`coder task`: create, watch and control tasks, which agents work on in separate workspaces."""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime
from urllib.parse import quote
from uuid import UUID

from coder.api.tasks.tasks import PauseTaskResponse, ResumeTaskResponse, Task, TaskLogsResponse, TasksListResponse
from coder.api.templates.parameters import Preset
from coder.api.templates.template_versions import TemplateVersion
from coder.api.templates.templates import Template
from coder.base.errors import CoderError
from coder.base.json_types import JsonObject, as_object
from coder.cli.core import session
from coder.cli.core.command import Invocation, implements
from coder.cli.core.failures import add_action_to_errors
from coder.cli.core.options import YesOption
from coder.cli.core.suggestions import name_hint
from coder.cli.declarations.tasks.tasks import (
    COLUMNS,
    CREATE,
    DELETE,
    LIST,
    LOGS,
    PAUSE,
    RESUME,
    SEND,
    STATUS,
    StdinOption,
    TaskCreateOptions,
    TaskListOptions,
    TaskLogsOptions,
    TaskResumeOptions,
    TaskStatusOptions,
)
from coder.cli.ui.output import (
    chosen_columns,
    confirm,
    fields_of,
    go_time,
    print_json,
    print_rows,
    print_table,
    say,
    since,
)
from coder.cli.ui.progress import watch_build
from coder.client.answers import read
from coder.net.blocking import BlockingClient, HttpAnswer

_FINISHED = {"complete", "failed"}
_TICK = 1.0
"""Seconds between polls of `task status --watch`."""
_ROOT = "/api/v2/tasks"


def _path(client: BlockingClient, reference: str) -> str:
    """Return the URL path of a task given as its name, its owner and name, or its id."""
    try:
        task_id = UUID(reference)
    except ValueError:
        owner, slash, name = reference.partition("/")
        if not slash:
            owner, name = "me", reference
        return f"{_ROOT}/{quote(owner, safe='')}/{quote(name, safe='')}"
    for task in read(client.request("GET", _ROOT), TasksListResponse).tasks:
        if task.id == task_id:
            return f"{_ROOT}/{task.owner_id}/{task.id}"
    raise CoderError(
        "no_task", f'task not found: "{reference}"', "List all tasks you can see with `coder task list --all`."
    )


def _ask(client: BlockingClient, reference: str) -> tuple[str, HttpAnswer]:
    """Return the task's URL path and the server's answer."""
    path = _path(client, reference)
    with add_action_to_errors(f'resolve task "{reference}"'):
        return path, client.request("GET", path)


def _fetch(client: BlockingClient, reference: str) -> tuple[str, Task]:
    path, answer = _ask(client, reference)
    return path, read(answer, Task)


def _ago(at: datetime) -> str:
    passed = since(at)
    return f"{passed} ago" if passed else ""


def _row(task: Task) -> dict[str, object]:
    state, health = task.current_state, task.workspace_agent_health
    own = fields_of(task)
    row = {column: own.get(column.replace(" ", "_")) for column in COLUMNS}
    return row | {
        "workspace agent health": ("healthy" if health.healthy else health.reason or "") if health else "",
        "state": state.state if state else "",
        "message": state.message if state else "",
        "state changed": _ago(state.timestamp if state else task.updated_at),
        "created at": go_time(task.created_at),
        "updated at": go_time(task.updated_at),
        "healthy": str(_healthy(task)).lower(),
    }


def _healthy(task: Task) -> bool:
    """Return whether the workspace runs, its agent is healthy and the task did not fail."""
    health = task.workspace_agent_health
    failed = task.current_state is not None and task.current_state.state == "failed"
    return task.workspace_status == "running" and health is not None and health.healthy and not failed


# ---- create


@implements(CREATE)
def _create(invocation: Invocation[TaskCreateOptions]) -> int:
    client = session.client(invocation)
    prompt = _prompt(invocation, invocation.args[0] if invocation.args else "")
    if not prompt:
        raise CoderError("no_input", "an input is required to start a task", "Give it as an argument or on --stdin.")
    version = _version(invocation, client)
    body: JsonObject = {"template_version_id": str(version.id), "input": prompt}
    if invocation.options.name:
        body["name"] = invocation.options.name
    preset = _preset(client, version.id, invocation.options.preset)
    if preset:
        body["template_version_preset_id"] = preset
    owner = quote(invocation.options.owner or "me", safe="")
    with add_action_to_errors("create task"):
        task = read(client.request("POST", f"{_ROOT}/{owner}", json=body), Task)
    if invocation.options.quiet:
        sys.stdout.write(f"{task.id}\n")
        return 0
    at = datetime.now(UTC).astimezone().strftime("%b %d %H:%M:%S")
    sys.stdout.write(f"The task {task.name} has been created at {at}!\n")
    return 0


def _prompt(invocation: Invocation[StdinOption], text: str) -> str:
    if not invocation.options.stdin:
        return text
    if text:
        raise CoderError("two_inputs", "the input was set twice", "Give it as an argument or on --stdin, not both.")
    return sys.stdin.read().strip()


def _version(invocation: Invocation[TaskCreateOptions], client: BlockingClient) -> TemplateVersion:
    """Return the version to run, of the selected template or of the only one that supports tasks."""
    template_name = invocation.options.template
    if template_name:
        known = read(client.request("GET", "/api/v2/templates"), list[Template])
        templates = [item for item in known if item.name == template_name]
    else:
        templates = read(client.request("GET", "/api/v2/templates?q=has-ai-task:true"), list[Template])
    organization = invocation.options.org
    if organization:
        templates = [
            template
            for template in templates
            if organization in {str(template.organization_id), template.organization_name}
        ]
    if not templates:
        missing = (
            f'no template found with the name "{template_name}"' if template_name else "no template supports tasks"
        )
        hint = 'A template for tasks has a "coder_ai_task" resource.'
        if template_name:
            known = read(client.request("GET", "/api/v2/templates"), list[Template])
            hint = name_hint(template_name, (item.name for item in known), "coder templates list")
        raise CoderError("no_template", missing, hint)
    if len(templates) > 1:
        names = ", ".join(sorted(f"{template.organization_name}/{template.name}" for template in templates))
        raise CoderError("ambiguous", f"several templates match: {names}", "Choose one with --template and --org.")
    template, name = templates[0], invocation.options.template_version
    if name:
        with add_action_to_errors("get template version"):
            answer = client.request("GET", f"/api/v2/templates/{template.id}/versions/{quote(name, safe='')}")
    else:
        answer = client.request("GET", f"/api/v2/templateversions/{template.active_version_id}")
    return read(answer, TemplateVersion)


def _preset(client: BlockingClient, version_id: UUID, name: str) -> str:
    """Return the id of a preset by name; without a name, the version's default preset."""
    if name.lower() == "none":
        return ""
    presets = read(client.request("GET", f"/api/v2/templateversions/{version_id}/presets"), list[Preset])
    for preset in presets:
        if preset.Name == name if name else preset.Default:
            return preset.ID
    if not name:
        return ""
    raise CoderError(
        "preset", f'preset "{name}" not found', f"Known: {', '.join(preset.Name for preset in presets) or 'none'}"
    )


# ---- list, status, logs


@implements(LIST)
def _list(invocation: Invocation[TaskListOptions]) -> int:
    client = session.client(invocation)
    terms = []
    if invocation.options.user:
        terms.append(f'owner:"{invocation.options.user}"')
    elif not invocation.options.all:
        terms.append("owner:me")
    if invocation.options.status:
        terms.append(f"status:{invocation.options.status}")
    with add_action_to_errors("list tasks"):
        answer = client.request("GET", f"{_ROOT}?q={quote(' '.join(terms))}")
        tasks = read(answer, TasksListResponse).tasks
    if invocation.options.quiet:
        sys.stdout.writelines(f"{task.id}\n" for task in tasks)
        return 0
    if not tasks and invocation.options.output != "json":
        say("No tasks found.")
        return 0
    print_rows(invocation, lambda: [_row(task) for task in tasks], lambda: as_object(answer.json())["tasks"] or [])
    return 0


@implements(STATUS)
def _status(invocation: Invocation[TaskStatusOptions]) -> int:
    client = session.client(invocation)
    path, answer = _ask(client, invocation.args[0])
    printed = None
    while True:
        task = read(answer, Task)
        key = (task.status, task.current_state, _healthy(task))
        if key != printed:
            _print_status(invocation, task, answer, heading=printed is None)
            printed = key
        is_finished = task.current_state is not None and task.current_state.state in _FINISHED
        ended = is_finished or task.status in {"paused", "error"}
        if not invocation.options.watch or ended:
            return 0
        time.sleep(_TICK)
        answer = client.request("GET", path)


def _print_status(invocation: Invocation[TaskStatusOptions], task: Task, answer: HttpAnswer, *, heading: bool) -> None:
    if invocation.options.output == "json":
        print_json(answer.json())
        return
    columns = chosen_columns(invocation)
    if heading:
        print_table(columns, [_row(task)])
        return
    row = _row(task)
    sys.stdout.write(
        "  ".join(str(row[column]).replace("True", "true").replace("False", "false") for column in columns)
    )
    sys.stdout.flush()


@implements(LOGS)
def _logs(invocation: Invocation[TaskLogsOptions]) -> int:
    client = session.client(invocation)
    path, task = _fetch(client, invocation.args[0])
    with add_action_to_errors("get task logs"):
        answer = client.request("GET", f"{path}/logs")
        logs = read(answer, TaskLogsResponse)
    if logs.snapshot:
        left = f" as of {go_time(logs.snapshot_at)}" if logs.snapshot_at else ""
        say(f"Task is {task.status}; showing the conversation before it stopped{left}.")
    if invocation.options.output == "json":
        print_json(as_object(answer.json())["logs"])
        return 0
    rows = [{**fields_of(line), "time": go_time(line.time)} for line in logs.logs]
    print_table(chosen_columns(invocation), rows)
    return 0


# ---- send, pause, resume, delete


@implements(SEND)
def _send(invocation: Invocation[StdinOption]) -> int:
    client = session.client(invocation)
    text = _prompt(invocation, invocation.args[1] if len(invocation.args) > 1 else "")
    if not text:
        raise CoderError("no_input", "an input is required", "Give it as an argument or on --stdin.")
    path, _ = _fetch(client, invocation.args[0])
    with add_action_to_errors("send input to the task"):
        client.request("POST", f"{path}/send", json={"input": text}, expect=(204,))
    return 0


@implements(DELETE)
def _delete(invocation: Invocation[YesOption]) -> int:
    client = session.client(invocation)
    tasks = [_fetch(client, reference) for reference in invocation.args]
    names = ", ".join(f"{task.owner_name}/{task.name}" for _, task in tasks)
    confirm(invocation.options.yes, f"Delete these tasks: {names}?")
    for path, task in tasks:
        with add_action_to_errors(f'delete task "{task.name}"'):
            client.request("DELETE", path, expect=(202, 204))
        at = datetime.now(UTC).astimezone().strftime("%b %d %H:%M:%S")
        sys.stdout.write(f"Deleted task {task.owner_name}/{task.name} at {at}\n")
    return 0


@implements(PAUSE)
def _pause(invocation: Invocation[YesOption]) -> int:
    client = session.client(invocation)
    path, task = _fetch(client, invocation.args[0])
    name = f"{task.owner_name}/{task.name}"
    if task.status == "paused":
        raise CoderError("paused", f"task {name} is already paused", "Resume it with `coder task resume`.")
    confirm(invocation.options.yes, f"Pause task {name}?")
    with add_action_to_errors(f'pause task "{name}"'):
        build = read(client.request("POST", f"{path}/pause", expect=(202,)), PauseTaskResponse).workspace_build
    if build is not None:
        watch_build(client, build)
    sys.stdout.write(f"\nThe {name} task has been paused at {datetime.now().astimezone():%b %d %H:%M:%S}!\n")
    return 0


@implements(RESUME)
def _resume(invocation: Invocation[TaskResumeOptions]) -> int:
    client = session.client(invocation)
    path, task = _fetch(client, invocation.args[0])
    name = f"{task.owner_name}/{task.name}"
    if task.status in {"active", "initializing", "pending"}:
        raise CoderError("running", f"task {name} is already {task.status}", "Only a paused task can be resumed.")
    confirm(invocation.options.yes, f"Resume task {name}?")
    with add_action_to_errors(f'resume task "{name}"'):
        build = read(client.request("POST", f"{path}/resume", expect=(202,)), ResumeTaskResponse).workspace_build
    if invocation.options.no_wait or build is None:
        sys.stdout.write(f"Resuming task {name} in the background.\n")
        return 0
    watch_build(client, build)
    sys.stdout.write(f"\nThe {name} task has been resumed at {datetime.now().astimezone():%b %d %H:%M:%S}!\n")
    return 0
