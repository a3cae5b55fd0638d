"""The process of the built-in PostgreSQL: spawned, waited for, adopted, stopped; and the reason of its exit.

Not here: restarts (`postgres_supervisor.py`), folders (`postgres_cluster.py`).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypedDict

import trio

from coder.base.child_env import child_env
from coder.base.errors import CoderError
from coder.base.log import get_logger
from coder.base.signal_names import signal_name
from coder.coderd.store.engine.postgres_cluster import Cluster, give_to_owner, open_file, read_start

_log = get_logger("postgres")
START_TIMEOUT = 60.0
"""Seconds until a first start counts as failed: crash recovery of a large log takes its time."""
LEAVE_TIMEOUT = 15.0
"""Seconds to retry while processes of the previous PostgreSQL exit."""
_STOP_TIMEOUT, _QUIT_TIMEOUT = 30.0, 10.0
_PR_SET_PDEATHSIG = 1
_BELOW = ("DETAIL", "HINT", "CONTEXT", "STATEMENT")
"""Lines that PostgreSQL adds to a message."""
_POLL = 0.5
"""Seconds between polls of a process where the system cannot notify of its end."""


class SpawnOptions(TypedDict, total=False):
    """Arguments of `subprocess` for a program of the cluster's account."""

    cwd: str
    env: Mapping[str, str]
    stdin: int | IO[bytes]
    user: int
    group: int
    extra_groups: list[int]


def spawn_options(cluster: Cluster) -> SpawnOptions:
    account = cluster.account
    options: SpawnOptions = {"cwd": "/", "env": child_env(), "stdin": subprocess.DEVNULL}
    if account.switch:
        options |= {"user": account.uid, "group": account.gid, "extra_groups": []}
    return options


@dataclass(slots=True)
class RunningPostgres:
    """Postgres owned by this server: a child, or an adopted one (`process` is None)."""

    pid: int
    process: subprocess.Popen[bytes] | None


async def start(
    cluster: Cluster,
    programs: Path,
    durable: bool,
    *,
    timeout: float = START_TIMEOUT,
    leave_timeout: float = LEAVE_TIMEOUT,
) -> RunningPostgres:
    """Return a Postgres that accepts connections. Raises CoderError `postgres_failed`."""
    began = trio.current_time()
    while True:
        leftover = running_pid(cluster)
        if leftover:
            adopted = await _adopt(cluster, leftover)
            if adopted is not None:
                return adopted
        _end_orphans(cluster)
        _remove_stale_pid_file(cluster)
        process = _spawn(cluster, programs, durable)
        try:
            if await _wait_ready(cluster, process, began, timeout):
                return RunningPostgres(process.pid, process)
        except BaseException:
            process.kill()
            process.wait()
            raise
        # Just after a crash the old postmaster's children may still be exiting: retry for a while.
        if trio.current_time() > began + leave_timeout:
            raise CoderError(
                "postgres_failed",
                f"PostgreSQL does not start: {last_problem(cluster)}",
                f"Its log is {cluster.root / 'postgres.log'}.",
            )
        await trio.sleep(0.1)


async def wait_until_ended(running: RunningPostgres) -> str:
    """Wait until it has exited, and return the reason."""
    try:
        descriptor = os.pidfd_open(running.pid)
    except (AttributeError, OSError):  # another system, a sandbox without the call, or it has exited already
        while _is_running(running):  # noqa: ASYNC110 - nothing would set an event
            await trio.sleep(_POLL)
    else:
        try:
            await trio.lowlevel.wait_readable(descriptor)
        finally:
            os.close(descriptor)
    if running.process is None:
        return "in an unknown way: an earlier server had started it"
    status = running.process.wait()  # it has exited: this does not block
    return f"killed by {signal_name(-status)}" if status < 0 else f"with exit status {status}"


def _end_orphans(cluster: Cluster) -> None:
    """Kill the processes that a killed postmaster left behind.

    A backend in the middle of a long statement does not notice that its postmaster is dead. It holds the shared memory,
    and no new postmaster starts on the same data until it lets go. The signal is the one a postmaster gives its
    backends after a crash.
    """
    for pid in _find_orphans(cluster):
        _log.warn("killing a process of the previous PostgreSQL", pid=pid)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGQUIT)


def _find_orphans(cluster: Cluster) -> list[int]:
    """Return living postgres processes in this data directory, where the system has /proc; for when the postmaster is
    dead."""
    results = []
    for entry in Path("/proc").glob("[0-9]*"):
        # By the directory itself: a container's PostgreSQL may use another one with the same path there.
        if _is_in(cluster, int(entry.name)) and is_alive(int(entry.name)):
            results.append(int(entry.name))
    return results


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
    with os.fdopen(open_file(log_path, os.O_WRONLY | os.O_APPEND), "ab") as log:
        give_to_owner(log.fileno(), cluster)
        os.fchmod(log.fileno(), 0o600)  # a log of an earlier release contains failed statements
        return subprocess.Popen(
            command,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # the server passes Ctrl-C on, in order
            preexec_fn=_die_with_parent(),  # noqa: PLW1509 - one system call, without a lock
            **spawn_options(cluster),
        )


def _die_with_parent() -> Callable[[], None] | None:
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(
        None
    ).prctl  # looked up before the fork: a lookup takes locks that another thread may hold at the fork

    def ask() -> None:
        # SIGINT is Postgres' fast shutdown. Set after setuid, which would clear it; tied to the forking thread.
        prctl(_PR_SET_PDEATHSIG, signal.SIGINT)

    return ask


