"""How a machine is and why it was away, as lines for people."""

from __future__ import annotations

from typing import Any

from coder.cli.output import since
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
    return lines_of(found, shown)


def lines_of(found: dict[str, Any], shown: int) -> list[str]:
    """The lights, then the latest absences."""
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
