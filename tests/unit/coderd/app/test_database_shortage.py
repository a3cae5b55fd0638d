"""The server while its database answers and lacks something: room on the disk, descriptors, connections, the time."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import asyncpg
import pytest
import trio

from coder.base.child_env import child_env
from coder.base.log import Level
from coder.base.log import also as log_to
from coder.coderd.services.provisioning.reaping import Attention, reap
from coder.coderd.store.engine import postgres, postgres_process, postgres_supervisor
from coder.coderd.store.engine.availability import DRIVER_ERRORS, DatabaseAwayError
from coder.coderd.store.engine.database import open_database
from coder.coderd.store.engine.postgres import run_postgres
from coder.coderd.store.engine.postgres_cluster import Cluster, cluster_of, find_account
from coder.coderd.store.engine.postgres_programs import find_programs
from coder.coderd.store.site import site_settings
from coder.rpc.errors import UNAVAILABLE, RpcError
from tests.kit.agents.scripted_agent import connected_agent, eventually, start_workspace
from tests.kit.provisioners.scripted_provisioner import FakeDaemon, connected_daemon, ended, line, new_version
from tests.kit.server.postgres_server import fresh_database, shared_postgres
from tests.kit.server.server_in_process import World, running_on

SECRETS = "/api/v2/users/me/secrets"
HEALTH = "/api/v2/debug/health?force=true"


@pytest.fixture
def small_disk(open_path: Path) -> Iterator[Path]:
    """A file system for one database, and not much more. The database has its own user."""
    place = open_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=192m,mode=755", "tmpfs", str(place)]
    done = subprocess.run(mount, capture_output=True, check=False)
    if done.returncode:
        pytest.skip(f"mounting is not allowed here: {done.stderr.decode()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


@contextlib.asynccontextmanager
async def database_on(disk: Path) -> AsyncIterator[str]:
    """The URL of a database whose tables are on this disk."""
    cluster, account = await shared_postgres(), find_account()
    folder = disk / "tables"
    folder.mkdir(mode=0o700)
    if account.switch:
        os.chown(folder, account.uid, account.gid)
    name = f"small_{os.getpid()}"
    await cluster.execute(
        f"CREATE TABLESPACE {name} LOCATION '{folder}'",
        f"CREATE DATABASE {name} TEMPLATE coder STRATEGY FILE_COPY TABLESPACE {name}",
    )
    try:
        yield cluster.url(name)
    finally:
        with trio.CancelScope(shield=True):
            await cluster.execute(f"DROP DATABASE {name} WITH (FORCE)", f"DROP TABLESPACE {name}")


def fill(disk: Path) -> Path:
    filler = disk / "filler"
    with contextlib.suppress(OSError), filler.open("wb", 0) as file:
        while True:
            file.write(bytes(4096))
    return filler


async def store_until_refused(world: World) -> tuple[list[str], Any]:
    """Create secrets until one is refused; return the names of the acknowledged ones and the refusal."""
    stored: list[str] = []
    while True:
        name = f"s{len(stored)}"
        body = {"name": name, "value": secrets.token_hex(4000), "env_name": name.upper()}
        answer = await world.post(SECRETS, body)
        if answer.status_code != 201:
            return stored, answer
        stored.append(name)


async def report_until_refused(daemon: FakeDaemon, job: Any) -> RpcError:
    """Send lines of a job's log until the server refuses them."""
    with trio.fail_after(60):
        while True:
            try:
                await daemon.update(job, logs=[line("Planning", secrets.token_hex(4000))])
            except RpcError as error:
                return error


@pytest.mark.skipif(os.geteuid() != 0, reason="a small file system is mounted by root")
async def test_full_disk_interrupts_no_build(small_disk: Path) -> None:
    async with database_on(small_disk) as url, running_on(url) as world:
        await world.first_user()
        version = await new_version(world)
        async with connected_daemon(world) as daemon:
            job = await daemon.acquire()
            filler = fill(small_disk)
            stored, refused = await store_until_refused(world)
            assert (refused.status_code, refused.json()["message"]) == (507, "The server has no room left on its disk.")
            error = await report_until_refused(daemon, job)
            assert (error.number, error.text) == (
                UNAVAILABLE,
                "the server's database has no room left on its disk",
            )
            report = (await world.get(HEALTH)).json()["database"]
            assert (report["healthy"], report["severity"]) == (False, "error")
            assert any("no room left on its disk" in warning["message"] for warning in report["warnings"])
            assert (await world.get("/healthz")).status_code == 200, "it still serves what it can"
            filler.unlink()
            await daemon.update(job, logs=[line("Planning", "there is room again")])
            await daemon.complete_import(job)
        result = await ended(world, f"/api/v2/templateversions/{version['id']}")
        assert result["job"]["status"] == "succeeded"
        assert {one["name"] for one in (await world.get(SECRETS)).json()} == set(stored)


