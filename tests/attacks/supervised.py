"""A supervisor whose processes are `sleep`, and a system that refuses what it is told to.

    with supervised(monkeypatch, folder) as supervised:
        supervised.refuse("os.fork", errno.EAGAIN)
        os.kill(supervised.child("relay").pid, signal.SIGKILL)
        supervised.settle()

The supervisor is the real one, in this process, without its loop: `settle` turns it. Only `os.fork` is replaced.
"""

from __future__ import annotations

import contextlib
import errno
import os
import selectors
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from coder.base.log import also as log_to
from coder.coderd.config.settings import ServerConfig
from coder.coderd.processes import children, losses, reload, sockets, supervisor
from coder.coderd.processes.children import Child
from coder.coderd.processes.control import Report
from coder.coderd.processes.supervisor import Supervisor

DATABASE = "postgresql://coder@/coder"
PATIENCE = 20.0


class _Stream:
    """Standard output or error that refuses once."""

    def __init__(self, made: Supervised, point: str) -> None:
        self._made, self._point = made, point

    def write(self, text: str) -> int:
        self._made.check(self._point)
        return len(text)

    def flush(self) -> None:
        self._made.check(self._point)


class _Control:
    """The supervisor's end of a link."""

    def __init__(self, made: Supervised, control: socket.socket) -> None:
        self._made, self._control = made, control

    def __getattr__(self, name: str) -> Any:
        if name in {"send", "recv"}:
            self._made.check(name)
        return getattr(self._control, name)


@dataclass
class Supervised:
    supervisor: Supervisor
    log: list[str] = field(default_factory=list)
    refused: tuple[str, int] | None = None
    "The call that the system refuses next."
    spawned: str = ""
    "Name of the process that is forked."
    other_end: socket.socket | None = None
    ends: dict[int, socket.socket] = field(default_factory=dict)
    "The processes' ends of their links, by pid."
    trial: str = "/bin/true"

    def refuse(self, point: str, number: int) -> None:
        """Let the system refuse the next call at a point."""
        self.refused = point, number

    def check(self, point: str) -> None:
        if self.refused is not None and self.refused[0] == point:
            number, self.refused = self.refused[1], None
            raise OSError(number, os.strerror(number))

    def child(self, name: str) -> Child:
        if name == "keeper":
            assert self.supervisor._keeper is not None
            return self.supervisor._keeper
        return next(child for child in self.supervisor._workers if child.name == name)

    def lose(self, name: str) -> None:
        """Kill a process, and turn until the supervisor knows."""
        child = self.child(name)
        os.kill(child.pid, signal.SIGKILL)
        while child.status is None:
            self.supervisor._turn()

    def is_whole(self) -> bool:
        """Whether each process lives once, ready, and nothing is left of others."""
        made = self.supervisor
        workers = [child.name for child in made._workers if child.is_ready and child.status is None]
        keeper = made._keeper
        if sorted(workers) != sorted(spec.name for spec in made._specs) or made._losses.due:
            return False
        return keeper is not None and keeper.status is None and keeper.is_ready

    def settle(self) -> None:
        """Turn the supervisor until everything lives again."""
        until = time.monotonic() + PATIENCE
        self.supervisor._excuse()  # what sleeps has no heartbeat
        while not self.is_whole():
            assert time.monotonic() < until, (self.log[-5:], self.supervisor._losses.due)
            self.supervisor._turn()
        living = {child.pid for child in [*self.supervisor._workers, self.supervisor._keeper] if child is not None}
        for pid in self.ends.keys() - living:
            self.ends.pop(pid).close()

    def doors(self) -> int:
        """Return how many sockets of processes lie in the folder."""
        return len(list(self.supervisor._folder.iterdir()))

    def fork(self) -> int:
        assert self.other_end is not None
        try:
            self.check("os.fork")
        except OSError:
            self.other_end.close()
            raise
        is_short = self.spawned == "migrations"
        words = ["/bin/true"] if is_short else ["/bin/sleep", "600"]
        # Python ignores some signals, and what it starts inherits that.
        pid = os.posix_spawn(words[0], words, {}, setsigmask=(), setsigdef=(signal.SIGPIPE, signal.SIGXFSZ))
        report = Report("database", database_url=DATABASE) if self.spawned == "keeper" else Report("ready")
        self.other_end.send(msgspec.json.encode(report) + b"\n")
        self.ends[pid] = self.other_end
        return pid


