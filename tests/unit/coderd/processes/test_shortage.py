"""A supervisor on a machine without room for another process: the other processes go on, and it tries again."""

from __future__ import annotations

import errno
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from coder.coderd.config.settings import ServerConfig
from coder.coderd.processes import children, reload, supervisor
from coder.coderd.processes.children import Child
from coder.coderd.processes.losses import LONGEST_REST
from coder.coderd.processes.signals import HANDLED
from coder.coderd.processes.supervisor import KEEPER_STALL, STALL, Supervisor


@pytest.fixture
def watching(tmp_path: Path) -> Iterator[Supervisor]:
    """Yield a supervisor of a started server whose processes are gone."""
    config = ServerConfig(http_address="127.0.0.1:0", processes=2, data_dir=tmp_path)
    made = Supervisor(config, None, lambda _: None, lambda: None)
    made._folder, made._is_up = tmp_path, True
    yield made
    for bound in made._sockets:
        bound.socket.close()
    made._selector.close()


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> int:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", refuse)


@pytest.mark.usefixtures("full")
def test_refused_fork_leaves_nothing() -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(BlockingIOError):
        children.fork("api-1", lambda _: pytest.fail("a process"), [])
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    assert not signal.pthread_sigmask(signal.SIG_BLOCK, ()) & HANDLED


@pytest.mark.usefixtures("full")
def test_replacement_is_tried_again(watching: Supervisor) -> None:
    watching._losses.due = {"api-1": time.monotonic() - 1}
    watching._replace_ended()
    assert 0 < watching._losses.due["api-1"] - time.monotonic() <= LONGEST_REST
    assert not watching._workers


@pytest.mark.usefixtures("full")
def test_database_is_started_again(watching: Supervisor) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        keeper = watching._keeper = Child("keeper", 0, ours, is_ready=True, status=-9)
        watching._replace_ended()
        assert watching._keeper is keeper, "the next turn tries again"


def test_missing_processes_are_planned_after_takeover(watching: Supervisor) -> None:
    """The former program planned their start; a takeover that fails would forget it."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        watching._workers = [Child("api-1", 0, ours), Child("loops", 0, ours, is_retiring=True, leaves_by=1.0)]
        watching._replace_missing()
    assert watching._losses.due.keys() == {"api-2", "relay", "edge", "loops"}


def test_reload_keeps_what_leaves() -> None:
    """Otherwise a process that finishes its jobs would count as a former one that goes on, without an end."""
    ours, theirs = socket.socketpair()
    with theirs:
        ours.set_inheritable(True)
        leaving = Child("loops", 7, ours, number=3, is_ready=True, is_retiring=True, leaves_by=time.monotonic() + 9)
        adopted = reload.adopt(reload.inherited(leaving))
        ours.detach()
        with adopted.control:
            assert (adopted.is_leaving, adopted.is_retiring, adopted.leaves_by) == (True, True, leaving.leaves_by)


def test_trial_without_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> tuple[socket.socket, socket.socket]:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(socket, "socketpair", refuse)
    assert reload.start_trial([]) is None


@pytest.fixture
def standing(watching: Supervisor, monkeypatch: pytest.MonkeyPatch) -> Iterator[Child]:
    """Yield a keeper that gave no sign of life for longer than a keeper may; its process sleeps."""
    monkeypatch.setattr(supervisor, "_TICK", 0.0)
    process = subprocess.Popen(["sleep", "600"])
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        beat_at = time.monotonic() - KEEPER_STALL - 1
        watching._keeper = Child("keeper", process.pid, ours, is_ready=True, beat_at=beat_at)
        yield watching._keeper
        process.kill()
        process.wait()


def test_stopped_keeper_is_killed(watching: Supervisor, standing: Child, monkeypatch: pytest.MonkeyPatch) -> None:
    """As by SIGSTOP: it would not restart PostgreSQL. The next turn replaces it."""
    monkeypatch.setattr(children, "_DUMP_TIME", 0.0)
    standing.signal(signal.SIGSTOP)
    watching._turn()
    assert standing.killed_because == "its event loop stood still for 60 s"
    assert os.waitstatus_to_exitcode(os.waitpid(standing.pid, 0)[1]) < 0


def test_standstill_of_supervisor_excuses_keeper(watching: Supervisor, standing: Child) -> None:
    watching._turned_at = time.monotonic() - STALL
    watching._turn()
    assert not standing.killed_because


def test_reload_waits_for_lost_keeper(watching: Supervisor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its control socket is closed: the next program would fail at taking it over, and end the server."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        watching._keeper = Child("keeper", 0, ours, status=-9)
        trial = Child("trial", 0, theirs, status=0)
        turns: list[Child] = []

        def turn(also: Child | None = None) -> None:
            assert also is trial
            turns.append(trial)
            if len(turns) == 3:
                watching._keeper = Child("keeper", 1, ours)

        monkeypatch.setattr(watching, "_turn", turn)
        watching._watch_pid(trial)
        assert len(turns) == 3
