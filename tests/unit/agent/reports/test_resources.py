"""Readings: available values are reported, others omitted; a full window is pushed."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, cast

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from coder.agent.disk import DISK_TIMEOUT, THREADS
from coder.agent.reports import volumes
from coder.agent.reports.resources import Configuration, push_loop, read
from coder.rpc.proto import agent_pb2
from coder.rpc.session import Session


async def test_unreadable_values_are_omitted(tmp_path: Path) -> None:
    point = await read(True, [str(tmp_path)])
    assert 0 < point.memory.used <= point.memory.total
    assert [volume.volume for volume in point.volumes] == [str(tmp_path)]
    assert 0 < point.volumes[0].used <= point.volumes[0].total
    assert not (await read(False, [])).HasField("memory")


async def test_silent_volume_is_omitted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mock_clock: MockClock) -> None:
    """Memory and the other volumes are read; any number of connections holds one thread for the silent one."""
    answer, asked, looked = threading.Event(), list[Path](), list[Path]()
    points = list[Any]()

    async def ask() -> None:
        points.append(await read(True, paths))

    async def timeout_passes() -> None:
        here = volumes._THREADS.of(tmp_path / "here")
        while here.borrowed_tokens or THREADS.limiter().borrowed_tokens:
            await trio.lowlevel.checkpoint()
        await trio.testing.wait_all_tasks_blocked()
        mock_clock.jump(DISK_TIMEOUT)

    def usage(folder: Path) -> tuple[int, int]:
        if folder != tmp_path / "away":
            looked.append(folder)
            return 1, 2
        asked.append(folder)
        answer.wait(60)
        return 3, 4

    monkeypatch.setattr(volumes, "disk_usage", usage)
    paths = [str(tmp_path / name) for name in ("away", "here")]
    try:
        for number in range(1, 21):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(ask)
                while len(looked) < number:
                    await trio.lowlevel.checkpoint()
                await timeout_passes()
        for point in points:
            assert point.HasField("memory")
            assert [volume.volume for volume in point.volumes] == paths[1:]
        assert len(asked) == 1
        assert THREADS.limiter().borrowed_tokens == 0
    finally:
        answer.set()
    assert [volume.used for volume in (await read(False, paths)).volumes] == [3, 1]


class Server:
    """Answers like a session."""

    def __init__(self, config: Any) -> None:
        self.config = config
        self.pushed: list[int] = []

    async def call(self, name: str, request: Any, reply: Any) -> Any:
        if name.endswith("GetResourcesMonitoringConfiguration"):
            return self.config
        assert isinstance(request, agent_pb2.PushResourcesMonitoringUsageRequest)
        self.pushed.append(len(request.datapoints))
        return reply()


async def test_full_window_is_pushed() -> None:
    config = Configuration(config=Configuration.Config(num_datapoints=3, collection_interval_seconds=10))
    config.memory.enabled = True
    server = Server(config)
    rests: list[float] = []
    with trio.CancelScope() as scope:

        async def rest(seconds: float) -> None:
            rests.append(seconds)
            if len(rests) == 5:
                scope.cancel()
            await trio.lowlevel.checkpoint()

        await push_loop(cast("Session", server), rest)
    assert (server.pushed, rests) == ([3, 3, 3], [10] * 5)


async def test_nothing_monitored_ends_loop() -> None:
    server = Server(Configuration(config=Configuration.Config(num_datapoints=3, collection_interval_seconds=10)))
    with trio.fail_after(60):
        await push_loop(cast("Session", server))
    assert server.pushed == []
