"""Processes that count as orphans of a dead postmaster."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import trio

from coder.base.errors import CoderError
from coder.coderd.store.engine import postgres, postgres_process
from coder.coderd.store.engine.postgres_cluster import Account, Cluster, cluster_of, find_account, open_file
from coder.coderd.store.engine.postgres_process import last_problem
from tests.kit.agents.scripted_agent import eventually

ENTER = 'mount --make-rprivate / && mount -t tmpfs none "$1" && mkdir "$1/data" && cd "$1/data" && exec "$2" 600'


def _may_mount() -> bool:
    return (
        shutil.which("unshare") is not None
        and not subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode
    )


@pytest.mark.skipif(not _may_mount(), reason="needs unshare and root")
async def test_orphans_share_directory_not_path(tmp_path: Path) -> None:
    """A container's PostgreSQL often has the same path; it does not belong to this server."""
    root = tmp_path / "postgres"
    cluster = Cluster(root, root / "data", root / "sock", find_account())
    cluster.data.mkdir(parents=True)
    program = tmp_path / "bin" / "postgres"
    program.parent.mkdir()
    shutil.copy(shutil.which("sleep") or "/bin/sleep", program)
    inside = ["unshare", "--mount", "sh", "-c", ENTER, "sh", str(root), str(program)]
    with (
        subprocess.Popen(inside) as foreign,
        subprocess.Popen([program, "600"], cwd=cluster.data) as own,
    ):
        try:

            async def both_run() -> bool:
                return postgres_process.is_alive(foreign.pid) and postgres_process.is_alive(own.pid)

            await eventually(both_run)
            assert Path(f"/proc/{foreign.pid}/cwd").readlink() == cluster.data
            assert postgres_process._find_orphans(cluster) == [own.pid]
        finally:
            foreign.kill()
            own.kill()


START = "LOG:  starting PostgreSQL 16.4 on x86_64-pc-linux-gnu"
FULL = 'PANIC:  could not write to file "pg_wal/xlogtemp.9": No space left on device'
DOWN = "LOG:  database system is shut down"


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ([START, FULL, "LOG:  aborting startup", DOWN], FULL),
        ([START, FULL, "DETAIL:  nothing", "FATAL:  the database system is starting up", DOWN], FULL),
        (["FATAL:  of an earlier start", START, DOWN], DOWN),
        ([START, 'FATAL:  could not open "a"', "HINT:  look", DOWN], 'FATAL:  could not open "a"'),
        ([], "empty log"),
    ],
)
def test_problem_of_failed_start(tmp_path: Path, lines: list[str], problem: str) -> None:
    cluster = cluster_of(tmp_path, find_account())
    cluster.root.mkdir(parents=True, exist_ok=True)
    (cluster.root / "postgres.log").write_text("\n".join(lines))
    assert last_problem(cluster) == problem


def _cluster(folder: Path) -> Cluster:
    made = Cluster(folder, folder / "data", folder / "sock", Account(os.geteuid(), os.getegid(), "", False))
    made.data.mkdir()
    return made


def test_reused_process_id_is_no_postmaster(tmp_path: Path) -> None:
    """Of another cluster's PostgreSQL, which would be adopted and later stopped, and of any other program."""
    cluster = _cluster(tmp_path)
    program = tmp_path / "postgres"
    shutil.copy(shutil.which("sleep") or "/bin/sleep", program)
    with subprocess.Popen([program, "600"], cwd="/") as foreign:
        try:
            for pid in (foreign.pid, os.getpid(), 1 << 70):
                cluster.pid_file.write_text(f"{pid}\n{cluster.data}\n1\n5432\n\n\n\nready\n")
                assert postgres_process.running_pid(cluster) == 0
                postgres_process._remove_stale_pid_file(cluster)
                assert not cluster.pid_file.exists()
        finally:
            foreign.kill()


def test_data_without_version_are_kept(tmp_path: Path) -> None:
    cluster = _cluster(tmp_path)
    (cluster.data / "base").mkdir()
    with pytest.raises(CoderError, match="has files, but no PG_VERSION"):
        trio.run(postgres._initialise, cluster, tmp_path, False)
    assert (cluster.data / "base").is_dir()


def test_pipes_are_not_waited_for(tmp_path: Path) -> None:
    cluster = _cluster(tmp_path)
    for path in (cluster.pid_file, tmp_path / "server.lock"):
        os.mkfifo(path)
    assert postgres_process.running_pid(cluster) == 0
    with pytest.raises(CoderError, match="no plain file"):
        open_file(tmp_path / "server.lock", os.O_WRONLY)


async def test_end_by_signal_without_name() -> None:
    process = subprocess.Popen(["/bin/sleep", "600"])
    process.send_signal(40)
    running = postgres_process.RunningPostgres(process.pid, process)
    assert await postgres_process.wait_until_ended(running) == "killed by signal 40"
