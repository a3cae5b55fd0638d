"""A server's builds on simulated time: its queue, calls, reaper and provisioner daemons, on a real database.

Lives here: servers on one database, and daemons connected to them. Does not live here: what happens to them, and what
must hold (tests/simnet/fleet_builds.py). Work on the database takes no simulated time: everything stands still until
a transaction has ended, so transactions never overlap. Not simulated: HTTP, and Terraform.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import trio
from sqlalchemy import event

from coder.coderd.app import new_context
from coder.coderd.config.settings import ServerConfig
from coder.coderd.loops import reaper
from coder.coderd.rpc_endpoints.provisioners import connect_built_in
from coder.coderd.services.foundation.context import Context
from coder.coderd.services.foundation.this_process import ThisProcess
from coder.coderd.store.engine import database as engine
from coder.coderd.store.engine.availability import DatabaseAwayError
from coder.coderd.store.engine.listening import RESYNC
from coder.provisionerd.config import DaemonConfig
from coder.provisionerd.daemon import run_daemon
from coder.provisionerd.executors.contract import Emit, Settings
from coder.rpc.proto import provisioner_pb2 as pb
from coder.rpc.session import Session
from tests.kit.network.simulated_time import simulated_wall_time

LATENCY = 0.01
"""Seconds until a daemon's connection is open."""


class DeadError(Exception):
    """The process that asked was killed."""


def run_threads_inline() -> None:
    """Let work for threads run at once: a clock that jumps does not wait for them."""

    async def run_here(function: Callable[..., Any], *arguments: Any, **_options: Any) -> Any:
        await trio.lowlevel.checkpoint()
        return function(*arguments)

    vars(trio.to_thread)["run_sync"] = run_here


@dataclass(eq=False)
class DatabaseServer:
    """PostgreSQL, as all servers have it: its clock, its outages, its notices."""

    url: str
    offset: float = 0.0
    """Seconds by which its clock was set forward."""
    is_away: bool = False
    is_deaf: bool = False
    """Whether notices are lost, as while the connections that listen are opened again."""
    readers: list[tuple[frozenset[str], trio.MemorySendChannel[tuple[str, str]]]] = field(default_factory=list)

    def now(self) -> datetime:
        return datetime.fromtimestamp(simulated_wall_time() + self.offset, UTC)

    def monotonic(self) -> float:
        return trio.current_time()

    def publish(self, channel: str, payload: str) -> None:
        for channels, send in self.readers:
            if channel in channels and not self.is_deaf:
                send.send_nowait((channel, payload))

    def hear_again(self) -> None:
        """End the loss of notices: each reader is told that some may be missing."""
        self.is_deaf = False
        for channels, send in self.readers:
            for channel in sorted(channels):
                send.send_nowait((channel, RESYNC))


class SimulatedDatabase(engine.Database):
    """A server's connection to it. Its loop runs in the simulation's own thread, and only while that waits for a
    transaction: handing each one to another thread and back took a third of the time on a busy machine."""

    def __init__(self, server: DatabaseServer) -> None:
        super().__init__(server.url, pool_size=1, now=trio.current_time)
        self._server = server
        self._loop = asyncio.new_event_loop()  # uvloop takes over the process's signals, which are trio's
        self._notices: list[tuple[str, str]] = []
        self.is_dead = False
        event.listen(self.engine.sync_engine, "before_cursor_execute", self._note_notices)

    def _note_notices(self, _connection: Any, _cursor: Any, statement: str, parameters: Any, *_rest: Any) -> None:
        if "pg_notify" in statement:
            channel, payloads = parameters
            self._notices += [(channel, text) for text in (payloads if isinstance(payloads, list) else [payloads])]

    async def _cross(self, fn: Any, unit: Callable[[], Coroutine[None, None, Any]], progress: engine._Progress) -> Any:
        await trio.lowlevel.checkpoint()
        if self.is_dead:
            raise DeadError
        if self._server.is_away:
            error = OSError("the database is away")
            self.availability.failed(error)
            raise DatabaseAwayError(error)
        self._notices.clear()
        result = self._loop.run_until_complete(engine._retried(unit, progress))
        self.availability.answered()
        for channel, payload in self._notices:
            self._server.publish(channel, payload)
        return result

    @asynccontextmanager
    async def listen(self, *channels: str) -> AsyncIterator[trio.MemoryReceiveChannel[tuple[str, str]]]:
        send, receive = trio.open_memory_channel[tuple[str, str]](100_000)
        reader = (frozenset(channels), send)
        self._server.readers.append(reader)
        try:
            yield receive
        finally:
            self._server.readers.remove(reader)

    def close(self) -> None:
        self._loop.run_until_complete(self.engine.dispose())
        self._loop.close()


