"""Health indicators: limits, ages, and unknown values that never appear as good."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from coder.domain.agents import health_indicators
from coder.domain.agents.health_indicators import LIMITS, STALE, HostReading, PathReading

NOW = datetime(2026, 11, 22, tzinfo=UTC)
FINE = HostReading(10, 100, 10, 100, 0.0, 0.5, 2, 86_400.0, 0.1)
NEAR = PathReading(20.0, 0.0, 1, 0)


def test_healthy_machine_is_good() -> None:
    assert health_indicators.host_indicator(FINE, NOW, NOW).standing == "good"
    assert health_indicators.path_indicator(NEAR, NOW, NOW, NOW, connected=True).standing == "good"
    assert _agent().standing == "good"


def _agent(**rest: Any) -> health_indicators.HealthIndicator:
    values: dict[str, Any] = {
        "version": "v2.34.0",
        "server_version": "v2.34.0+abc",
        "connected": True,
        "last_seen": NOW,
        "restarts": 0,
    }
    return health_indicators.agent_indicator(**(values | {"now": NOW} | rest))


MEASURED_BY_SOME = {"memory_pressure", "reboot_pending"}


@pytest.mark.parametrize("name", [item.name for item in fields(HostReading) if item.name not in MEASURED_BY_SOME])
def test_unknown_value_makes_host_unknown(name: str) -> None:
    assert health_indicators.host_indicator(replace(FINE, **{name: None}), NOW, NOW).standing == "unknown"


@pytest.mark.parametrize("name", [field.name for field in fields(PathReading)])
def test_unknown_value_makes_path_unknown(name: str) -> None:
    assert (
        health_indicators.path_indicator(replace(NEAR, **{name: None}), NOW, NOW, NOW, connected=True).standing
        == "unknown"
    )


def test_stale_values_are_unknown() -> None:
    later = NOW + STALE + timedelta(seconds=1)
    for light in (
        health_indicators.host_indicator(FINE, NOW, later),
        health_indicators.path_indicator(NEAR, NOW, NOW, later, connected=True),
        health_indicators.path_indicator(NEAR, NOW, NOW, NOW, connected=False),
        health_indicators.host_indicator(None, None, NOW),
        health_indicators.indicator(()),
        _agent(version=""),
        _agent(last_seen=None),
    ):
        assert light.standing == "unknown", light
    shown = health_indicators.host_indicator(FINE, NOW, later).values[0]
    assert (shown.text, shown.at, shown.standing) == ("10 % of 100 B", NOW, "unknown")


@pytest.mark.parametrize("name", LIMITS)
def test_each_limit_has_three_sides(name: str) -> None:
    limit = LIMITS[name]
    for number, standing in ((0.0, "good"), (limit.warning, "warning"), (limit.bad, "bad"), (None, "unknown")):
        assert health_indicators.measured(name, number, "", NOW, NOW).standing == standing


def test_warning_values() -> None:
    assert health_indicators.host_indicator(replace(FINE, disk_used=98), NOW, NOW).standing == "bad"
    assert health_indicators.host_indicator(replace(FINE, clock_off_s=-3600.0), NOW, NOW).standing == "bad"
    assert health_indicators.host_indicator(replace(FINE, uptime_s=30.0), NOW, NOW).standing == "warning"
    assert health_indicators.host_indicator(replace(FINE, reboot_pending=True), NOW, NOW).standing == "warning"
    assert health_indicators.host_indicator(replace(FINE, reboot_pending=False), NOW, NOW).standing == "good"
    assert _agent(version="v2.33.0").standing == "warning"
    assert _agent(restarts=3).standing == "warning"
    assert _agent(connected=False).standing == "bad"
    assert (
        health_indicators.path_indicator(replace(NEAR, relayed=1), NOW, NOW, NOW, connected=True).standing == "warning"
    )
    assert health_indicators.path_indicator(replace(NEAR, direct=0), NOW, NOW, NOW, connected=True).standing == "good"
    bad_beside_unknown = replace(FINE, disk_used=98, load=None)
    assert health_indicators.host_indicator(bad_beside_unknown, NOW, NOW).standing == "bad"


@pytest.mark.parametrize(
    ("uptime", "shown"), [(1644.9, "27m24s ago"), (86_400.0, "24h0m ago"), (90_061.0, "25h1m ago"), (0.2, "0s ago")]
)
def test_times_are_written_as_everywhere(uptime: float, shown: str) -> None:
    values = {
        value.name: value for value in health_indicators.host_indicator(replace(FINE, uptime_s=uptime), NOW, NOW).values
    }
    assert values["reboot"].text == shown
