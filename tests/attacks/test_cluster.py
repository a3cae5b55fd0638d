"""Tries of `cluster_tries.py` at the keeper's PostgreSQL: all on a real cluster as a soak test, and a sample.

The judge: the database starts, or the start is refused with a sentence; no other error, no wait beyond a bound, no
process left, nothing written through a link, and the cluster's data are there afterwards.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
import trio

from coder.base.errors import CoderError
from coder.coderd.store.engine import postgres, postgres_process, postgres_programs
from coder.coderd.store.engine.postgres_cluster import Cluster, cluster_of, find_account, locked
from tests.attacks.cluster_tries import (
    CONTENTS,
    FILES,
    FOLDER_FORMS,
    FOLDERS,
    FORMS,
    LOGS,
    LOST,
    PID_FILES,
    SETTINGS,
)

Break = Callable[[Cluster], None]
LEAVES = 0.2
"""Seconds to retry a start; the product's 15 are for processes that exit."""
LONGEST = 40.0
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else "/tmp"
"""Where a cluster is copied for each try."""
_foreign = [1]
"""The process of another cluster's PostgreSQL."""


def test_keeper_meets_200_kinds() -> None:
    assert sum(1 for _ in _kinds()) > 200


def _put(name: str, form: str) -> Break:
    def put(cluster: Cluster) -> None:
        path = cluster.root / name
        if form == "no rights":
            path.touch()
            path.chmod(0)
            return
        path.unlink(missing_ok=True)
        if form == "a folder":
            path.mkdir()
        elif form == "a pipe":
            os.mkfifo(path)
        elif form == "a socket":
            with socket.socket(socket.AF_UNIX) as bound:
                bound.bind(str(path))
        else:
            path.symlink_to({"a link to a file": "/tmp/victim", "a link to nothing": "/nonexistent"}.get(form, path))
        with contextlib.suppress(OSError):
            os.chown(path, cluster.account.uid, cluster.account.gid, follow_symlinks=False)

    return put


def _folder(name: str, form: str, cluster: Cluster) -> None:
    path = cluster.root / name
    if form == "open to all":
        path.chmod(0o777)
        return
    if form == "another user's":
        if not os.geteuid():
            os.chown(path, 54321, 54321)
        return
    shutil.rmtree(path)
    if form == "empty":
        path.mkdir(0o700)
        if cluster.account.switch:
            os.chown(path, cluster.account.uid, cluster.account.gid)
    elif form == "a file":
        path.write_text("")
    elif form == "a link to another":
        path.symlink_to("/tmp/victims")


