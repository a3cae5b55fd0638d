"""The built-in PostgreSQL: initialised once, started as a child process, restarted when it dies, stopped with the
server.

`run_postgres` is an async context that yields the URL. One server owns one data directory (held by a file lock); a
Postgres whose server was killed is waited for, then adopted. Connections are possible through a socket in a 0700 folder
only.

Not here: folders (`postgres_cluster.py`), programs (`postgres_programs.py`), the process (`postgres_process.py`),
restarts (`postgres_supervisor.py`), schemas (`migrate.py`), connections (`database.py`).
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import trio

from coder.base.atomic_file import move_aside
from coder.base.errors import CoderError
from coder.base.exception_groups import single_failure
from coder.coderd.store.engine.postgres_cluster import (
    Account,
    Cluster,
    cluster_of,
    find_account,
    find_cluster,
    locked,
    make_folder,
    open_file,
    temporary_root,
)
from coder.coderd.store.engine.postgres_process import SpawnOptions, running_pid, spawn_options
from coder.coderd.store.engine.postgres_programs import find_client_programs, find_programs
from coder.coderd.store.engine.postgres_supervisor import PostgresSupervisor


@contextlib.asynccontextmanager
async def run_postgres(
    data_path: Path, *, bin_dir: str = "", ephemeral: bool = False, durable: bool = True
) -> AsyncIterator[str]:
    """Run the built-in database for the length of the block and yield its URL.

    `ephemeral` keeps it in a temporary folder that is removed at the end; `durable=False` trades safety against power
    loss for speed (tests). Raises CoderError: `data_dir_in_use`, `postgres_missing`, `postgres_failed`; the last also
    ends the block when the database died and cannot be restarted.
    """
    account = find_account(data_path)
    with contextlib.ExitStack() as stack:
        if ephemeral:
            data_path = Path(stack.enter_context(temporary_root(account)))
        cluster = cluster_of(data_path, account)
        stack.enter_context(locked(cluster))
        programs = find_programs(cluster, bin_dir)
        await _initialise(cluster, programs, durable)
        supervisor = PostgresSupervisor(cluster, programs, durable)
        await supervisor.start()
        try:
            with single_failure():
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(supervisor.keep_running)
                    yield cluster.url
                    nursery.cancel_scope.cancel()
        finally:
            with trio.CancelScope(shield=True):
                await supervisor.stop()


def builtin_url(data_path: Path) -> str:
    """Return the URL of a data directory's built-in database while its server runs."""
    return cluster_of(data_path, find_account(data_path)).url


def client_program(data_path: Path, name: str, bin_dir: str = "") -> tuple[Path, SpawnOptions]:
    """Return `pg_dump` or `pg_restore`, and the subprocess options that run it as a user the built-in database accepts.

    Without a built-in database the program runs as the current user, and no folder is created for it.
    """
    cluster = find_cluster(data_path, find_account(data_path))
    if cluster is None:
        myself = Account(os.geteuid(), os.getegid(), "", False)
        cluster = Cluster(data_path, data_path / "data", data_path / "sock", myself)
    return find_client_programs(cluster, bin_dir) / name, spawn_options(cluster)


def require_existing(data_path: Path) -> None:
    """Require an existing deployment. Raises CoderError `no_database`, `no_access`; creates nothing."""
    if find_cluster(data_path, find_account(data_path)) is None:
        raise CoderError("no_database", f"there is no database in {data_path.expanduser().absolute()}")


def set_aside(data_path: Path, name: str) -> Path | None:
    """Rename the database's files, so that the next start creates new ones; None when there are none."""
    cluster = cluster_of(data_path, find_account(data_path))
    with locked(cluster):
        if not cluster.data.exists():
            return None
        if running_pid(cluster):
            raise CoderError("data_dir_in_use", f"a PostgreSQL still uses {cluster.data}", "Stop it first.")
        return move_aside(cluster.data, cluster.root / name)


def put_back(data_path: Path, aside: Path | None) -> None:
    """Remove the files created since `set_aside`, and undo it."""
    cluster = cluster_of(data_path, find_account(data_path))
    with locked(cluster):
        shutil.rmtree(cluster.data, ignore_errors=True)
        if aside is not None:
            aside.rename(cluster.data)


def _has_files(folder: Path) -> bool:
    """Return whether a folder has content. Raises OSError when it cannot be read, other than because it is missing."""
    with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
        return next(entries, None) is not None
    return False


async def _initialise(cluster: Cluster, programs: Path, durable: bool) -> None:
    if (cluster.data / "PG_VERSION").exists() and not (cluster.root / "initialising").exists():
        return
    # A mark next to the data distinguishes a partial cluster (the server was killed) from a complete one.
    mark = cluster.root / "initialising"
    if not mark.exists() and _has_files(cluster.data):
        raise CoderError(
            "postgres_failed",
            f"{cluster.data} has files, but no PG_VERSION",
            "Restore the missing files from a backup, or move the folder away to begin with an empty database.",
        )
    os.close(open_file(mark, os.O_WRONLY))
    shutil.rmtree(cluster.data, ignore_errors=True)
    make_folder(cluster.data, cluster.account, 0o700)
    command = [
        str(programs / "initdb"),
        "-D",
        str(cluster.data),
        "-U",
        "coder",
        "--encoding=UTF8",
        "--no-locale",
        "--auth=trust",
        "--no-instructions",
        *([] if durable else ["--no-sync"]),
    ]
    await _run_program(cluster, command)
    create = [str(programs / "postgres"), "--single", "-D", str(cluster.data), "-F", "postgres"]
    await _run_program(cluster, create, b"CREATE DATABASE coder;\n")
    mark.unlink()


async def _run_program(cluster: Cluster, command: list[str], text: bytes = b"") -> None:
    options = spawn_options(cluster)
    options.pop("stdin")
    result = await trio.to_thread.run_sync(
        lambda: subprocess.run(
            command, input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, **options
        )
    )
    if result.returncode != 0:
        lines = result.stdout.decode(errors="replace").strip().splitlines()
        # The lines after the cause describe the clean-up.
        message = next((line for line in lines if "error:" in line or "FATAL:" in line), "".join(lines[-1:]))
        raise CoderError(
            "postgres_failed",
            f"{Path(command[0]).name} failed: {message or result.returncode}",
            "Check the free space and the rights of the data directory, or give --postgres-url.",
        )
