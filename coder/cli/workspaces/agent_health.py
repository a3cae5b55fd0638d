"""How a machine is and why it was away: lines in `coder show`, and `coder external-workspaces health`."""

from __future__ import annotations

import sys
from typing import Any

from coder.base.errors import CoderError
from coder.cli import session
from coder.cli.command import Command, Invocation, output_option
from coder.cli.failures import doing
from coder.cli.output import print_json, since
from coder.cli.workspaces.workspaces import find_workspace
from coder.net.blocking import BlockingClient
from coder.net.errors import HttpError

LIGHTS = ("host", "agent", "path")
_SHOWN = 3
"Disconnects below an agent; `health` shows ten."


def health_lines(client: BlockingClient, agent_id: str, shown: int = _SHOWN) -> list[str]:
    """Nothing at a server that knows no lights."""
    try:
        found = fetch_health(client, agent_id)
    except HttpError as error:
        if error.status == 404:
            return []
        raise
    return _lines(found, shown)


def _lines(found: dict[str, Any], shown: int) -> list[str]:
    lines = [_light_line(name, found["lights"][name]) for name in LIGHTS]
    return lines + [_disconnect_line(item) for item in found["disconnects"][:shown]]


def fetch_health(client: BlockingClient, agent_id: str) -> dict[str, Any]:
    """{lights, disconnects} as the server says them."""
    path = f"/api/v2/workspaceagents/{agent_id}"
    lights = client.request("GET", f"{path}/lights").json()
    return {"lights": lights, "disconnects": client.request("GET", f"{path}/disconnects").json()}


def _light_line(name: str, light: dict[str, Any]) -> str:
    values = "; ".join(_value(value) for value in light["values"])
    return f"{name:<5} {light['status']:<7}  {values}"


def _value(value: dict[str, Any]) -> str:
    if value["at"] is None:
        return f"{value['name']} unknown"
    mark = "" if value["status"] == "good" else f" ({value['status']})"
    return f"{value['name']} {value['value'] or '?'}{mark}, {value['age_seconds']:.0f}s old"


def _disconnect_line(item: dict[str, Any]) -> str:
    back = f", back {since(item['returned_at'])} ago" if item["returned_at"] else ", not back yet"
    return f"away {since(item['disconnected_at'])} ago{back}: {item['cause']} - {item['detail']}"


def _health(invocation: Invocation) -> int:
    client = session.client(invocation)
    name, _, wanted = invocation.args[0].partition(".")
    with doing("get workspace"):
        workspace = find_workspace(client, name)
    agents = [
        agent
        for resource in workspace["latest_build"]["resources"]
        for agent in resource.get("agents") or []
        if wanted in {"", agent["name"]}
    ]
    if not agents:
        raise CoderError(
            "no_agent",
            f"workspace {workspace['name']!r} has no agent" + (f" named {wanted!r}" if wanted else ""),
            "`coder show` lists its agents; one that is stopped has none.",
        )
    with doing("get the agent's health"):
        found = {agent["name"]: fetch_health(client, agent["id"]) for agent in agents}
    if invocation["output"] == "json":
        print_json(found)
        return 0
    for agent in agents:
        sys.stdout.write(f"{workspace['name']}.{agent['name']}  {agent['status']}\n")
        for line in _lines(found[agent["name"]], 10):
            sys.stdout.write(f"  {line}\n")
    return 0


HEALTH = Command(
    words="external-workspaces health",
    summary="Show how an attached machine is, and why it was away",
    usage="[user/]workspace[.agent]",
    run=_health,
    options=(output_option(("text", "json"), "text"),),
    min_args=1,
    max_args=1,
)
