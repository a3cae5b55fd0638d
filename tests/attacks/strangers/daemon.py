"""Driver of the tries against a provisioner daemon: hostile servers, jobs, templates and states."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import trio
import trio.testing

from coder.provisionerd.config import DaemonConfig
from coder.provisionerd.daemon import run_daemon
from coder.rpc.proto import provisionerd_pb2 as pd
from coder.rpc.session import Session, open_session
from tests.attacks.strangers.kinds import Kind
from tests.kit.provisioners.scripted_job_server import FakeServer, echo_archive


@dataclass
class RawServer(FakeServer):
    """A server whose next connection answers with bytes; the one after it is genuine."""

    raw: list[tuple[bytes, ...]] = field(default_factory=list)

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Session]:
        if not self.raw:
            async with FakeServer.connect(self) as session:
                yield session
            return
        pieces = self.raw.pop(0)
        self.connections += 1
        ours, theirs = trio.testing.memory_stream_pair()
        async with trio.open_nursery() as nursery:

            async def attack() -> None:
                try:
                    await ours.receive_some()  # the daemon's first call
                    for piece in pieces:
                        await ours.send_all(piece)
                    await ours.aclose()
                except (trio.BrokenResourceError, trio.ClosedResourceError):
                    pass  # the daemon ended the connection first

            nursery.start_soon(attack)
            async with open_session(theirs, role="client") as session:
                yield session
            nursery.cancel_scope.cancel()


@dataclass
class DaemonAttacker:
    """A running daemon; `run` returns how the job of a try ended."""

    server: RawServer
    executors: Any
    folder: Path
    jobs: int = 0

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        # Otherwise each hostile connection makes the daemon wait longer before the next one.
        config = DaemonConfig(
            name="daemon",
            work_dir=self.folder,
            reconnect_first=0.01,
            reconnect_last=0.05,
            retry_first=0.01,
            retry_last=0.05,
        )
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run_daemon, self.server.connect, config, self.executors)
            yield
            nursery.cancel_scope.cancel()

    async def raw(self, one: Kind) -> None:
        """A connection of a hostile server; afterwards the daemon works for a genuine one."""
        self.server.raw.append(one.pieces)
        self.server.disconnect()
        await self.works()

    async def run(self, job: pd.AcquiredJob) -> pd.CompletedJob | pd.FailedJob:
        return await self._ended(job)

    async def works(self) -> None:
        """A job of another user succeeds."""
        self.jobs += 1
        job = pd.AcquiredJob(job_id=f"good-{self.jobs}", provisioner="echo", template_source_archive=echo_archive())
        job.workspace_build.SetInParent()
        ended = await self._ended(job)
        assert isinstance(ended, pd.CompletedJob) and ended.job_id == job.job_id, ended

    async def _ended(self, job: pd.AcquiredJob) -> pd.CompletedJob | pd.FailedJob:
        count = len(self.server.ended) + 1
        self.server.post(job)
        return await self.server.wait_ended(count)
