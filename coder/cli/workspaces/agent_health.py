"""Health of an attached machine and the reasons of its disconnects, as text."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from coder.api.agents.agent_health import AgentDisconnect, AgentLight, AgentLights, LightValue
from coder.base.duration import format_duration
from coder.base.json_types import JsonObject
from coder.cli.ui.output import since
from coder.client.answers import read
from coder.net.blocking import BlockingClient, HttpAnswer
from coder.net.errors import HttpError

INDICATORS = ("host", "agent", "path")
_DISCONNECT_LIMIT = 3
"Number of disconnects listed below an agent; `health` lists ten."


@dataclass(frozen=True, slots=True)
class HealthAnswers:
    """Health report of an agent, with the server's answer."""

    lights: AgentLights
    disconnects: list[AgentDisconnect]
    answers: tuple[HttpAnswer, HttpAnswer]

    def json(self) -> JsonObject:
        indicators, disconnects = self.answers
        return {"lights": indicators.json(), "disconnects": disconnects.json()}


def health_lines(client: BlockingClient, agent_id: UUID, count: int = _DISCONNECT_LIMIT) -> list[str]:
    """Return the health lines; none for a server without health indicators."""
    try:
        answers = fetch_health(client, agent_id)
    except HttpError as error:
        if error.status == 404:
            return []
        raise
    return format_health(answers, count)


def format_health(answers: HealthAnswers, count: int) -> list[str]:
    """Return the lines of the health indicators, then of the latest disconnects."""
    lines = [_indicator_line(name, getattr(answers.lights, name)) for name in INDICATORS]
    return lines + [_disconnect_line(item) for item in answers.disconnects[:count]]


def fetch_health(client: BlockingClient, agent_id: UUID) -> HealthAnswers:
    path = f"/api/v2/workspaceagents/{agent_id}"
    indicators = client.request("GET", f"{path}/lights")
    disconnects = client.request("GET", f"{path}/disconnects")
    return HealthAnswers(
        read(indicators, AgentLights), read(disconnects, list[AgentDisconnect]), (indicators, disconnects)
    )


def _indicator_line(name: str, light: AgentLight) -> str:
    values = "; ".join(_value(value) for value in light.values)
    return f"{name:<5} {light.status:<7}  {values}"


def _value(value: LightValue) -> str:
    if value.at is None:
        return f"{value.name} unknown"
    mark = "" if value.status == "good" else f" ({value.status})"
    age = timedelta(seconds=round(value.age_seconds or 0))
    return f"{value.name} {value.value or '?'}{mark}, {format_duration(age)} old"


def _disconnect_line(item: AgentDisconnect) -> str:
    back = f", reconnected {since(item.returned_at)} ago" if item.returned_at else ", not reconnected"
    return f"disconnected {since(item.disconnected_at)} ago{back}: {item.cause} - {item.detail}"
