"""Deployments of the full form: servers of several processes, what their whole families cost, and two Postgres."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import trio

from coder.coderd.store.engine import postgres, postgres_process, postgres_programs
from coder.coderd.store.engine.postgres_cluster import Cluster, cluster_of, find_account
from coder.coderd.store.engine.postgres_process import RunningPostgres
from tests.bench._requests import cpu
from tests.bench.first import PASSWORD, Place, end, note, wait

_TICKS = os.sysconf("SC_CLK_TCK")


# ---- processes


def tree(pid: int) -> list[int]:
    """A process and all below it."""
    found, pending = [], [pid]
    while pending:
        found.append(current := pending.pop())
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{current}/task").iterdir():
                pending += map(int, (task / "children").read_text().split())
    return found


def is_postgres(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/comm").read_text().startswith("postgres")
    except OSError:
        return False


def server_processes(pid: int) -> list[int]:
    """A server with its children, but not its built-in Postgres."""
    return [one for one in tree(pid) if not is_postgres(one)]


def spent(pids: Iterable[int]) -> float:
    """Milliseconds of processor time of these processes and of the children they have waited for."""
    total = cpu(pids := list(pids))
    for pid in pids:
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total += (int(fields[13]) + int(fields[14])) * 1000 / _TICKS
    return total


def pss(pids: Iterable[int]) -> float:
    """MiB of these processes; memory that several share counts once."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1])
    return total / 1024


def p99(times: list[float]) -> float:
    return sorted(times)[min(len(times) - 1, int(len(times) * 0.99))]


# ---- servers


@contextmanager
def serving(place: Place, env: dict[str, str], program: list[str] | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """A server at the place's address that answers; `env` are further settings."""
    command = [*(program or [str(place.binary)]), "server", "--http-address", place.address]
    command += ["--access-url", place.url, "--cache-dir", str(place.folder / "cache")]
    command += ["--derp-server-stun-addresses", "disable"]
    with (place.folder / "server.log").open("ab") as log:
        process = subprocess.Popen(
            command,
            env={**place.env, **env},
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    try:
        wait(place.answers)
        yield process
    except BaseException:
        note((place.folder / "server.log").read_text(errors="replace")[-3000:])
        raise
    finally:
        end(process)


def first_user(place: Place) -> str:
    """Create the first user; a session token."""
    user = {"email": "b@example.com", "username": "bench", "name": "B", "password": PASSWORD, "trial": False}
    post(f"{place.url}/api/v2/users/first", user)
    return str(post(f"{place.url}/api/v2/users/login", {"email": user["email"], "password": PASSWORD})["session_token"])


def post(url: str, body: Any, token: str = "") -> Any:
    headers = {"Content-Type": "application/json", "Coder-Session-Token": token}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def until(check: Callable[[], bool], limit: float, what: str) -> float:
    """Wait for something; the seconds that it took. Raises TimeoutError, which says what did not come about."""
    began = time.monotonic()
    while not check():
        if time.monotonic() - began > limit:
            raise TimeoutError(f"{what}: not within {limit:.0f} s")
        time.sleep(0.02)
    return time.monotonic() - began


# ---- two Postgres


@dataclass
class Pair:
    """A primary, and a standby that does not exist until it is made."""

    primary: Cluster
    standby: Cluster
    programs: Path
    running: RunningPostgres
    following: RunningPostgres | None = None

    @property
    def url(self) -> str:
        """Both, in the order in which they are tried."""
        return f"postgresql://coder@/coder?host={self.primary.sockets},{self.standby.sockets}"

    async def make_standby(self) -> None:
        """Copy the primary into a standby and wait until it follows."""
        command = [str(self.programs / "pg_basebackup"), "-h", str(self.primary.sockets), "-U", "coder"]
        command += ["-D", str(self.standby.data), "-R", "-c", "fast"]
        options = postgres_process.spawn_options(self.standby)
        await trio.to_thread.run_sync(lambda: subprocess.run(command, check=True, **options))
        self.following = await postgres_process.start(self.standby, self.programs, durable=True)
        query = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'"
        with trio.fail_after(60):
            while await self._ask(self.primary, query) != "1":
                await trio.sleep(0.2)

    async def fail_over(self) -> None:
        """Kill the primary and promote the standby."""
        assert self.running.process is not None
        os.kill(self.running.pid, signal.SIGKILL)
        await trio.to_thread.run_sync(self.running.process.wait)
        await self._ask(self.standby, "SELECT pg_promote()")

    async def _ask(self, cluster: Cluster, statement: str) -> str:
        options = postgres_process.spawn_options(cluster)
        command = [str(self.programs / "psql"), "-XAt", "-h", str(cluster.sockets), "-U", "coder", "-d", "coder"]
        done = await trio.to_thread.run_sync(
            lambda: subprocess.run(
                [*command, "-c", statement], check=True, stdout=subprocess.PIPE, text=True, **options
            )
        )
        return str(done.stdout).strip()


@asynccontextmanager
async def postgres_pair(folder: Path) -> AsyncIterator[Pair]:
    """A Postgres with its usual durability, which may get a standby later."""
    account = find_account()
    primary, standby = (cluster_of(folder / name, account) for name in ("primary", "standby"))
    programs = postgres_programs.find_programs(primary, "")
    await postgres._initialise(primary, programs, durable=True)
    pair = Pair(primary, standby, programs, await postgres_process.start(primary, programs, durable=True))
    try:
        yield pair
    finally:
        with trio.CancelScope(shield=True):
            for running in (pair.following, pair.running):
                if running is not None and running.process is not None and running.process.poll() is None:
                    await postgres_process.stop(running)
            postgres_process._end_orphans(primary)
