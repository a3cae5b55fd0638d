"""A database with a standby: the primary is killed, the standby promoted, and the server goes on."""

from __future__ import annotations

import contextlib
import socket
import subprocess
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg
import pytest
import trio
from sqlalchemy import text

from coder.coderd.store.engine import new_connections, postgres, postgres_process, postgres_programs
from coder.coderd.store.engine.availability import DatabaseAwayError
from coder.coderd.store.engine.database import Tx, open_database
from coder.coderd.store.engine.listening import RESYNC
from coder.coderd.store.engine.new_connections import TCP_DEFAULTS, Connector, set_tcp_options
from coder.coderd.store.engine.postgres_cluster import Cluster, cluster_of, find_account
from coder.rpc.proto import agent_pb2
from tests.kit.agents.scripted_agent import AgentWorld, connected_agent, eventually, start_workspace
from tests.kit.provisioners.scripted_provisioner import connected_daemon, ended, line, new_version, resource
from tests.kit.server.postgres_server import fresh_database
from tests.unit.coderd.app.test_database_away import kill, server


@dataclass
class Pair:
    """A primary and its standby, without a supervisor."""

    primary: Cluster
    standby: Cluster
    programs: Path
    running: postgres_process.RunningPostgres

    @property
    def url(self) -> str:
        return f"postgresql://coder@/coder?host={self.primary.sockets},{self.standby.sockets}"

    async def fail_over(self) -> None:
        """Kill the primary and promote the standby."""
        kill(self.running)
        await self.execute("SELECT pg_promote()")

    async def wait_replicated(self) -> None:
        """Wait until the standby has what the primary acknowledged."""
        waiting = "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn) <= 0 FROM pg_stat_replication"

        async def is_current() -> bool:
            return await self._ask(self.primary, waiting) == "t"

        await eventually(is_current)

    async def execute(self, statement: str) -> None:
        """Execute a statement at the standby."""
        await self._ask(self.standby, statement)

    async def _ask(self, cluster: Cluster, statement: str) -> str:
        def work() -> str:
            connection = ["-h", str(cluster.sockets), "-U", "coder", "-d", "coder"]
            command = [str(self.programs / "psql"), "-XAt", *connection, "-c", statement]
            options = postgres_process.spawn_options(cluster)
            return str(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, **options).stdout).strip()

        return await trio.to_thread.run_sync(work)


@pytest.fixture
async def pair(open_path: Path) -> AsyncIterator[Pair]:
    account = find_account()
    primary, standby = (cluster_of(open_path / name, account) for name in ("primary", "standby"))
    programs = postgres_programs.find_programs(primary, "")
    await postgres._initialise(primary, programs, durable=False)
    running = await postgres_process.start(primary, programs, durable=False)
    backup = [str(programs / "pg_basebackup"), "-h", str(primary.sockets), "-U", "coder", "-D", str(standby.data)]
    backup += ["-R", "-c", "fast"]
    options = postgres_process.spawn_options(standby)
    await trio.to_thread.run_sync(lambda: subprocess.run(backup, check=True, **options))
    following = await postgres_process.start(standby, programs, durable=False)
    try:
        yield Pair(primary, standby, programs, running)
    finally:
        await postgres_process.stop(following)
        with contextlib.suppress(ProcessLookupError):
            await postgres_process.stop(running)
        postgres_process._end_orphans(primary)


async def _when_available(get: Any) -> Any:
    """Return the first answer that is not 503."""

    async def answer() -> Any:
        found = await get()
        return found if found.status_code != 503 else None

    return await eventually(answer)


async def test_server_continues_at_promoted_standby(pair: Pair, open_path: Path) -> None:
    """Links stay, an acknowledged write is there, a running job goes on, and LISTEN is resumed and announced."""
    async with server(open_path, pair.url) as world:
        await world.first_user()
        view_context = await start_workspace(world)
        async with (
            connected_agent(view_context) as agent,
            connected_daemon(world, name="slow", tags={"slow": "yes"}) as daemon,
            world.ctx.db.listen("news") as notices,
        ):
            version = await new_version(world, tags={"slow": "yes"})
            job = await daemon.acquire()
            await daemon.update(job, logs=[line("Planning", "before")])
            await eventually(lambda: _is_connected(view_context))
            await pair.wait_replicated()
            await pair.fail_over()
            path = f"/api/v2/workspaceagents/{view_context.agent_id}"
            answer = await _when_available(lambda: world.get(path))
            assert (answer.status_code, answer.json()["status"]) == (200, "connected")
            await agent.call("GetManifest", agent_pb2.GetManifestRequest(), agent_pb2.Manifest)
            with trio.fail_after(60):
                assert await notices.receive() == ("news", RESYNC)
                await pair.execute("NOTIFY news, 'heard'")
                assert await notices.receive() == ("news", "heard")
            await daemon.update(job, logs=[line("Planning", "after")])
            await daemon.complete_import(job, start_resources=[resource("box")])
            assert (await ended(world, f"/api/v2/templateversions/{version['id']}"))["job"]["status"] == "succeeded"


