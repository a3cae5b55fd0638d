"""Cancel storms: a server cancels jobs in every step, over connections that end meanwhile."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from coder.provisionerd.config import DaemonConfig
from coder.rpc.proto import provisioner_pb2 as pb
from coder.rpc.proto import provisionerd_pb2 as pd
from tests.kit.provisioners.scripted_job_server import FakeServer, echo_archive, running_daemon
from tests.unit.provisionerd.test_daemon import ECHO

STEPS = ["init", "plan", "graph", "apply"]
DISCONNECTS = [0, 1, 2]
"How often the connection ends when the server cancels."
ROUNDS = 30
"Jobs canceled in each step in the whole run."


def _hanging(name: str, step: str) -> pd.AcquiredJob:
    """Return a build whose step never ends."""
    log: list[Any] = [pb.Log(level=1, output=f"{name} waits")]  # type: ignore[arg-type]
    job = pd.AcquiredJob(job_id=name, provisioner="echo", template_source_archive=echo_archive(**{step: log}))
    job.workspace_build.SetInParent()
    return job


async def _storm(rounds: int, disconnects: list[int], folder: Path) -> None:
    server = FakeServer()
    config = DaemonConfig(name="d", work_dir=folder, reconnect_first=0.01, reconnect_last=0.05)
    config = dataclasses.replace(config, retry_first=0.01, retry_last=0.05)
    names: list[str] = []
    async with running_daemon(server, config, ECHO):
        for step, count, number in itertools.product(STEPS, disconnects, range(rounds)):
            names.append(f"{step} {count} {number}")
            server.canceled = False
            server.post(_hanging(names[-1], step))
            await server.wait_for(lambda: any(f"{names[-1]} waits" == line[3] for line in server.lines()[-5:]))
            server.canceled = True
            for _ in range(count):
                server.disconnect()
                await trio.testing.wait_all_tasks_blocked()
            failed = await server.wait_ended(len(names))
            assert isinstance(failed, pd.FailedJob) and failed.error == "canceled", (names[-1], failed)
        server.canceled = False
        job = pd.AcquiredJob(job_id="good", provisioner="echo", template_source_archive=echo_archive())
        job.workspace_build.SetInParent()
        server.post(job)
        assert isinstance(await server.wait_ended(len(names) + 1), pd.CompletedJob)
    assert [ended.job_id for ended in server.ended] == [*names, "good"]
    assert not list(folder.glob("job-*"))


async def test_canceled_jobs_end_once(autojump_clock: trio.abc.Clock, tmp_path: Path) -> None:
    await _storm(1, [0, 2], tmp_path)


@pytest.mark.soak
async def test_hundreds_of_canceled_jobs_end_once(autojump_clock: trio.abc.Clock, tmp_path: Path) -> None:
    await _storm(ROUNDS, DISCONNECTS, tmp_path)