async def test_lack_of_connections_is_named() -> None:
    """Neither an internal error nor an outage, and it passes."""
    async with fresh_database() as url, contextlib.AsyncExitStack() as stack, open_database(url) as database:

        async def take_all() -> list[Any]:
            taken = []
            with contextlib.suppress(asyncpg.TooManyConnectionsError):
                while True:
                    taken.append(await asyncpg.connect(url))
            return taken

        async def give_back(taken: list[Any]) -> None:
            for connection in taken:
                await connection.close()

        taken = await database.call(take_all)
        stack.push_async_callback(database.call, lambda: give_back(taken))
        with pytest.raises(DatabaseAwayError, match="the database accepts no more connections"):
            await database.read(site_settings.ping)
        assert database.availability.away_for() == 0
        assert database.availability.shortage() == "the database accepts no more connections"
        await stack.aclose()
        await database.read(site_settings.ping)


def _backends_of(postmaster: int) -> list[int]:
    children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
    return [postmaster, *map(int, children)]


@contextlib.contextmanager
def few_descriptors(pids: list[int], number: int) -> Iterator[None]:
    """Let processes of the database's user open no file with a number from `number` on."""
    account, limits = find_account(), Path(f"/proc/{pids[0]}/limits").read_text()
    soft = int(re.findall(r"Max open files +(\d+)", limits)[0])
    user: dict[str, Any] = {"user": account.uid, "group": account.gid, "extra_groups": []} if account.switch else {}

    def limit(most: int) -> None:
        for pid in pids:
            words = ["prlimit", f"--pid={pid}", f"--nofile={most}:"]
            subprocess.run(words, check=most == number, capture_output=True, cwd="/", **user)

    limit(number)
    try:
        yield
    finally:
        limit(soft)


@pytest.mark.soak
@pytest.mark.skipif(shutil.which("prlimit") is None, reason="prlimit of util-linux is not installed")
async def test_descriptor_shortage_interrupts_no_build() -> None:
    """PostgreSQL serves open connections with what it has; new ones wait or are refused."""
    cluster = await shared_postgres()
    async with fresh_database() as url, running_on(url) as world:
        await world.first_user()
        version = await new_version(world)
        async with connected_daemon(world) as daemon:
            job = await daemon.acquire()
            stored = set()
            await cluster.execute("SELECT 1")  # the next test's database is made before
            with few_descriptors(_backends_of(cluster.running.pid), 4):
                for name in (f"s{number}" for number in range(20)):
                    answer = await world.post(SECRETS, {"name": name, "value": "v", "env_name": name.upper()})
                    assert answer.status_code in {201, 503}, answer.text
                    if answer.status_code == 201:
                        stored.add(name)
                try:
                    await daemon.update(job, logs=[line("Planning", "x" * 9000)])
                except RpcError as error:
                    assert error.number == UNAVAILABLE, error.text
            await daemon.complete_import(job)
        result = await ended(world, f"/api/v2/templateversions/{version['id']}")
        assert result["job"]["status"] == "succeeded"
        assert stored == {one["name"] for one in (await world.get(SECRETS)).json()}


FAKED = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)


