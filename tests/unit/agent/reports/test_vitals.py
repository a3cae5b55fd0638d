"""Readings of an agent's machine: values, odd output of the system, and the body of a report."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from coder.agent.reports.vitals import pressure, read_host, report, uptime
from coder.agent.reports.volumes import read_volumes
from coder.api.agents.agent_health import AgentVitals
from coder.domain.agents.flight_events import FlightEvent

NOW = datetime(2026, 11, 22, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("some avg10=1.50 avg60=0.00 avg300=0.00 total=9\nfull avg10=0.50 avg60=0 avg300=0 total=0\n", 1.5),
        ("full avg10=0.50\n", None),
        ("some avg10=much\n", None),
        ("", None),
    ],
)
def test_memory_pressure(text: str, expected: float | None) -> None:
    assert pressure(text) == expected


def test_time_since_boot() -> None:
    assert uptime("350735.47 234388.90\n") == 350735.47
    assert uptime("") is None and uptime("x y") is None


async def test_report_matches_server_schema(tmp_path: Path) -> None:
    events = [FlightEvent(at, "started", {"previous": "died", "same_boot": True}) for at in (1e9, 1e300)]
    body = report(read_host((await read_volumes([tmp_path]))[tmp_path]) | {"direct": 1, "relayed": 0}, events, NOW)
    read = msgspec.json.decode(msgspec.json.encode(body), type=AgentVitals)
    assert read.sent_at == NOW and read.disk_total and read.cores
    assert [event.at.year for event in read.events] == [2001, 1970], "an invalid time becomes the epoch"
