"""A server that never has a job and says so at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import trio

from coder.provisionerd.config import DaemonConfig
from coder.provisionerd.executors.echo import EchoExecutor
from coder.rpc.proto import provisionerd_pb2 as pd
from tests.kit.provisioners.scripted_job_server import FakeServer, running_daemon


@dataclass
class NoJobs(FakeServer):
    """Says at once, and each time it is asked, that there is no job."""

    asked: int = 0
    is_silent: bool = False

    async def _acquire(self, call: Any) -> None:
        self.asked += 1
        self._note()
        if not self.is_silent:
            await call.send(pd.AcquiredJob())
        await call.close()


@pytest.mark.parametrize("is_silent", [True, False])
async def test_offers_without_job_are_spaced(is_silent: bool, autojump_clock: trio.abc.Clock, tmp_path: Path) -> None:
    server = NoJobs(is_silent=is_silent)
    async with running_daemon(server, DaemonConfig(name="d", work_dir=tmp_path), {"echo": EchoExecutor()}):
        await server.wait_for(lambda: server.asked > 0)  # it waits for threads before, which take no simulated time
        await trio.sleep(120)
    assert 3 < server.asked < 60
