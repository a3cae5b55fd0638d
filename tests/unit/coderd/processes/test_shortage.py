"""A supervisor on a machine without room for another process: the other processes go on, and it tries again."""

from __future__ import annotations

import errno
import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from coder.coderd.config.settings import ServerConfig
from coder.coderd.processes import children, reload
from coder.coderd.processes.children import Child
from coder.coderd.processes.signals import HANDLED
from coder.coderd.processes.supervisor import LONGEST_REST, Supervisor


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
    watching._due = {"api-1": time.monotonic() - 1}
    watching._replace_ended()
    assert 0 < watching._due["api-1"] - time.monotonic() <= LONGEST_REST
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
    assert watching._due.keys() == {"api-2", "relay", "edge", "loops"}


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
