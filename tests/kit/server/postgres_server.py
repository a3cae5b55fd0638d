"""One Postgres for each process of the suite, started on first use and stopped at exit; a fresh database a test.

    async with fresh_database() as url:
        …

The cluster lies in memory where there is room: cloning a database of some hundred files took a second on a busy disk.
A clone still takes some tens of milliseconds, and so does a drop. Tests wait for neither: one connection in a thread of
its own creates the next database and drops the last one while tests run.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import itertools
import os
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg
import trio
from sqlalchemy.util import LRUCache

from coder.coderd.store.engine import database as engine
from coder.coderd.store.engine import migrate as migrations
from coder.coderd.store.engine import postgres, postgres_cluster, postgres_process, postgres_programs
from coder.coderd.store.engine.database import LoopThread, open_database
from coder.coderd.store.engine.migrate import migrate

_counter = itertools.count()
_MEMORY = Path("/dev/shm")
_ROOM = 2_000_000_000
"""Bytes free in memory below which Postgres goes to the disk: several processes may have a cluster of some 200 MB."""
EMPTY = ""
"""The template of a database without any table."""


@dataclass
class Cluster:
    """The Postgres all tests of this process share."""

    folder: tempfile.TemporaryDirectory[str]
    running: Any
    sockets: Path
    _thread: LoopThread = field(default_factory=LoopThread)
    _connection: Any = None
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _next: dict[str, asyncio.Task[str]] = field(default_factory=dict)
    "Template -> the database that is being made of it, or waits for who wants one."
    _dropped: set[asyncio.Task[None]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._thread.start()

    def url(self, name: str) -> str:
        return f"postgresql://coder@/{name}?host={self.sockets}"

    async def execute(self, *statements: str) -> None:
        """As the owner of all databases, when what was asked for before is done."""
        await self._thread.call(lambda: self._execute(*statements))

    async def take(self, template: str) -> str:
        """The name of a new database; the next one of the template is begun."""
        return await self._thread.call(lambda: self._take(template))

    async def drop(self, name: str) -> None:
        """Begins to."""
        await self._thread.call(lambda: self._begin_drop(name))

    async def _execute(self, *statements: str) -> None:
        async with self._turn:
            if self._connection is None:
                self._connection = await asyncpg.connect(self.url("postgres"))
            for statement in statements:
                await self._connection.execute(statement)

    async def _take(self, template: str) -> str:
        found = self._next.pop(template, None) or asyncio.create_task(self._make(template))
        if template != EMPTY:
            self._next[template] = asyncio.create_task(self._make(template))
            self._next[template].add_done_callback(_heard)
        return await asyncio.shield(found)

    async def _make(self, template: str) -> str:
        name = f"test_{os.getpid()}_{next(_counter)}"
        await self._execute(
            f"CREATE DATABASE {name}" + (f" TEMPLATE {template} STRATEGY FILE_COPY" if template else "")
        )
        return name

    async def _begin_drop(self, name: str) -> None:
        task = asyncio.create_task(self._execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)"))
        self._dropped.add(task)  # a loop alone does not keep it
        task.add_done_callback(self._dropped.discard)
        task.add_done_callback(_heard)


def _heard(task: asyncio.Task[Any]) -> None:
    """What ends with the process is no news; whoever wants a database hears why there is none."""
    if not task.cancelled():
        task.exception()


_cluster: Cluster | None = None


class _AllEngines(LRUCache[Any, Any]):
    """Statements compiled once for all servers of this process: each has an engine, and every engine of theirs the same
    dialect, which is the first part of a key."""

    def get(self, key: Any, default: Any = None) -> Any:
        return super().get(key[1:], default)

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key[1:], value)


_compiled = _AllEngines(2_000)
_create_engine = vars(engine)["create_async_engine"]


def _engine_of_all(*given: Any, **options: Any) -> Any:
    made = _create_engine(*given, **options)
    made.sync_engine._compiled_cache = _compiled
    return made


vars(engine)["create_async_engine"] = _engine_of_all
_require_own_sessions = vars(migrations)["require_own_sessions"]


async def _require_own_sessions_elsewhere(arguments: Mapping[str, Any]) -> None:
    """Check every database but those of the shared cluster: a check opens two connections, and no pooler is there."""
    if _cluster is None or arguments.get("host") not in (str(_cluster.sockets), [str(_cluster.sockets)]):
        await _require_own_sessions(arguments)


vars(migrations)["require_own_sessions"] = _require_own_sessions_elsewhere


def _place() -> str | None:
    """Where the cluster's folder is made: in memory, else where temporary files are."""
    try:
        return str(_MEMORY) if os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > _ROOM else None
    except OSError:
        return None


async def shared_postgres() -> Cluster:
    """Starts Postgres once for this process; it ends with the process."""
    global _cluster
    if _cluster is None:
        folder = tempfile.TemporaryDirectory(prefix="coder-test-pg-", dir=_place())
        Path(folder.name).chmod(0o711)
        account = postgres_cluster.find_account()
        found = postgres_cluster.cluster_of(Path(folder.name), account)
        programs = postgres_programs.find_programs(found, "")
        await postgres._initialise(found, programs, durable=False)
        running = await postgres_process.start(found, programs, durable=False)
        _cluster = Cluster(folder, running, found.sockets)
        atexit.register(_stop_postgres)
        async with open_database(_cluster.url("coder")) as database:
            await migrate(database)
    return _cluster


def _stop_postgres() -> None:
    global _cluster
    if _cluster is None:
        return
    with contextlib.suppress(ProcessLookupError):
        os.kill(_cluster.running.pid, signal.SIGINT)
    _cluster.running.process.wait(timeout=60)
    _cluster.folder.cleanup()
    _cluster = None


@contextlib.asynccontextmanager
async def fresh_database(*, migrated: bool = True, template: str = "coder") -> AsyncIterator[str]:
    """The URL of a database of one's own, dropped afterwards."""
    cluster = await shared_postgres()
    name = await cluster.take(template if migrated else EMPTY)
    try:
        yield cluster.url(name)
    finally:
        with trio.CancelScope(shield=True):
            await cluster.drop(name)