async def _is_connected(view_context: AgentWorld) -> bool:
    return bool((await view_context.agent())["status"] == "connected")


async def test_standby_serves_no_server(pair: Pair) -> None:
    """While only the standby lives the database is away; the pool leaves a server that became a standby."""
    async with open_database(pair.url) as database:
        await database.run(_write)

        async def writes() -> bool:
            try:
                await database.run(_write)
            except DatabaseAwayError:
                return False
            return True

        async def is_away() -> bool:
            return not await writes()

        kill(pair.running)
        await eventually(is_away)  # a backend may outlive its postmaster by a statement
        await pair.execute("SELECT pg_promote()")
        await eventually(writes)
        # As of a server that was demoted without closing its connections.
        await pair.execute("ALTER DATABASE coder SET default_transaction_read_only = on")
        await database.run(_become_read_only)
        with pytest.raises(DatabaseAwayError):
            await database.run(_write)
        await pair.execute("BEGIN READ WRITE; ALTER DATABASE coder RESET default_transaction_read_only; COMMIT")
        await eventually(writes)


async def _write(tx: Tx) -> None:
    await tx.execute(text("CREATE TABLE IF NOT EXISTS written (at timestamptz)"))
    await tx.execute(text("INSERT INTO written VALUES (now())"))


async def _become_read_only(tx: Tx) -> None:
    await tx.execute(text("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY"))


async def test_silent_host_leaves_time_for_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that accepts and says nothing uses up its own time only, and is not tried first again."""
    connect = new_connections._connect

    async def impatient_with_silent(arguments: Mapping[str, Any]) -> Any:
        """A busy machine may need longer to open a connection than the silent host gets."""
        silent_host = arguments["host"] == ["127.0.0.1"]
        return await connect({**arguments, "timeout": 0.2} if silent_host else arguments)

    monkeypatch.setattr(new_connections, "_connect", impatient_with_silent)
    async with fresh_database() as url:
        sockets = url.split("host=")[1]
        name = url.split("@/")[1].split("?", maxsplit=1)[0]
        with socket.create_server(("127.0.0.1", 0)) as silent:
            port = silent.getsockname()[1]
            both = f"postgresql://coder@/{name}?host=127.0.0.1,{sockets}&port={port},5432&sslmode=disable"
            async with open_database(both, pool_size=2) as database, database.listen("news") as notices:
                await database.run(_notify)
                with trio.fail_after(60):
                    assert await notices.receive() == ("news", "heard")
            silent.setblocking(False)
            silent.accept()[0].close()
            with pytest.raises(BlockingIOError):
                silent.accept()


async def _notify(tx: Tx) -> None:
    await tx.execute(text("NOTIFY news, 'heard'"))


@pytest.mark.parametrize(
    ("errors", "raised"),
    [
        ([ConnectionRefusedError("a"), asyncpg.InvalidPasswordError("b")], asyncpg.InvalidPasswordError),
        ([asyncpg.InvalidPasswordError("a"), ConnectionRefusedError("b")], asyncpg.InvalidPasswordError),
        ([ConnectionRefusedError("a"), TimeoutError("b")], ConnectionRefusedError),
    ],
)
async def test_refusal_says_more_than_absence(
    errors: list[Exception], raised: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    remaining = iter(errors)

    async def fail(**_: Any) -> None:
        raise next(remaining)

    monkeypatch.setattr(asyncpg, "connect", fail)
    with pytest.raises(raised):
        await Connector()(host=["a", "b"], port=5432)


def test_tcp_options_have_defaults() -> None:
    class Transport:
        def get_extra_info(self, _name: str) -> socket.socket:
            return sock

    class Driver:
        _transport = Transport()

    def shown(level: int, name: str) -> int:
        return sock.getsockopt(level, getattr(socket, name))

    with socket.socket() as sock:
        set_tcp_options(Driver, {"keepalives_idle": 30})
        assert shown(socket.SOL_SOCKET, "SO_KEEPALIVE") == 1
        assert shown(socket.IPPROTO_TCP, "TCP_KEEPIDLE") == 30
        assert shown(socket.IPPROTO_TCP, "TCP_USER_TIMEOUT") == TCP_DEFAULTS["tcp_user_timeout"]
