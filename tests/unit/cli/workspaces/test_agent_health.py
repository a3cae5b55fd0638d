"""Health indicators as lines."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from coder.api.agents.agent_health import AgentLight, AgentLights, LightValue
from coder.cli.workspaces.agent_health import HealthAnswers, format_health
from coder.net.blocking import HttpAnswer


@pytest.mark.parametrize(
    ("age", "text"), [(0.0, "0s"), (29.6, "30s"), (3_725.2, "1h2m5s"), (90_000.0, "25h0m0s"), (None, "0s")]
)
def test_ages_are_durations(age: float | None, text: str) -> None:
    value = LightValue("load", "0.50 per core", "warning", datetime(2026, 11, 22, tzinfo=UTC), age)
    light = AgentLight("warning", [value, LightValue("disk", "", "unknown", None, None)])
    none = HttpAnswer(200, {}, b"")
    host, *_ = format_health(HealthAnswers(AgentLights(light, light, light), [], (none, none)), 3)
    assert host == f"host  warning  load 0.50 per core (warning), {text} old; disk unknown"
