"""Tools of `coder exp mcp server` for tasks and templates; their names are the original's."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from urllib.parse import quote
from uuid import UUID

from coder.api.tasks.tasks import Task, TaskLogsResponse, TasksListResponse
from coder.api.templates.template_versions import TemplateVersion
from coder.api.templates.templates import Template
from coder.base.errors import CoderError
from coder.base.json_types import Json
from coder.cli.tasks.mcp_protocol import Arguments, Tool
from coder.client.answers import read
from coder.net.blocking import BlockingClient

_ORGANIZATION = "/api/v2/organizations/default"
MAX_FILES = 10 << 20
"""Maximum bytes of a template's sources: the server's limit."""


class _Tasks:
    """Implementation of the tools, one method per tool."""

    def __init__(self, client: BlockingClient) -> None:
        self._client = client

    def create(self, arguments: Arguments) -> Json:
        body = {"template_version_id": arguments.text("template_version_id"), "input": arguments.text("input")}
        if arguments.text("template_version_preset_id"):
            body["template_version_preset_id"] = arguments.text("template_version_preset_id")
        owner = quote(arguments.text("user", "me"), safe="")
        return _task(read(self._client.request("POST", f"/api/v2/tasks/{owner}", json=body), Task))

    def list(self, arguments: Arguments) -> Json:
        terms = [f"owner:{arguments.text('user', 'me')}"]
        if arguments.text("status"):
            terms.append(f"status:{arguments.text('status')}")
        tasks = self._client.request("GET", f"/api/v2/tasks?q={quote(' '.join(terms))}")
        return {"tasks": [_task(task) for task in read(tasks, TasksListResponse).tasks]}

    def status(self, arguments: Arguments) -> Json:
        task = read(self._client.request("GET", self._path(arguments)), Task)
        state = task.current_state
        current_state = {"state": state.state, "message": state.message, "uri": state.uri} if state else None
        return {"status": task.status, "state": current_state}

    def send(self, arguments: Arguments) -> str:
        self._client.request("POST", f"{self._path(arguments)}/send", json={"input": arguments.text("input")})
        return "Input sent to task successfully."

    def logs(self, arguments: Arguments) -> Json:
        logs = read(self._client.request("GET", f"{self._path(arguments)}/logs"), TaskLogsResponse)
        return {"logs": [{"type": log.type, "content": log.content, "time": log.time.isoformat()} for log in logs.logs]}

    def delete(self, arguments: Arguments) -> str:
        self._client.request("DELETE", self._path(arguments))
        return "Task deleted successfully."

    def _path(self, arguments: Arguments) -> str:
        """Return the URL path of a task given as its name, its owner and name, or its id."""
        text = arguments.text("task_id")
        owner, slash, name = text.partition("/")
        if slash:
            return f"/api/v2/tasks/{quote(owner, safe='')}/{quote(name, safe='')}"
        try:
            task_id = UUID(text)
        except ValueError:
            return f"/api/v2/tasks/me/{quote(text, safe='')}"
        for task in read(self._client.request("GET", "/api/v2/tasks"), TasksListResponse).tasks:
            if task.id == task_id:
                return f"/api/v2/tasks/{task.owner_id}/{task.id}"
        raise CoderError("no_task", f'task not found: "{text}"')


class _Templates:
    """Implementation of the tools, one method per tool."""

    def __init__(self, client: BlockingClient) -> None:
        self._client = client

    def upload(self, arguments: Arguments) -> Json:
        packed = _tar(arguments.members("files"))
        kind = (("Content-Type", "application/x-tar"),)
        answer = self._client.request("POST", "/api/v2/files", body=packed, headers=kind).json(dict)
        return {"id": answer.get("hash", "")}

    def create_version(self, arguments: Arguments) -> Json:
        body = {"file_id": arguments.text("file_id"), "storage_method": "file", "provisioner": "terraform"}
        if arguments.text("template_id"):
            body["template_id"] = arguments.text("template_id")
        version = read(self._client.request("POST", f"{_ORGANIZATION}/templateversions", json=body), TemplateVersion)
        return {"id": str(version.id), "name": version.name, "status": version.job.status}

    def create(self, arguments: Arguments) -> Json:
        texts = {
            name: arguments.text(name)
            for name in ("name", "display_name", "description", "icon")
            if arguments.text(name)
        }
        body = {**texts, "template_version_id": arguments.text("version_id")}
        template = read(self._client.request("POST", f"{_ORGANIZATION}/templates", json=body), Template)
        return {"id": str(template.id), "name": template.name, "active_version_id": str(template.active_version_id)}

    def promote(self, arguments: Arguments) -> str:
        path = f"/api/v2/templates/{quote(arguments.text('template_id'), safe='')}/versions"
        self._client.request("PATCH", path, json={"id": arguments.text("template_version_id")})
        return "Successfully updated active version!"

    def delete(self, arguments: Arguments) -> str:
        self._client.request("DELETE", f"/api/v2/templates/{quote(arguments.text('template_id'), safe='')}")
        return "Successfully deleted template!"


def _tar(files: Mapping[str, Json]) -> bytes:
    texts = {name: text for name, text in files.items() if isinstance(text, str)}
    if not files or len(texts) != len(files):
        raise CoderError("mcp", "files must be a non-empty object of names and contents")
    if sum(len(text) for text in texts.values()) > MAX_FILES:
        raise CoderError("mcp", f"the files are larger than {MAX_FILES >> 20} MiB together")
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for name, text in texts.items():
            content = text.encode()
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(content), 0o644
            archive.addfile(info, io.BytesIO(content))
    return data.getvalue()


def _task(task: Task) -> dict[str, Json]:
    return {
        "id": str(task.id),
        "name": task.name,
        "owner_name": task.owner_name,
        "template_name": task.template_name,
        "initial_prompt": task.initial_prompt,
        "status": task.status,
        "state": task.current_state.state if task.current_state else None,
        "workspace_id": str(task.workspace_id) if task.workspace_id else None,
    }


_TASK = {"task_id": ("string", "Name, owner/name, or id of the task.")}
_TEMPLATE = {"template_id": ("string", "Id of the template.")}


def task_tools(client: BlockingClient) -> list[Tool]:
    """Return the tools for tasks."""
    tasks = _Tasks(client)
    return [
        Tool(
            "coder_create_task",
            "Create a task: an agent works on it in a new workspace.",
            tasks.create,
            {
                "input": ("string", "Prompt that describes the task."),
                "template_version_id": ("string", "Version of a template that supports tasks."),
                "template_version_preset_id": ("string", "Preset of that version."),
                "user": ("string", "Owner; defaults to the current user."),
            },
            ("input", "template_version_id"),
        ),
        Tool("coder_delete_task", "Delete a task and its workspace.", tasks.delete, _TASK, ("task_id",)),
        Tool(
            "coder_list_tasks",
            "List the tasks of a user.",
            tasks.list,
            {
                "status": ("string", "List only tasks with this status."),
                "user": ("string", "Owner; defaults to the current user."),
            },
        ),
        Tool("coder_get_task_status", "Get the status of a task.", tasks.status, _TASK, ("task_id",)),
        Tool(
            "coder_send_task_input",
            "Send input to a task's agent.",
            tasks.send,
            {**_TASK, "input": ("string", "Input to send.")},
            ("task_id", "input"),
        ),
        Tool(
            "coder_get_task_logs",
            "List the conversation between a task's agent and its user.",
            tasks.logs,
            _TASK,
            ("task_id",),
        ),
    ]


def template_tools(client: BlockingClient) -> list[Tool]:
    """Return the tools for templates."""
    templates = _Templates(client)
    return [
        Tool(
            "coder_upload_tar_file",
            "Upload a template's sources and return their id, for coder_create_template_version.",
            templates.upload,
            {"files": ("object", "Content of each file by its name.")},
            ("files",),
        ),
        Tool(
            "coder_create_template_version",
            "Import uploaded sources as a version of a template.",
            templates.create_version,
            {
                "file_id": ("string", "Id of the uploaded sources."),
                "template_id": ("string", "Template of the version; omit it for a new template."),
            },
            ("file_id",),
        ),
        Tool(
            "coder_create_template",
            "Create a template from an imported version.",
            templates.create,
            {
                "name": ("string", "Name: letters, digits and hyphens."),
                "display_name": ("string", "Display name."),
                "description": ("string", "One sentence."),
                "icon": ("string", "URL of the icon."),
                "version_id": ("string", "Id of the version."),
            },
            ("name", "version_id"),
        ),
        Tool(
            "coder_update_template_active_version",
            "Make this the active version for new workspaces.",
            templates.promote,
            {**_TEMPLATE, "template_version_id": ("string", "Id of the version.")},
            ("template_id", "template_version_id"),
        ),
        Tool(
            "coder_delete_template",
            "Delete a template that no workspace uses.",
            templates.delete,
            _TEMPLATE,
            ("template_id",),
        ),
    ]
