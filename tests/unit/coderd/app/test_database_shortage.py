"""The server while its database answers and lacks something: room on the disk, descriptors, connections, the time."""

from __future__ import annotations

import contextlib
import os
import resource
import secrets
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest
import trio

from coder.coderd.store.engine.availability import DatabaseAwayError
from coder.coderd.store.engine.database import open_database
from coder.coderd.store.engine.postgres_cluster import find_account
from coder.coderd.store.site import site_settings
from coder.rpc.errors import UNAVAILABLE, RpcError
from tests.kit.provisioners.scripted_provisioner import FakeDaemon, connected_daemon, ended, line, new_version
from tests.kit.server.postgres_server import fresh_database, shared_postgres
from tests.kit.server.server_in_process import World, running_on

SECRETS = "/api/v2/users/me/secrets"
HEALTH = "/api/v2/debug/health?force=true"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system for one database, and not much more."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=96m,mode=755", "tmpfs", str(place)]
    done = subprocess.run(mount, capture_output=True, check=False)
    if done.returncode:
        pytest.skip(f"mounting is not allowed here: {done.stderr.decode()}")
    for parent in (tmp_path, *tmp_path.parents):
        if parent.is_relative_to("/tmp") and parent != Path("/tmp"):
            parent.chmod(parent.stat().st_mode | 0o111)  # the database has its own user
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
    """Let processes open no file with a number from `number` on."""
    before = {pid: resource.prlimit(pid, resource.RLIMIT_NOFILE) for pid in pids}
    for pid, (_, hard) in before.items():
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (number, hard))
    try:
        yield
    finally:
        for pid, limits in before.items():
            with contextlib.suppress(ProcessLookupError):
                resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)


@pytest.mark.skipif(os.geteuid() != 0, reason="limits of another user's process are root's to set")
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