def _install(made: Supervised, patch: pytest.MonkeyPatch) -> None:
    real_fork, real_pair, real_unlink = children.fork, socket.socketpair, Path.unlink
    real_folder, real_wait, real_kill, real_spawn = tempfile.mkdtemp, os.waitpid, os.kill, os.posix_spawn

    def fork(name: str, *words: Any, **fields: Any) -> Child:
        made.spawned = name
        child = real_fork(name, *words, **fields)
        child.control = _Control(made, child.control)  # type: ignore[assignment]
        return child

    def pair() -> tuple[socket.socket, socket.socket]:
        made.check("socket.socketpair")
        ours, theirs = real_pair()
        made.other_end = theirs.dup()
        return ours, theirs

    class Door(socket.socket):
        def bind(self, address: Any) -> None:
            made.check("socket.bind")
            super().bind(address)

        def listen(self, *words: int) -> None:
            made.check("socket.listen")
            super().listen(*words)

    def door(*words: Any) -> Door:
        made.check("socket.socket")
        return Door(*words)

    def unlink(path: Path, missing_ok: bool = False) -> None:
        if path.suffix == ".sock":
            made.check("unlink")
        real_unlink(path, missing_ok=missing_ok)

    def new_folder(*words: Any, **more: Any) -> str:
        made.check("mkdtemp")
        return str(real_folder(*words, **more))

    def wait(pid: int, options: int) -> tuple[int, int]:
        found = real_wait(pid, options)
        if found[0]:
            made.check("waitpid")
        return found

    def kill(pid: int, number: int) -> None:
        made.check("kill")
        real_kill(pid, number)

    def spawn(_path: str, *_words: Any) -> int:
        made.check("posix_spawn")
        return real_spawn(made.trial, [made.trial], {})

    def execute(*_words: Any) -> None:
        made.check("execve")
        raise OSError(errno.ENOENT, "a program of no tests")

    patch.setattr(supervisor, "fork", fork)
    patch.setattr(children, "os", _with(os, fork=made.fork, waitpid=wait, kill=kill))
    patch.setattr(children, "socket", _with(socket, socketpair=pair))
    patch.setattr(children, "sys", SimpleNamespace(stdout=_Stream(made, "stdout"), stderr=_Stream(made, "stderr")))
    patch.setattr(sockets, "socket", _with(socket, socket=door))
    patch.setattr(sockets, "tempfile", _with(tempfile, mkdtemp=new_folder))
    patch.setattr(Path, "unlink", unlink)
    patch.setattr(reload, "os", _with(os, posix_spawn=spawn, execve=execute))
    patch.setattr(reload, "sys", _with(sys, stdout=_Stream(made, "stdout"), stderr=_Stream(made, "stderr")))
    register = made.supervisor._selector.register

    def watch(*words: Any) -> selectors.SelectorKey:
        made.check("register")
        return register(*words)

    made.supervisor._selector.register = watch  # type: ignore[assignment]


def _with(module: Any, **changed: Any) -> Any:
    """Return a module with other functions, for one reader of it."""
    return SimpleNamespace(**{**vars(module), **changed})


@contextlib.contextmanager
def supervised(patch: pytest.MonkeyPatch, folder: Path) -> Iterator[Supervised]:
    patch.setattr(supervisor, "_TICK", 0.01)
    for name in ("FIRST_REST", "LONGEST_REST"):
        patch.setattr(losses, name, 0.0)
    patch.setattr(children, "_DUMP_TIME", 0.0)
    patch.setenv("TMPDIR", str(folder))
    patch.setattr(tempfile, "tempdir", str(folder))
    config = ServerConfig(processes=1, http_address="127.0.0.1:0", data_dir=folder)
    made = Supervised(Supervisor(config, None, lambda _text: None, lambda: None))
    _install(made, patch)
    patch.setattr(made.supervisor, "_load", lambda: setattr(made.supervisor, "_application", None))
    made.supervisor._folder = sockets.new_folder()

    def note(_level: Any, _at: Any, _name: str, message: str, fields: dict[str, Any]) -> None:
        made.log.append(f"{message} {fields}")

    with log_to(note):
        try:
            made.supervisor._start()
            yield made
        finally:
            made.refused = None
            for pid in made.ends:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            made.supervisor._stop()
            for end in made.ends.values():
                end.close()
