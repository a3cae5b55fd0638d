"""Events from two samples of a machine: sleep, a set clock and a changed network are distinguished."""

from __future__ import annotations

from typing import Any

import pytest

from coder.domain.agents import flight_events
from coder.domain.agents.flight_events import Sample

BASE = Sample(wall=1000.0, running=50.0, awake=50.0, boot_id="b1", oom_kills=3, addresses=("10.0.0.1",))


def _later(wall: float, running: float, awake: float, **rest: Any) -> Sample:
    values: dict[str, Any] = {"boot_id": "b1", "oom_kills": 3, "addresses": ("10.0.0.1",)} | rest
    return Sample(1000.0 + wall, 50.0 + running, 50.0 + awake, **values)


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (_later(5, 5, 5), []),
        (_later(9.9, 9.9, 9.9), []),
        (_later(10, 10, 10), [("stood_still", {"seconds": 10, "machine_slept": False})]),
        (_later(65, 65, 65), [("stood_still", {"seconds": 65, "machine_slept": False})]),
        (_later(65, 65, 6), [("stood_still", {"seconds": 65, "machine_slept": True})]),
        (_later(3605, 5, 5), [("clock_jumped", {"seconds": 3600})]),
        (_later(-3595, 5, 5), [("clock_jumped", {"seconds": -3600})]),
        (_later(5, 5, 5, addresses=()), [("network_changed", {"before": "10.0.0.1", "after": ""})]),
    ],
)
def test_between_two_samples(after: Sample, expected: Any) -> None:
    assert [(event.kind, event.data) for event in flight_events.between(BASE, after, 5.0)] == expected


def test_start_reports_previous_process_end() -> None:
    now = _later(60, 60, 60, oom_kills=4)
    assert flight_events.started(None, now, "died").data == {"previous": "none"}
    died = flight_events.started(BASE, now, "died").data
    assert (died["previous"], died["same_boot"], died["oom_kills"]) == ("died", True, 1)
    rebooted = flight_events.started(BASE, _later(60, 1, 1, boot_id="b2", oom_kills=0), "died").data
    assert rebooted["same_boot"] is False and "oom_kills" not in rebooted, "the counter restarted"
    assert flight_events.started(BASE, now, "stopped").data["previous"] == "stopped"
