"""The built-in PostgreSQL: created, reused, refused, recovered, adopted, stopped."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio
from sqlalchemy import text

from coder.base.errors import CoderError
from coder.coderd.store.engine import postgres, postgres_cluster, postgres_process, postgres_programs
from coder.coderd.store.engine.database import Tx, open_database
from coder.coderd.store.engine.postgres import run_postgres
from coder.coderd.store.engine.postgres_cluster import Account, Cluster, locked, make_folder, open_file


@pytest.fixture
def data() -> Iterator[Path]:
    # not pytest's tmp_path: its parents are closed to the user Postgres runs as
    with tempfile.TemporaryDirectory(prefix="coder-pg-test-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


async def _execute(url: str, *statements: str) -> object:
    async def work(tx: Tx) -> object:
        result: object = None
        for statement in statements:
            answer = await tx.execute(text(statement))
            result = answer.scalar() if answer.returns_rows else None
        return result

    async with open_database(url) as database:
        return await database.run(work)


def _pid(folder: Path) -> int:
    return int((folder / "postgres" / "data" / "postmaster.pid").read_text().splitlines()[0])


def _running(pid: int) -> bool:
    return postgres_process.is_alive(pid)


async def test_data_survives_clean_stop(data: Path) -> None:
    async with run_postgres(data, durable=False) as url:
        await _execute(url, "CREATE TABLE t (x int)", "INSERT INTO t VALUES (7)")
        pid = _pid(data)
    assert not _running(pid)
    async with run_postgres(data, durable=False) as url:
        assert await _execute(url, "SELECT x FROM t") == 7


async def test_a_second_server_is_refused(data: Path) -> None:
    async with run_postgres(data, durable=False):
        with pytest.raises(CoderError) as caught:
            async with run_postgres(data, durable=False):
                pass
        assert caught.value.code == "data_dir_in_use"


async def test_kill_loses_no_committed_data(data: Path) -> None:
    account = postgres_cluster.find_account()
    cluster = postgres_cluster.cluster_of(data, account)
    programs = postgres_programs.find_programs(cluster, "")
    await postgres._initialise(cluster, programs, durable=True)
    running = await postgres_process.start(cluster, programs, durable=True)
    await _execute(cluster.url, "CREATE TABLE t (x int)", "INSERT INTO t SELECT generate_series(1, 5000)")
    assert running.process is not None
    os.kill(running.pid, signal.SIGKILL)
    running.process.wait()
    async with run_postgres(data, durable=False) as url:
        assert await _execute(url, "SELECT count(*) FROM t") == 5000


async def test_postgres_ends_with_its_server(data: Path) -> None:
    script = (
        "import sys, trio\n"
        "from pathlib import Path\n"
        "from coder.coderd.store.engine.postgres import run_postgres\n"
        "async def main():\n"
        "    async with run_postgres(Path(sys.argv[1]), durable=False):\n"
        "        print('up', flush=True)\n"
        "        await trio.sleep_forever()\n"
        "trio.run(main)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script, str(data)], stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == b"up\n"
        pid = _pid(data)
        server.kill()
        server.wait()
    # restarted immediately: it waits for the old one to exit, or adopts it
    async with run_postgres(data, durable=False) as url:
        assert await _execute(url, "SELECT 1") == 1
        assert not _running(pid) or _pid(data) == pid
    assert not _running(pid)


async def test_partial_cluster_is_recreated(data: Path) -> None:
    async with run_postgres(data, durable=False):
        pass
    (data / "postgres" / "initialising").touch()
    (data / "postgres" / "data" / "PG_VERSION").write_text("18\n")
    async with run_postgres(data, durable=False) as url:
        assert await _execute(url, "SELECT 1") == 1


async def test_old_cluster_requires_its_major(data: Path) -> None:
    async with run_postgres(data, durable=False):
        pass
    (data / "postgres" / "data" / "PG_VERSION").write_text("9\n")
    with pytest.raises(CoderError) as caught:
        async with run_postgres(data, durable=False):
            pass
    assert caught.value.code == "postgres_missing"


async def test_ephemeral_leaves_no_folder() -> None:
    async with run_postgres(Path("/nonexistent"), ephemeral=True, durable=False) as url:
        assert await _execute(url, "SELECT 1") == 1
        folder = Path(url.partition("host=")[2]).parent.parent
    assert not Path("/nonexistent").exists()
    if folder.name.startswith("coder-ephemeral-"):
        assert not folder.exists()


async def test_cancelling_stops_it(data: Path) -> None:
    pid = 0
    with trio.CancelScope() as scope:
        async with run_postgres(data, durable=False):
            pid = _pid(data)
            scope.cancel()
            await trio.sleep_forever()
    assert pid
    assert not _running(pid)


def test_closed_parent_is_detected(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    (closed / "inside").mkdir(parents=True)
    closed.chmod(0o700)
    other = postgres_cluster.Account(os.getuid() + 12345, 0, "other", True)
    assert not postgres_cluster.is_reachable(closed / "inside", other)


def test_new_directory_ignores_removed_ones_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_cluster, "_SYSTEM_ROOT", tmp_path / "system")
    monkeypatch.setattr(postgres_cluster, "is_reachable", lambda *_: False)
    account = postgres_cluster.Account(os.getuid(), os.getgid(), "", False)
    data_path = tmp_path / "home"
    first = postgres_cluster.cluster_of(data_path, account)
    first.data.mkdir()
    assert first.root.parent == tmp_path / "system"
    assert postgres_cluster.cluster_of(data_path, account) == first
    shutil.rmtree(data_path)
    second = postgres_cluster.cluster_of(data_path, account)
    assert second.root != first.root
    assert postgres_cluster.cluster_of(data_path, account) == second
    (data_path / "postgres-location").write_text("/etc\n")  # not one of our folders
    assert postgres_cluster.cluster_of(data_path, account).root.parent == tmp_path / "system"


def test_links_of_the_account_are_not_followed(tmp_path: Path) -> None:
    """Root opens files in folders of PostgreSQL's account, and gives them away: no link may lead elsewhere."""
    target = tmp_path / "of-root"
    target.write_text("secret")
    target.chmod(0o644)
    account = Account(os.geteuid(), os.getegid(), "", False)
    cluster = Cluster(tmp_path, tmp_path / "data", tmp_path / "sock", account)
    for name in ("server.lock", "postgres.log", "initialising"):
        (tmp_path / name).symlink_to(target)
        with pytest.raises(CoderError, match="is a link"):
            open_file(tmp_path / name, os.O_WRONLY | os.O_APPEND)
    with pytest.raises(CoderError, match="is a link"), locked(cluster):
        pass
    with pytest.raises(CoderError, match="is a link"):
        postgres_process._spawn(cluster, tmp_path, durable=False)
    (tmp_path / "elsewhere").mkdir(mode=0o755)
    (tmp_path / "data").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CoderError, match="is a link"):
        make_folder(tmp_path / "data", account, 0o700)
    assert target.read_text() == "secret"
    assert target.stat().st_mode & 0o777 == 0o644
    assert (tmp_path / "elsewhere").stat().st_mode & 0o777 == 0o755
    make_folder(tmp_path / "sock", account, 0o711)
    assert (tmp_path / "sock").stat().st_mode & 0o777 == 0o711
