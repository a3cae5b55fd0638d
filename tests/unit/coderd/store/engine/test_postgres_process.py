"""Processes that count as orphans of a dead postmaster."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from coder.coderd.store.engine import postgres_process
from coder.coderd.store.engine.postgres_cluster import Cluster, cluster_of, find_account
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
