"""An agent that has nothing to report does not wake up."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
import trio
import trio.testing

from coder.agent.reports import app_health
from coder.agent.reports.app_health import AppHealth
from coder.agent.reports.metadata import TICK, MetadataCollector
from coder.rpc.proto import agent_pb2

HOUR = 3600.0


class State:
    """Part of an agent's state that reports use."""

    def __init__(self, manifest: agent_pb2.Manifest | None) -> None:
        self.manifest = manifest


class WakeUps(trio.abc.Instrument):
    """Records the times at which any task ran."""

    def __init__(self) -> None:
        self.moments: set[float] = set()

    def before_task_step(self, _task: trio.lowlevel.Task) -> None:
        self.moments.add(trio.current_time())


def wake_ups(loop: Any, *arguments: Any) -> int:
    async def main() -> None:
        with trio.move_on_after(HOUR):
            await loop(*arguments)

    awake = WakeUps()
    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0), instruments=[awake])
    return len(awake.moments)


async def refuse(_request: object) -> object:
    raise AssertionError("there is nothing to send")


def test_no_metadata_no_wakeup() -> None:
    collector = MetadataCollector(State(agent_pb2.Manifest()))  # type: ignore[arg-type]
    assert wake_ups(collector.loop, refuse) <= 2


def manifest_with(every: int) -> agent_pb2.Manifest:
    manifest = agent_pb2.Manifest()
    description = manifest.metadata.add(key="load", script="uptime")
    description.interval.nanos = every
    return manifest


@pytest.mark.parametrize("every", [10, 60])
def test_metadata_wakes_when_due(every: int, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run(_self: object, _script: str, _timeout: float) -> tuple[str, str]:
        await trio.lowlevel.checkpoint()
        return "1", ""

    monkeypatch.setattr(MetadataCollector, "_run", run)
    collector, sent = MetadataCollector(State(manifest_with(every))), []  # type: ignore[arg-type]

    async def send(request: agent_pb2.BatchUpdateMetadataRequest) -> object:
        sent.append(trio.current_time())
        assert [one.key for one in request.metadata] == ["load"]
        return None

    turns = HOUR / every
    woken = wake_ups(collector.loop, send)
    assert turns - 1 <= len(sent) <= turns + 1
    gaps = [after - before for before, after in pairwise(sent)]
    assert all(abs(gap - every) <= TICK for gap in gaps)
    assert woken <= 2 * turns + 3


@pytest.mark.parametrize("every", [0, 3600])
async def test_cancelled_script_runs_again(
    every: int, monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    """A script that runs once would never be reported, and an hourly one an hour late."""
    begun: list[float] = []

    async def run(_self: object, _script: str, _timeout: float) -> tuple[str, str]:
        begun.append(trio.current_time())
        await trio.sleep(5)
        return "1", ""

    async def send(request: agent_pb2.BatchUpdateMetadataRequest) -> object:
        sent.extend(one.result.value for one in request.metadata)
        return None

    monkeypatch.setattr(MetadataCollector, "_run", run)
    collector, sent = MetadataCollector(State(manifest_with(every))), list[str]()  # type: ignore[arg-type]
    for seconds in (2, 60):
        with trio.move_on_after(seconds):
            await collector.loop(send)
    assert len(begun) == 2
    assert sent == ["1"]


def test_no_apps_no_probes() -> None:
    health = AppHealth(State(agent_pb2.Manifest()))  # type: ignore[arg-type]
    assert wake_ups(health.loop, refuse) <= 3


def test_health_change_is_reported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    up_from = 600.0
    begun: dict[str, float] = {}

    async def probe(_url: str, _timeout: float) -> bool:
        await trio.lowlevel.checkpoint()
        return trio.current_time() - begun["at"] > up_from

    monkeypatch.setattr(app_health, "probe", probe)
    manifest = agent_pb2.Manifest()
    app = manifest.apps.add(id=b"a" * 16)
    app.healthcheck.url, app.healthcheck.threshold = "http://127.0.0.1:1", 2
    app.healthcheck.interval.FromSeconds(30)
    reported: list[tuple[float, int]] = []

    async def send(request: agent_pb2.BatchUpdateAppHealthRequest) -> object:
        reported.append((trio.current_time() - begun["at"], request.updates[0].health))
        return None

    async def loop() -> None:
        begun["at"] = trio.current_time()
        await AppHealth(State(manifest)).loop(send)  # type: ignore[arg-type]

    woken = wake_ups(loop)
    states = [agent_pb2.INITIALIZING, agent_pb2.UNHEALTHY, agent_pb2.HEALTHY]
    assert [health for _, health in reported] == states
    assert all(at <= due + 2 for (at, _), due in zip(reported, (1, 90, up_from + 30), strict=True))
    assert woken <= HOUR / 30 + 10