class SimulatedServer:
    """A server process, which can be killed and started again."""

    def __init__(self, database: DatabaseServer, name: str) -> None:
        self._database = database
        self.name = name
        self.ctx: Context | None = None
        self.sessions: set[Session] = set()
        self._scope = trio.CancelScope()

    @property
    def is_up(self) -> bool:
        return self.ctx is not None

    async def live(self) -> None:
        """Run until `kill`."""
        self._scope = trio.CancelScope()
        db = SimulatedDatabase(self._database)
        try:
            with self._scope:
                async with trio.open_nursery() as nursery:
                    config = ServerConfig(derp_server_stun_addresses=("disable",), http_address="127.0.0.1:0")
                    process = ThisProcess(replica=uuid4())
                    url = "http://127.0.0.1:3000"
                    ctx = await new_context(config, db, nursery, self._database, url, process)
                    api = ctx.services.api
                    for service in (ctx.services.deferred_work, api.job_queue, api.job_changes, api.build_updates):
                        service.start(nursery)
                    nursery.start_soon(reaper.run, ctx)
                    self.ctx = ctx
                    await trio.sleep_forever()
        except* (DeadError, DatabaseAwayError):
            pass  # of tasks that were cancelled; or it could not start
        finally:
            self.ctx, db.is_dead = None, True
            db.close()

    def kill(self) -> None:
        """End it without a last word: neither to the database nor to daemons."""
        if self.ctx is not None:
            self.ctx.db.is_dead = True  # type: ignore[attr-defined]
        self.ctx = None
        for session in list(self.sessions):
            session.close("the server was killed")
        self._scope.cancel()


@dataclass
class Ledger:
    """What executors did, by job."""

    chance: random.Random
    runs: Counter[UUID] = field(default_factory=Counter)
    """How often an apply began."""
    done: dict[UUID, bool] = field(default_factory=dict)
    """Jobs whose apply ended, and whether it succeeded."""
    killed: set[UUID] = field(default_factory=set)
    """Jobs whose daemon was killed meanwhile."""


class SimulatedExecutor:
    """An executor whose work is time."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.job: UUID | None = None

    @asynccontextmanager
    async def open(self, settings: Settings) -> AsyncIterator[Any]:
        note = json.loads((settings.folder / "job.json").read_text())
        self.job = UUID(note["job_id"])
        try:
            yield _Work(self._ledger, self.job)
        finally:
            self.job = None


class _Work:
    def __init__(self, ledger: Ledger, job: UUID) -> None:
        self._ledger, self._job = ledger, job
        self._canceled = trio.Event()
        self._state = b""

    def cancel(self) -> None:
        self._canceled.set()

    def state(self) -> bytes:
        return self._state

    async def _take(self, least: float, most: float) -> bool:
        """Pass time; return whether it was not canceled."""
        with trio.move_on_after(self._ledger.chance.uniform(least, most)):
            await self._canceled.wait()
        return not self._canceled.is_set()

    async def init(self, _request: pb.InitRequest, _modules: bytes, emit: Emit) -> pb.InitComplete:
        emit(pb.LogLevel.INFO, "init")
        return pb.InitComplete(error="" if await self._take(0.1, 2) else "canceled")

    async def parse(self, _emit: Emit) -> pb.ParseComplete:
        return pb.ParseComplete(error="" if await self._take(0.1, 1) else "canceled")

    async def plan(self, _request: pb.PlanRequest, _emit: Emit) -> pb.PlanComplete:
        return pb.PlanComplete(plan=b"{}", error="" if await self._take(0.1, 5) else "canceled")

    async def graph(self, _request: pb.GraphRequest, _emit: Emit) -> pb.GraphComplete:
        return pb.GraphComplete(error="" if await self._take(0, 0.1) else "canceled")

    async def apply(self, _request: pb.ApplyRequest, emit: Emit) -> pb.ApplyComplete:
        ledger = self._ledger
        ledger.runs[self._job] += 1
        self._state = b'{"half": true}'
        longest = ledger.chance.choice((5, 60, 400))
        for step in range(5):
            emit(pb.LogLevel.INFO, f"step {step}")
            if not await self._take(0.1, longest / 5):
                return pb.ApplyComplete(state=self._state, error="canceled")
        succeeds = ledger.chance.random() < 0.9
        self._state = b'{"whole": true}'
        ledger.done[self._job] = succeeds
        return pb.ApplyComplete(state=self._state, error="" if succeeds else "the cloud has no such machine")


class SimulatedDaemon:
    """A provisioner daemon's process and its way to the servers."""

    def __init__(self, name: str, folder: Path, servers: list[SimulatedServer], ledger: Ledger) -> None:
        self.name, self._servers, self._ledger = name, servers, ledger
        self.executor = SimulatedExecutor(ledger)
        self.work = folder / name
        self.is_cut = False
        self._session: Session | None = None
        self._process = trio.CancelScope()
        self._next = 0

    @property
    def is_connected(self) -> bool:
        return self._session is not None and not self._session.is_closed

    async def live(self) -> None:
        """Run, again after each `kill`, until cancelled."""
        while True:
            self._process = trio.CancelScope()
            config = DaemonConfig(name=self.name, work_dir=self.work)
            with self._process:
                await run_daemon(self._connect, config, {"echo": self.executor})
            await trio.sleep(2)
            self.is_cut = False

    @asynccontextmanager
    async def _connect(self) -> AsyncIterator[Session]:
        await trio.sleep(LATENCY)
        self._next += 1
        server = self._servers[self._next % len(self._servers)]
        if self.is_cut or server.ctx is None:
            raise OSError("the server does not answer")
        async with connect_built_in(server.ctx, self.name, ["echo"]) as session:
            self._session = session
            server.sessions.add(session)
            try:
                yield session
            finally:
                server.sessions.discard(session)

    def cut(self) -> None:
        """Break its connection."""
        if self._session is not None:
            self._session.close("the connection was cut")

    def kill(self) -> None:
        """End its process without a last word."""
        if self.executor.job is not None:
            self._ledger.killed.add(self.executor.job)
        self.is_cut = True
        self.cut()
        self._process.cancel()
