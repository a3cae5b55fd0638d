"""The built-in PostgreSQL: initialised once, started as our child, stopped with us.

`run_postgres` is an async context that yields the URL. One server owns one data directory (a file lock says so); a
Postgres whose server was killed is waited for, then adopted. Connections are possible through a socket in a 0700
folder only.

Not here: whose folders (`postgres_cluster.py`), which programs (`postgres_programs.py`), schemas (`migrate.py`),
connections (`database.py`).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import trio

from coder.base.child_env import child_env
from coder.base.errors import CoderError
from coder.base.log import get_logger
from coder.base.whole_file import move_aside
from coder.coderd.store.engine.postgres_cluster import (
    Cluster,
    cluster_of,
    find_account,
    locked,
    make_folder,
    temporary_root,
)
from coder.coderd.store.engine.postgres_programs import find_client_programs, find_programs

_log = get_logger("postgres")
_START_TIMEOUT = 60.0  # crash recovery of a large log takes its time
_STOP_TIMEOUT = 30.0
_PR_SET_PDEATHSIG = 1


@contextlib.asynccontextmanager
async def run_postgres(
    data_path: Path, *, bin_dir: str = "", ephemeral: bool = False, durable: bool = True
) -> AsyncIterator[str]:
    """Runs the built-in database for the length of the block and yields its URL.

    `ephemeral` keeps it in a temporary folder that is removed at the end; `durable=False` trades safety against
    power loss for speed (tests). Raises CoderError: `data_dir_in_use`, `postgres_missing`, `postgres_failed`.
    """
    account = find_account()
    with contextlib.ExitStack() as stack:
        if ephemeral:
            data_path = Path(stack.enter_context(temporary_root(account)))
        cluster = cluster_of(data_path, account)
        stack.enter_context(locked(cluster))
        programs = find_programs(cluster, bin_dir)
        await _initialise(cluster, programs, durable)
        running = await _start(cluster, programs, durable)
        try:
            yield cluster.url
        finally:
            with trio.CancelScope(shield=True):
                await _stop(running)


def builtin_url(data_path: Path) -> str:
    """Where the built-in database of a data directory is reached while its server runs."""
    return cluster_of(data_path, find_account()).url


def client_program(data_path: Path, name: str, bin_dir: str = "") -> tuple[Path, dict[str, Any]]:
    """`pg_dump` or `pg_restore`, and how subprocess starts it as whom the built-in database lets in."""
    cluster = cluster_of(data_path, find_account())
    return find_client_programs(cluster, bin_dir) / name, _spawn_options(cluster)


def set_aside(data_path: Path, name: str) -> Path | None:
    """Renames the database's files, so that the next start makes a new one; None when there are none."""
    cluster = cluster_of(data_path, find_account())
    with locked(cluster):
        if not cluster.data.exists():
            return None
        if _running_pid(cluster):
            raise CoderError("data_dir_in_use", f"a PostgreSQL still uses {cluster.data}", "Stop it first.")
        return move_aside(cluster.data, cluster.root / name)


def put_back(data_path: Path, aside: Path) -> None:
    """Undoes `set_aside`."""
    cluster = cluster_of(data_path, find_account())
    with locked(cluster):
        shutil.rmtree(cluster.data, ignore_errors=True)
        aside.rename(cluster.data)


def _spawn_options(cluster: Cluster) -> dict[str, Any]:
    account = cluster.account
    options: dict[str, Any] = {"cwd": "/", "env": child_env(), "stdin": subprocess.DEVNULL}
    if account.switch:
        options |= {"user": account.uid, "group": account.gid, "extra_groups": []}
    return options


async def _initialise(cluster: Cluster, programs: Path, durable: bool) -> None:
    if (cluster.data / "PG_VERSION").exists() and not (cluster.root / "initialising").exists():
        return
    # A mark beside the data tells a half-made cluster (we were killed) from a real one.
    mark = cluster.root / "initialising"
    mark.touch(0o600)
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
    options = _spawn_options(cluster)
    options.pop("stdin")
    result = await trio.to_thread.run_sync(
        lambda: subprocess.run(
            command, input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, **options
        )
    )
    if result.returncode != 0:
        lines = result.stdout.decode(errors="replace").strip().splitlines()
        # What follows the cause is how it was cleaned up after.
        told = next((line for line in lines if "error:" in line or "FATAL:" in line), "".join(lines[-1:]))
        raise CoderError(
            "postgres_failed",
            f"{Path(command[0]).name} failed: {told or result.returncode}",
            "Check the free space and the rights of the data directory, or give --postgres-url.",
        )


@dataclass(slots=True)
class RunningPostgres:
    """A Postgres we answer for: our child, or one we adopted (`process` is None)."""

    pid: int
    process: subprocess.Popen[bytes] | None