def _content(path: str, content: bytes | None, cluster: Cluster) -> None:
    file = cluster.data / path
    if content is None:
        file.unlink(missing_ok=True)
    elif content == b"<half>":
        os.truncate(file, file.stat().st_size // 2)
    else:
        file.write_bytes(content)


def _kinds() -> Iterator[tuple[str, Break]]:
    def pid_file(text: str) -> Break:
        return lambda cluster: _write(cluster, cluster.pid_file, _pids(text).encode())

    for name, text in PID_FILES.items():
        yield f"postmaster.pid: {name}", pid_file(text)
    for file in FILES:
        for form in FORMS:
            yield f"{file}: {form}", _put(file, form)
    for folder in FOLDERS:
        for form in FOLDER_FORMS:
            yield f"{folder}: {form}", partial(_folder, folder, form)
    for lost in LOST:
        for name, content in CONTENTS.items():
            yield f"{lost}: {name}", partial(_content, lost, content)
    for name, line in SETTINGS.items():
        yield f"setting: {name}", partial(_setting, line)


def _setting(line: str, cluster: Cluster) -> None:
    _write(cluster, cluster.data / "postgresql.conf", f"{line}\n".encode())


def _write(cluster: Cluster, path: Path, content: bytes) -> None:
    path.write_bytes(content)
    if cluster.account.switch:
        os.chown(path, cluster.account.uid, cluster.account.gid)


def _pids(text: str) -> str:
    return (
        text.replace("{pid}", str(os.getpid()))
        .replace("{other}", str(os.getppid()))
        .replace("{cluster}", str(_foreign[0]))
    )


@pytest.fixture(scope="module")
def whole() -> Iterator[Path]:
    """A folder with a stopped cluster."""
    with tempfile.TemporaryDirectory(prefix="coder-pg-test-", dir="/tmp") as folder:
        Path(folder).chmod(0o755)

        async def make() -> None:
            async with postgres.run_postgres(Path(folder), durable=False):
                pass

        trio.run(make)
        yield Path(folder)


@pytest.fixture
def foreign(open_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A program called `postgres` of the account that ours runs as, in another folder."""
    program = open_path / "postgres"
    shutil.copy(shutil.which("sleep") or "/bin/sleep", program)
    account = find_account()
    user = {"user": account.uid, "group": account.gid} if account.switch else {}
    with subprocess.Popen([program, "600"], cwd="/", **user) as process:  # type: ignore[call-overload]
        _foreign[0] = process.pid
        try:
            yield process
            assert process.poll() is None, "another cluster's PostgreSQL was ended"
        finally:
            process.kill()


@pytest.mark.parametrize("every", [100, pytest.param(1, marks=pytest.mark.soak)], ids=["sample", "all"])
@pytest.mark.timeout(1800)
async def test_strange_folders_start_or_are_refused(whole: Path, foreign: subprocess.Popen[bytes], every: int) -> None:
    victim = Path("/tmp/victim")
    wrong = []
    for name, spoil in list(_kinds())[::every]:
        with tempfile.TemporaryDirectory(prefix="coder-pg-try-", dir=MEMORY, ignore_cleanup_errors=True) as folder:
            subprocess.run(["cp", "-a", f"{whole}/.", folder], check=True)
            Path(folder).chmod(0o755)
            victim.write_text("the victim's")
            cluster = cluster_of(Path(folder), find_account(Path(folder)))
            spoil(cluster)
            began = time.monotonic()
            fault = ""
            with trio.move_on_after(LONGEST) as scope:
                fault = await _start(Path(folder))
            if scope.cancelled_caught or time.monotonic() - began > LONGEST:
                fault = "hangs"
            if postgres_process._find_orphans(cluster):
                fault += " left a process"
            if victim.read_text() != "the victim's":
                fault += " wrote through a link"
            if fault:
                wrong.append(f"{name}: {fault}")
                print(wrong[-1])
    victim.unlink()
    assert wrong == []


async def _start(folder: Path) -> str:
    """Start and stop; return what is wrong with the outcome."""
    try:
        cluster = cluster_of(folder, find_account(folder))
        with locked(cluster):
            programs = postgres_programs.find_programs(cluster, "")
            had_data = (cluster.data / "base").is_dir() and any((cluster.data / "base").iterdir())
            await postgres._initialise(cluster, programs, durable=False)
            running = await postgres_process.start(cluster, programs, durable=False, timeout=20, leave_timeout=LEAVES)
            await postgres_process.stop(running)
            if had_data and not any((cluster.data / "base").iterdir()):
                return "the data were removed"
    except CoderError as error:
        return "" if error.message and "Traceback" not in error.message else repr(error)
    except OSError as error:
        return "" if error.strerror and error.filename else repr(error)
    except Exception as error:
        return repr(error)
    return ""


def test_logs_are_read_in_bounds(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, tmp_path / "data", tmp_path / "sock", find_account())
    for name, content in LOGS.items():
        (cluster.root / "postgres.log").write_bytes(content)
        problem = postgres_process.last_problem(cluster)
        assert problem, name
        assert len(problem) <= postgres_process._LOG_END, name


def _postmaster(data: Path) -> int:
    return int((data / "postgres/data/postmaster.pid").read_text().splitlines()[0])


@pytest.mark.parametrize("every", [32, pytest.param(1, marks=pytest.mark.soak)], ids=["sample", "all"])
@pytest.mark.timeout(900)
async def test_signals_do_not_end_database(every: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each number, to the postmaster, with an open session: afterwards a new session is served."""
    monkeypatch.setattr("coder.coderd.store.engine.postgres_supervisor.STATE_EVERY", 0.05)
    monkeypatch.setattr("coder.coderd.store.engine.postgres_supervisor.TRIES", 1000)
    monkeypatch.setattr("coder.coderd.store.engine.postgres_supervisor.FIRST_REST", 0.0)
    monkeypatch.setattr("coder.coderd.store.engine.postgres_supervisor.LONGEST_REST", 0.01)
    numbers = sorted({signal.SIGTERM, signal.SIGSTOP, *range(1, signal.NSIG)[::every]})
    with tempfile.TemporaryDirectory(prefix="coder-pg-test-", dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        async with postgres.run_postgres(Path(folder), durable=False) as url:
            path = url.partition("host=")[2] + "/.s.PGSQL.5432"
            for number in numbers:
                with trio.fail_after(60):
                    held = await _session(path)
                    os.kill(_postmaster(Path(folder)), number)
                    if number in {signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU}:
                        os.kill(_postmaster(Path(folder)), signal.SIGCONT)
                    (await _session(path)).close()
                    held.close()
        assert not list(Path(folder).glob("postgres/data/postmaster.pid"))


async def _session(path: str) -> socket.socket:
    """Return a session that was admitted, when the database admits one."""
    start = b"\0\3\0\0user\0coder\0database\0coder\0\0"
    while True:
        stream = trio.socket.socket(trio.socket.AF_UNIX)
        with contextlib.suppress(OSError):
            await stream.connect(path)
            await stream.send((len(start) + 4).to_bytes(4, "big") + start)
            answer = await stream.recv(1)
            if answer == b"R":
                return stream  # type: ignore[return-value]
        stream.close()
        await trio.sleep(0.01)