async def _wait_ready(
    cluster: Cluster,
    process: subprocess.Popen[bytes],
    began: float,
    timeout: float,
) -> bool:
    """Return True when it accepts connections, False when it exited."""
    while process.poll() is None:
        if _status(cluster) == (process.pid, "ready"):
            return True
        if trio.current_time() > began + timeout:
            raise CoderError(
                "postgres_failed",
                f"PostgreSQL was not ready after {timeout:.0f} s: {last_problem(cluster)}",
                f"Its log is {cluster.root / 'postgres.log'}.",
            )
        await trio.sleep(0.005)
    return False


async def _adopt(cluster: Cluster, pid: int) -> RunningPostgres | None:
    """Return a Postgres left by a killed server if it is usable; None when it is shutting down."""
    _log.warn("a PostgreSQL of an earlier server is still running", pid=pid)
    for _ in range(100):
        if not is_alive(pid):
            return None
        await trio.sleep(0.05)
    if _status(cluster) == (pid, "ready"):
        _log.info("adopting the running PostgreSQL", pid=pid)
        return RunningPostgres(pid, None)
    raise CoderError(
        "postgres_failed", f"a PostgreSQL (process {pid}) uses {cluster.data} and does not answer", "Stop it first."
    )


def is_stopping(cluster: Cluster, running: RunningPostgres) -> bool:
    """Return whether it says that it shuts down."""
    return _status(cluster) == (running.pid, "stopping")


def interrupt(running: RunningPostgres) -> None:
    """Ask for a fast shutdown, which ends sessions."""
    _signal(running, signal.SIGINT)
    _signal(running, signal.SIGCONT)  # a stopped one would not get it


async def stop(running: RunningPostgres) -> None:
    interrupt(running)
    with trio.move_on_after(_STOP_TIMEOUT):
        # Its end cannot be waited for as an event: an adopted Postgres is not our child.
        while _is_running(running):  # noqa: ASYNC110
            await trio.sleep(0.005)
        return
    _log.error("PostgreSQL did not stop in time and is killed", pid=running.pid)
    _signal(running, signal.SIGQUIT)
    with trio.move_on_after(_QUIT_TIMEOUT):
        while _is_running(running):  # noqa: ASYNC110 - as above
            await trio.sleep(0.005)
        return
    _signal(running, signal.SIGKILL)
    if running.process:
        running.process.wait()


def _signal(running: RunningPostgres, number: signal.Signals) -> None:
    if running.process is not None:
        running.process.send_signal(number)  # does nothing once it was waited for
    elif is_alive(running.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(running.pid, number)


def _is_running(running: RunningPostgres) -> bool:
    return running.process.poll() is None if running.process else is_alive(running.pid)


def _status(cluster: Cluster) -> tuple[int, str]:
    """Return (pid, state) from postmaster.pid."""
    try:
        lines = read_start(cluster.pid_file).splitlines()
        return int(lines[0]), lines[7].strip() if len(lines) > 7 else ""
    except (OSError, ValueError, IndexError):
        return 0, ""


def running_pid(cluster: Cluster) -> int:
    """Return the postmaster of this cluster; 0 when it has ended, also when its number was reused, even by another
    PostgreSQL: adopting that one would stop it with our server."""
    pid, _ = _status(cluster)
    return pid if pid > 0 and is_alive(pid) and _is_in(cluster, pid) else 0


def _is_in(cluster: Cluster, pid: int) -> bool:
    """Return whether a process works in the data directory, as every process of its PostgreSQL does."""
    if sys.platform != "linux":
        return True
    try:
        return Path(f"/proc/{pid}/cwd").samefile(cluster.data)
    except OSError:
        return False  # it has ended, or is another user's


def _remove_stale_pid_file(cluster: Cluster) -> None:
    """Remove a dead postmaster's file. PostgreSQL itself refuses to start while any process of its user has the number,
    which is likely in a container: all its processes have one user and small numbers."""
    pid, _ = _status(cluster)
    if sys.platform == "linux" and pid and not running_pid(cluster) and not _find_orphans(cluster):
        cluster.pid_file.unlink(missing_ok=True)


def is_alive(pid: int) -> bool:
    """Return whether `pid` is a living postgres; False if the number was reused by another program."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):  # the latter: larger than any number of a process
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


_LOG_END = 1 << 20
"""Bytes of the log that are searched: PostgreSQL may have written any number."""
_STARTING = "LOG:  starting PostgreSQL"
_FATAL = re.compile("(PANIC|FATAL):  (?!the database system is )")
"""What ended it; the other messages of this kind are refusals of clients while it starts or stops."""


def last_problem(cluster: Cluster) -> str:
    """Return why its last start failed: its last fatal message, without the hints and details below it; without one,
    the last message."""
    try:
        with (cluster.root / "postgres.log").open("rb") as log:
            log.seek(max(os.fstat(log.fileno()).st_size - _LOG_END, 0))
            lines = log.read(_LOG_END).decode(errors="replace").strip().splitlines()
    except OSError:
        return "no log"
    messages = [line for line in lines if not any(f"{word}:  " in line for word in _BELOW)]
    starts = [number for number, line in enumerate(messages) if _STARTING in line]
    for line in reversed(messages[starts[-1] if starts else 0 :]):
        if _FATAL.search(line):
            return line
    return messages[-1] if messages else "empty log"
