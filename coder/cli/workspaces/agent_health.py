"""How a machine is and why it was away, as lines for people."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from coder.api.agents.agent_health import AgentDisconnect, AgentLight, AgentLights, LightValue
from coder.base.duration import format_duration
from coder.cli.output import since
from coder.client.answers import read
from coder.net.blocking import BlockingClient, HttpAnswer
from coder.net.errors import HttpError

LIGHTS = ("host", "agent", "path")
_SHOWN = 3
"Disconnects below an agent; `health` shows ten."


@dataclass(frozen=True, slots=True)
class Health:
    """What the server knows of an agent, and how it said it."""

    lights: AgentLights
    disconnects: list[AgentDisconnect]
    answers: tuple[HttpAnswer, HttpAnswer]

    def json(self) -> dict[str, object]:
        lights, disconnects = self.answers
        return {"lights": lights.json(), "disconnects": disconnects.json()}


def health_lines(client: BlockingClient, agent_id: UUID, shown: int = _SHOWN) -> list[str]:
    """Nothing at a server that knows no lights."""
    try:
        found = fetch_health(client, agent_id)
    except HttpError as error:
        if error.status == 404:
            return []
        raise
    return lines_of(found, shown)


def lines_of(found: Health, shown: int) -> list[str]:
    """The lights, then the latest absences."""
    lines = [_light_line(name, getattr(found.lights, name)) for name in LIGHTS]
    return lines + [_disconnect_line(item) for item in found.disconnects[:shown]]


def fetch_health(client: BlockingClient, agent_id: UUID) -> Health:
    path = f"/api/v2/workspaceagents/{agent_id}"
    lights = client.request("GET", f"{path}/lights")
    disconnects = client.request("GET", f"{path}/disconnects")
    return Health(read(lights, AgentLights), read(disconnects, list[AgentDisconnect]), (lights, disconnects))


def _light_line(name: str, light: AgentLight) -> str:
    values = "; ".join(_value(value) for value in light.values)
    return f"{name:<5} {light.status:<7}  {values}"


def _value(value: LightValue) -> str:
    if value.at is None:
        return f"{value.name} unknown"
    mark = "" if value.status == "good" else f" ({value.status})"
    age = timedelta(seconds=round(value.age_seconds or 0))
    return f"{value.name} {value.value or '?'}{mark}, {format_duration(age)} old"


def _disconnect_line(item: AgentDisconnect) -> str:
    back = f", back {since(item.returned_at)} ago" if item.returned_at else ", not back yet"
    return f"away {since(item.disconnected_at)} ago{back}: {item.cause} - {item.detail}"