@contextlib.asynccontextmanager
async def own_database(folder: Path, **environment: str) -> AsyncIterator[tuple[str, Cluster]]:
    """The URL of a PostgreSQL with these variables; nothing restarts it."""
    cluster = cluster_of(folder, find_account())
    programs = find_programs(cluster, "")
    await postgres._initialise(cluster, programs, durable=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(postgres_process, "child_env", lambda: {**child_env(), **environment})
        running = await postgres_process.start(cluster, programs, durable=False)
    try:
        yield cluster.url, cluster
    finally:
        with trio.CancelScope(shield=True):
            await postgres_process.stop(running)


@pytest.mark.soak
@pytest.mark.skipif(FAKED is None, reason="the package faketime is not installed")
async def test_jumping_clock_of_database(open_path: Path) -> None:
    """No job counts as silent, and no agent as lost, because the clock was set; and an agent that left, left."""
    offset = open_path / "offset"
    offset.write_text("+0")
    offset.chmod(0o644)
    faked = {"LD_PRELOAD": str(FAKED), "FAKETIME_TIMESTAMP_FILE": str(offset), "FAKETIME_NO_CACHE": "1"}
    async with own_database(open_path / "database", **faked) as (url, _), running_on(url) as world:
        await world.first_user()
        scene, replicas = await start_workspace(world), world.ctx.services.relay.replicas
        version = await new_version(world, tags={"own": "1"})
        attention = Attention(world.ctx)

        async def is_connected() -> bool:
            return bool((await scene.agent())["status"] == "connected")

        async def is_gone() -> bool:
            return not await is_connected()

        async with connected_daemon(world, tags={"own": "1"}) as daemon:
            job = await daemon.acquire()
            for jump in (7200, -7200):
                async with connected_agent(scene):
                    await eventually(is_connected)
                    attention.expect(0)
                    before = world.ctx.clock.now()
                    (open_path / "next").write_text(f"{jump:+d}")
                    (open_path / "next").chmod(0o644)
                    (open_path / "next").replace(offset)
                    await replicas.renew(world.ctx.nursery)
                    assert abs((world.ctx.clock.now() - before).total_seconds()) > 7000
                    assert not attention.look(), "daemons get the time to report again"
                    await daemon.update(job)
                    attention.expect(0)
                    assert attention.look()
                    assert await reap(world.ctx) == []
                    await eventually(is_connected, seconds=60)
                await eventually(is_gone)
            await daemon.complete_import(job)
        assert (await ended(world, f"/api/v2/templateversions/{version['id']}"))["job"]["status"] == "succeeded"


async def write_log_until_refused(url: str) -> None:
    """Write to PostgreSQL's log until it cannot."""
    connection = await asyncpg.connect(url)
    with contextlib.suppress(*DRIVER_ERRORS):
        while True:
            await connection.execute("SELECT pg_logical_emit_message(true, 'fill', repeat('x', 1000000))")
    connection.terminate()


@pytest.mark.soak
@pytest.mark.skipif(os.geteuid() != 0, reason="a small file system is mounted by root")
async def test_full_disk_of_log_loses_nothing(small_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PostgreSQL ends where it cannot write its log, and does not start; with room, it has what it acknowledged."""
    monkeypatch.setattr(postgres_supervisor, "TRIES", 1)
    monkeypatch.setattr(postgres_supervisor, "_LEAVE_TIMEOUT", 0.0)
    failed_starts: list[str] = []

    def note(_level: Level, _at: datetime, _name: str, message: str, fields: dict[str, Any]) -> None:
        if message == "PostgreSQL could not be started again":
            failed_starts.append(str(fields["error"]))

    with log_to(note):
        async with run_postgres(small_disk) as url, running_on(url) as world:
            await world.first_user()
            stored, filler = [], small_disk / "filler"
            for name in ("before", "during"):
                answer = await world.post(SECRETS, {"name": name, "value": "v", "env_name": name.upper()})
                assert answer.status_code in {201, 503, 507}, answer.text
                if answer.status_code == 201:
                    stored.append(name)
                if name == "before":
                    fill(small_disk)
                    await world.ctx.db.call(lambda: write_log_until_refused(url))
            with contextlib.suppress(ProcessLookupError, FileNotFoundError):
                pid_file = small_disk / "postgres/data/postmaster.pid"
                os.kill(int(pid_file.read_text().splitlines()[0]), signal.SIGKILL)
            await eventually(lambda: _more_than(failed_starts, 2))
            assert (await world.get(SECRETS)).status_code == 503
            filler.unlink()

            async def is_back() -> bool:
                return (await world.get(SECRETS)).status_code == 200

            await eventually(is_back)
            assert set(stored) <= {one["name"] for one in (await world.get(SECRETS)).json()}
    assert any("No space left on device" in text for text in failed_starts), failed_starts


async def _more_than(found: list[str], count: int) -> bool:
    await trio.lowlevel.checkpoint()
    return len(found) > count