async def _start(cluster: Cluster, programs: Path, durable: bool) -> RunningPostgres:
    deadline = trio.current_time() + _START_TIMEOUT
    while True:
        leftover = _running_pid(cluster)
        if leftover:
            adopted = await _adopt(cluster, leftover)
            if adopted is not None:
                return adopted
        process = _spawn(cluster, programs, durable)
        try:
            if await _wait_ready(cluster, process, deadline):
                return RunningPostgres(process.pid, process)
        except BaseException:
            process.kill()
            process.wait()
            raise
        # Just after a crash the old postmaster's children may still be leaving: try again for a while.
        if trio.current_time() > deadline - _START_TIMEOUT + 15:
            raise CoderError(
                "postgres_failed",
                f"PostgreSQL does not start: {_last_line(cluster)}",
                f"Its log is {cluster.root / 'postgres.log'}.",
            )
        await trio.sleep(0.1)


def _spawn(cluster: Cluster, programs: Path, durable: bool) -> subprocess.Popen[bytes]:
    settings = [
        "max_connections=100",
        "shared_buffers=64MB",
        "log_destination=stderr",
        "log_min_messages=warning",
        "jit=off",
        *([] if durable else ["fsync=off", "synchronous_commit=off", "full_page_writes=off"]),
    ]
    command = [str(programs / "postgres"), "-D", str(cluster.data), "-k", str(cluster.sockets), "-h", ""]
    for setting in settings:
        command += ["-c", setting]
    log_path = cluster.root / "postgres.log"
    if log_path.exists() and log_path.stat().st_size > 10_000_000:
        log_path.replace(cluster.root / "postgres.log.1")
    with os.fdopen(os.open(log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as log:
        os.fchmod(log.fileno(), 0o600)  # one of an earlier release: statements that failed stand in it
        return subprocess.Popen(
            command,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is ours to hand on, in order
            preexec_fn=_die_with_parent(),  # noqa: PLW1509 - runs one system call; no thread of ours is up yet
            **_spawn_options(cluster),
        )


def _die_with_parent() -> Callable[[], None] | None:
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None)

    def ask() -> None:
        # SIGINT is Postgres' fast shutdown. Set after setuid, which would clear it; tied to the forking thread.
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGINT)

    return ask


async def _wait_ready(cluster: Cluster, process: subprocess.Popen[bytes], deadline: float) -> bool:
    """True when it accepts connections, False when it exited."""
    while process.poll() is None:
        if _status(cluster) == (process.pid, "ready"):
            return True
        if trio.current_time() > deadline:
            raise CoderError(
                "postgres_failed",
                f"PostgreSQL was not ready after {_START_TIMEOUT:.0f} s: {_last_line(cluster)}",
                f"Its log is {cluster.root / 'postgres.log'}.",
            )
        await trio.sleep(0.005)
    return False


async def _adopt(cluster: Cluster, pid: int) -> RunningPostgres | None:
    """A Postgres left by a killed server: it is shutting down (then None) or can be used."""
    _log.warn("a PostgreSQL of an earlier server is still running", pid=pid)
    for _ in range(100):
        if not _alive(pid):
            return None
        await trio.sleep(0.05)
    if _status(cluster) == (pid, "ready"):
        _log.info("adopting the running PostgreSQL", pid=pid)
        return RunningPostgres(pid, None)
    raise CoderError(
        "postgres_failed", f"a PostgreSQL (process {pid}) uses {cluster.data} and does not answer", "Stop it first."
    )


async def _stop(running: RunningPostgres) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(running.pid, signal.SIGINT)
    with trio.move_on_after(_STOP_TIMEOUT):
        # Its end cannot be waited for as an event: an adopted Postgres is not our child.
        while running.process.poll() is None if running.process else _alive(running.pid):  # noqa: ASYNC110
            await trio.sleep(0.005)
        return
    _log.error("PostgreSQL did not stop in time and is ended the hard way", pid=running.pid)
    os.kill(running.pid, signal.SIGQUIT)
    if running.process:
        running.process.wait()


def _status(cluster: Cluster) -> tuple[int, str]:
    """(pid, state) as postmaster.pid tells."""
    try:
        lines = cluster.pid_file.read_text().splitlines()
        return int(lines[0]), lines[7].strip() if len(lines) > 7 else ""
    except (OSError, ValueError, IndexError):
        return 0, ""


def _running_pid(cluster: Cluster) -> int:
    pid, _ = _status(cluster)
    return pid if pid and _alive(pid) else 0


def _alive(pid: int) -> bool:
    """Is `pid` a living postgres? A number that was given to another program since is not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    if sys.platform != "linux":
        return True
    try:
        state = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    name, _, rest = state.partition("(")[2].rpartition(")")
    return name.startswith("postgres") and rest.split()[0] != "Z"


def _last_line(cluster: Cluster) -> str:
    try:
        lines = (cluster.root / "postgres.log").read_text(errors="replace").strip().splitlines()
    except OSError:
        return "no log"
    return lines[-1] if lines else "empty log"
