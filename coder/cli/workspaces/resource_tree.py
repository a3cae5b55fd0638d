"""Resources as a tree: what a workspace is made of, or will be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from coder.cli.choices import is_interactive
from coder.cli.colour import CELL_STYLES, paint
from coder.cli.command import Invocation
from coder.cli.output import say, since
from coder.cli.progress import watch_job
from coder.net.blocking import BlockingClient
from coder.net.errors import HttpError


def show_plan(
    invocation: Invocation, client: BlockingClient, version_id: str, name: str, values: Sequence[Mapping[str, str]]
) -> None:
    """Plans the workspace without making it and says what it would be made of: to a person, before being asked.

    Raises CoderError when the plan fails: the build would, too.
    """
    if invocation["yes"] or not is_interactive():
        return
    root = f"/api/v2/templateversions/{version_id}/dry-run"
    try:
        job = client.request("POST", root, json={"workspace_name": name, "rich_parameter_values": list(values)}).json()
        matched = client.request("GET", f"{root}/{job['id']}/matched-provisioners").json()
    except HttpError as error:
        say(f"What it will be made of cannot be said: {error.message}")
        return
    if not matched["available"]:
        client.request("PATCH", f"{root}/{job['id']}/cancel", expect=(200, 400, 403))
        say("What it will be made of cannot be said: no provisioner daemon is there to plan it.")
        return
    watch_job(client, f"{root}/{job['id']}/logs", f"{root}/{job['id']}", is_job=True)
    resources = client.request("GET", f"{root}/{job['id']}/resources").json() or []
    say("\nThis is what it will be made of:")
    for resource in resources:
        if resource["workspace_transition"] == "start" and not resource.get("hide"):
            for line in planned_lines(resource):
                say(f"  {line}")
    say()


def planned_lines(resource: Mapping[str, Any]) -> list[str]:
    """A resource that is not there yet, and its agents."""
    cost = f"  (costs {resource['daily_cost']} a day)" if resource.get("daily_cost") else ""
    agents = resource.get("agents") or []
    return [f"{resource['type']}.{resource['name']}{cost}"] + [
        f"{_branch(index, len(agents))} {agent['name']} ({agent['operating_system']}, {agent['architecture']})"
        for index, agent in enumerate(agents)
    ]


def head_line(workspace: Mapping[str, Any], status: str) -> str:
    """Name, state, template, and what it costs and how long it runs, where it does."""
    build = workspace["latest_build"]
    star = "★ " if workspace.get("favorite") and is_interactive() else ""
    parts = [
        f"{star}{workspace['owner_name']}/{workspace['name']}",
        paint(status, CELL_STYLES.get(status, "")),
        f"template {workspace['template_name']} ({build['template_version_name']})",
    ]
    if status == "Started":
        parts.append(f"up {since(build['job'].get('completed_at')) or '<1m'}")
    if build["daily_cost"]:
        parts.append(f"costs {build['daily_cost']} a day")
    if workspace["outdated"]:
        parts.append("outdated: see coder update")
    return "  ".join(parts)


def agent_lines(client: BlockingClient, workspace: Mapping[str, Any], resource: Mapping[str, Any]) -> list[str]:
    """The agents of a resource: how they are, how to get there, their apps and the ports that listen."""
    agents, lines = resource.get("agents") or [], []
    for index, agent in enumerate(agents):
        target = workspace["name"] if len(agents) == 1 else f"{workspace['name']}.{agent['name']}"
        health = agent["health"].get("reason") or "healthy"
        states = [
            paint(word, CELL_STYLES.get(word, "")) for word in (agent["status"], agent["lifecycle_state"], health)
        ]
        where = f"({agent['operating_system']}, {agent['architecture']})"
        rest = [agent["version"]] if agent.get("version") else []
        lines.append(
            "  ".join([f"{_branch(index, len(agents))} {agent['name']} {where}", *states, *rest, f"coder ssh {target}"])
        )
        indent = "   " if index == len(agents) - 1 else "│  "
        lines += [f"{indent}{line}" for line in (*_app_lines(agent), *_port_lines(client, agent))]
    return lines


def _app_lines(agent: Mapping[str, Any]) -> list[str]:
    found = []
    for app in agent.get("apps") or []:
        health = "" if app["health"] == "disabled" else f"  {paint(app['health'], CELL_STYLES.get(app['health'], ''))}"
        found.append(f"app {app['slug']}{health}")
    return found


def _port_lines(client: BlockingClient, agent: Mapping[str, Any]) -> list[str]:
    """Ports somebody listens on. Nothing where the agent cannot be asked: the tree is worth showing without."""
    if agent["status"] != "connected":
        return []
    try:
        ports = client.request("GET", f"/api/v2/workspaceagents/{agent['id']}/listening-ports").json()["ports"]
    except HttpError:
        return []
    return [f"port {port['port']}  {port['process_name']}".rstrip() for port in ports or []]


def _branch(index: int, count: int) -> str:
    return "└─" if index == count - 1 else "├─"
