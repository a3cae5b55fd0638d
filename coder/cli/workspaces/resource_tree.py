"""Tree of a workspace's existing or planned resources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from coder.api.agents.agent_ports import WorkspaceAgentListeningPortsResponse
from coder.api.agents.agents import WorkspaceAgent
from coder.api.provisioning.jobs import MatchedProvisioners, ProvisionerJob
from coder.api.workspaces.builds import WorkspaceResource
from coder.api.workspaces.workspaces import Workspace
from coder.cli.core.command import Invocation
from coder.cli.declarations.workspaces.create import CreateOptions
from coder.cli.ui.choices import is_interactive
from coder.cli.ui.colour import CELL_STYLES, paint
from coder.cli.ui.output import say, since
from coder.cli.ui.progress import watch_job
from coder.client.answers import read
from coder.net.blocking import BlockingClient
from coder.net.errors import HttpError


def show_plan(
    invocation: Invocation[CreateOptions],
    client: BlockingClient,
    version_id: UUID,
    name: str,
    values: Sequence[Mapping[str, str]],
) -> None:
    """Plan the workspace and print its planned resources, before the confirmation on a terminal.

    Raise CoderError if the plan fails, as the build would fail too.
    """
    if invocation.options.yes or not is_interactive():
        return
    root = f"/api/v2/templateversions/{version_id}/dry-run"
    try:
        body = {"workspace_name": name, "rich_parameter_values": list(values)}
        job = read(client.request("POST", root, json=body), ProvisionerJob)
        matched = read(client.request("GET", f"{root}/{job.id}/matched-provisioners"), MatchedProvisioners)
    except HttpError as error:
        say(f"The resources cannot be planned: {error.message}")
        return
    if not matched.available:
        client.request("PATCH", f"{root}/{job.id}/cancel", expect=(200, 400, 403))
        say("The resources cannot be planned: no provisioner is connected.")
        return
    watch_job(client, f"{root}/{job.id}", ProvisionerJob)
    resources = read(client.request("GET", f"{root}/{job.id}/resources"), list[WorkspaceResource])
    say("\nPlanned resources:")
    for resource in resources:
        if resource.workspace_transition == "start" and not resource.hide:
            for line in planned_lines(resource):
                say(f"  {line}")
    say()


def planned_lines(resource: WorkspaceResource) -> list[str]:
    """Return the lines of a planned resource and its agents."""
    cost = f"  (costs {resource.daily_cost} a day)" if resource.daily_cost else ""
    agents = resource.agents or []
    return [f"{resource.type}.{resource.name}{cost}"] + [
        f"{_branch(index, len(agents))} {agent.name} ({agent.operating_system}, {agent.architecture})"
        for index, agent in enumerate(agents)
    ]


def head_line(workspace: Workspace, status: str) -> str:
    """Return the line with name, state, template, cost and remaining time."""
    build = workspace.latest_build
    star = "★ " if workspace.favorite and is_interactive() else ""
    parts = [
        f"{star}{workspace.owner_name}/{workspace.name}",
        paint(status, CELL_STYLES.get(status, "")),
        f"template {workspace.template_name} ({build.template_version_name})",
    ]
    if status == "Started":
        parts.append(f"up {since(build.job.completed_at) or '<1m'}")
    if build.daily_cost:
        parts.append(f"costs {build.daily_cost} a day")
    if workspace.outdated:
        parts.append("outdated: see coder update")
    return "  ".join(parts)


def agent_lines(client: BlockingClient, workspace: Workspace, resource: WorkspaceResource) -> list[str]:
    """Return the lines of a resource's agents: state, connection command, apps and listening ports."""
    agents, lines = resource.agents or [], []
    for index, agent in enumerate(agents):
        target = workspace.name if len(agents) == 1 else f"{workspace.name}.{agent.name}"
        health = agent.health.reason or "healthy"
        states = [paint(word, CELL_STYLES.get(word, "")) for word in (agent.status, agent.lifecycle_state, health)]
        platform = f"({agent.operating_system}, {agent.architecture})"
        rest = [agent.version] if agent.version else []
        lines.append(
            "  ".join([f"{_branch(index, len(agents))} {agent.name} {platform}", *states, *rest, f"coder ssh {target}"])
        )
        indent = "   " if index == len(agents) - 1 else "│  "
        lines += [f"{indent}{line}" for line in (*_app_lines(agent), *_port_lines(client, agent))]
    return lines


def _app_lines(agent: WorkspaceAgent) -> list[str]:
    lines = []
    for app in agent.apps:
        health = "" if app.health == "disabled" else f"  {paint(app.health, CELL_STYLES.get(app.health, ''))}"
        lines.append(f"app {app.slug}{health}")
    return lines


def _port_lines(client: BlockingClient, agent: WorkspaceAgent) -> list[str]:
    """Return the lines of listening ports; none if the agent is unreachable, since the tree is useful without them."""
    if agent.status != "connected":
        return []
    try:
        answer = client.request("GET", f"/api/v2/workspaceagents/{agent.id}/listening-ports")
    except HttpError:
        return []
    ports = read(answer, WorkspaceAgentListeningPortsResponse).ports
    return [f"port {port.port}  {port.process_name}".rstrip() for port in ports]


def _branch(index: int, count: int) -> str:
    return "└─" if index == count - 1 else "├─"
