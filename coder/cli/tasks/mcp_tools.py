"""Tools of `coder exp mcp server` for the deployment: each sends one or two requests with the user's permissions."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from urllib.parse import quote

from coder.api.agents.agent_streams import WorkspaceAgentLog
from coder.api.provisioning.jobs import ProvisionerJobLog
from coder.api.templates.templates import Template
from coder.api.workspaces.builds import WorkspaceBuild
from coder.api.workspaces.workspaces import Workspace, WorkspacesResponse
from coder.base.json_types import Json
from coder.cli.tasks.app_status import Report
from coder.cli.tasks.mcp_protocol import Arguments, Tool
from coder.client.answers import read
from coder.net.blocking import BlockingClient, HttpAnswer

STATES = ("working", "idle", "complete", "failure")
_LOG_LINES = 500
"""Number of last log lines that a model gets."""


class _DeploymentTools:
    """Implementation of the tools, one method per tool, with requests as the logged-in user."""

    def __init__(self, client: BlockingClient) -> None:
        self._client = client

    def _get(self, path: str) -> HttpAnswer:
        return self._client.request("GET", f"/api/v2/{path}")

    def _forward_fields(self, path: str) -> Json:
        fields: Json = self._get(path).json()
        return fields

    def authenticated_user(self, _arguments: Arguments) -> Json:
        return self._forward_fields("users/me")

    def list_workspaces(self, arguments: Arguments) -> Json:
        answer = self._get(f"workspaces?q={quote('owner:' + arguments.text('owner', 'me'))}")
        return [_workspace(workspace) for workspace in read(answer, WorkspacesResponse).workspaces]

    def list_templates(self, _arguments: Arguments) -> Json:
        return [_template(template) for template in read(self._get("templates"), list[Template])]

    def get_workspace(self, arguments: Arguments) -> Json:
        owner, slash, name = arguments.text("workspace").partition("/")
        owner, name = (owner, name) if slash else ("me", owner)
        return self._forward_fields(f"users/{quote(owner, safe='')}/workspace/{quote(name, safe='')}")

    def create_workspace(self, arguments: Arguments) -> Json:
        values = [{"name": key, "value": str(value)} for key, value in arguments.members("rich_parameters").items()]
        body = {"name": arguments.text("name"), "template_version_id": arguments.text("template_version_id")}
        path = f"/api/v2/users/{quote(arguments.text('user', 'me'), safe='')}/workspaces"
        answer = self._client.request("POST", path, json={**body, "rich_parameter_values": values})
        return _workspace(read(answer, Workspace))

    def create_build(self, arguments: Arguments) -> Json:
        body = {"transition": arguments.text("transition")}
        if arguments.text("template_version_id"):
            body["template_version_id"] = arguments.text("template_version_id")
        path = f"/api/v2/workspaces/{_segment(arguments, 'workspace_id')}/builds"
        build = read(self._client.request("POST", path, json=body), WorkspaceBuild)
        return {"id": str(build.id), "transition": build.transition, "status": build.status}

    def parameters(self, arguments: Arguments) -> Json:
        return self._forward_fields(f"templateversions/{_segment(arguments, 'template_version_id')}/rich-parameters")

    def agent_logs(self, arguments: Arguments) -> str:
        answer = self._get(f"workspaceagents/{_segment(arguments, 'workspace_agent_id')}/logs")
        return _end_of(row.output for row in read(answer, list[WorkspaceAgentLog]))

    def build_logs(self, arguments: Arguments) -> str:
        return self._job_logs(f"workspacebuilds/{_segment(arguments, 'workspace_build_id')}/logs")

    def version_logs(self, arguments: Arguments) -> str:
        return self._job_logs(f"templateversions/{_segment(arguments, 'template_version_id')}/logs")

    def _job_logs(self, path: str) -> str:
        return _end_of(row.output for row in read(self._get(path), list[ProvisionerJobLog]))


def deployment_tools(client: BlockingClient) -> list[Tool]:
    """Return the tools that send requests as the logged-in user."""
    deployment = _DeploymentTools(client)
    return [
        Tool("coder_get_authenticated_user", "Get the logged-in user.", deployment.authenticated_user, {}),
        Tool(
            "coder_list_workspaces",
            "List the workspaces of a user.",
            deployment.list_workspaces,
            {"owner": ("string", "Username; defaults to the current user.")},
        ),
        Tool(
            "coder_get_workspace",
            "Get a workspace with its agents and apps.",
            deployment.get_workspace,
            {"workspace": ("string", "Name, or owner/name.")},
            ("workspace",),
        ),
        Tool(
            "coder_create_workspace",
            "Create a workspace; its first build runs in the background.",
            deployment.create_workspace,
            {
                "name": ("string", "Name of the new workspace."),
                "template_version_id": ("string", "Id of the template version, from coder_list_templates."),
                "user": ("string", "Owner; defaults to the current user."),
                "rich_parameters": ("object", "Values of the template's parameters by name."),
            },
            ("name", "template_version_id"),
        ),
        Tool(
            "coder_create_workspace_build",
            "Start, stop or delete a workspace.",
            deployment.create_build,
            {
                "workspace_id": ("string", "Id of the workspace."),
                "transition": ("string", "start, stop or delete."),
                "template_version_id": ("string", "Version to build with; defaults to the current one."),
            },
            ("workspace_id", "transition"),
        ),
        Tool("coder_list_templates", "List the templates the user can use.", deployment.list_templates, {}),
        Tool(
            "coder_template_version_parameters",
            "List the parameters of a template version.",
            deployment.parameters,
            {"template_version_id": ("string", "Id of the version.")},
            ("template_version_id",),
        ),
        Tool(
            "coder_get_workspace_agent_logs",
            "Get the last lines of an agent's log.",
            deployment.agent_logs,
            {"workspace_agent_id": ("string", "Id of the agent.")},
            ("workspace_agent_id",),
        ),
        Tool(
            "coder_get_workspace_build_logs",
            "Get the last lines of a build's log.",
            deployment.build_logs,
            {"workspace_build_id": ("string", "Id of the build.")},
            ("workspace_build_id",),
        ),
        Tool(
            "coder_get_template_version_logs",
            "Get the last lines of an import's log.",
            deployment.version_logs,
            {"template_version_id": ("string", "Id of the version.")},
            ("template_version_id",),
        ),
    ]


def _segment(arguments: Arguments, name: str) -> str:
    return quote(arguments.text(name), safe="")


def _end_of(lines: Iterable[str]) -> str:
    return "\n".join(deque(lines, _LOG_LINES))


def report_tool(tell: Callable[[Report], object]) -> Tool:
    """Return the tool for a model's reports on its task."""

    def report(arguments: Arguments) -> str:
        tell(Report(arguments.text("state"), arguments.text("summary"), arguments.text("link")))
        return "Thanks for reporting!"

    return Tool(
        "coder_report_task",
        "Report the progress of the task to the user: after each step, when you wait for an answer, and at the end.",
        report,
        {
            "summary": ("string", "What you do or did, in at most 160 characters."),
            "state": ("string", f"One of: {', '.join(STATES)}."),
            "link": ("string", "URL of the result, such as a pull request."),
        },
        ("summary", "state"),
    )


def _workspace(workspace: Workspace) -> dict[str, Json]:
    return {
        "id": str(workspace.id),
        "name": workspace.name,
        "owner_name": workspace.owner_name,
        "template_name": workspace.template_name,
        "template_id": str(workspace.template_id),
        "outdated": workspace.outdated,
        "status": workspace.latest_build.status,
        "latest_build_id": str(workspace.latest_build.id),
    }


def _template(template: Template) -> dict[str, Json]:
    return {
        "id": str(template.id),
        "name": template.name,
        "display_name": template.display_name,
        "description": template.description,
        "active_version_id": str(template.active_version_id),
    }
