"""A forked process as the supervisor sees it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import time
from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from coder.base.errors import CoderError
from coder.base.log import get_logger
from coder.base.signal_names import signal_name
from coder.coderd.processes.control import ControlLink, LineBuffer, Order, Report, read_line
from coder.coderd.processes.forked import DUMP_SIGNAL, exit_now, main_of_fork
from coder.coderd.processes.signals import HANDLED

_MAX_DETAIL = 500
"""Characters of a failure: a reload passes fifty of them in a variable of 128 KiB."""
_DUMP_TIME = 2.0
"""Seconds for a process to write its stacks before it is killed."""
_log = get_logger("supervisor")


class Door(NamedTuple):
    """How other processes reach one that has duties."""

    number: int
    path: str
    duties: tuple[str, ...]


@dataclass(slots=True, eq=False)
class Child:
    """A process of the server."""

    name: str
    pid: int
    control: socket.socket
    number: int = -1
    "Number among the instances of this machine; -1 for a process without duties."
    socket_path: str = ""
    duties: tuple[str, ...] = ()
    began_at: float = field(default_factory=time.monotonic)
    beat_at: float = field(default_factory=time.monotonic)
    is_ready: bool = False
    leaves_by: float = 0.0
    "Time when it is killed, once it was asked to stop."
    is_retiring: bool = False
    "Whether it finishes its work before it stops."
    knows_retiring: bool = True
    "False for a process of a release that does not know the order."
    waits_for_ports: bool = False
    "Whether it started beside a former process of its name, which holds the ports of their duties."
    killed_because: str = ""
    status: int | None = None
    "As `os.waitstatus_to_exitcode`; None while it runs."
    report: Report | None = None
    "Its last message other than a heartbeat."
    lines: LineBuffer = field(default_factory=LineBuffer)

    @property
    def is_leaving(self) -> bool:
        return self.leaves_by > 0

    @property
    def failure(self) -> CoderError | None:
        """Return the error that it reported before it ended."""
        report = self.report
        if report is None or report.kind != "failed":
            return None
        return CoderError(report.code, report.message, report.hint)

    def describe_end(self) -> tuple[str, str]:
        """Return the cause of its end as a label, and in words."""
        if self.killed_because:
            return "stalled", self.killed_because
        if self.failure is not None:
            return "failed", self.failure.message[:_MAX_DETAIL]
        status = self.status or 0
        if status < 0:
            return "signal", f"killed by {signal_name(-status)}"
        return "exit", f"ended with exit status {status}"

    def send(self, order: Order) -> None:
        """Send an order; a process that does not read is noticed by its missing heartbeats."""
        with contextlib.suppress(OSError):
            self.control.send(msgspec.json.encode(order) + b"\n")

    def read(self) -> bool:
        """Apply its messages; return False when it has closed its end."""
        try:
            data = self.control.recv(1 << 16)
        except BlockingIOError:
            return True
        except OSError:
            return False
        self._take(data)
        return bool(data)

    def _read_last_messages(self) -> None:
        with contextlib.suppress(OSError):
            while data := self.control.recv(1 << 16):
                self._take(data)

    def _take(self, data: bytes) -> None:
        for line in self.lines.add(data):
            report = read_line(line, Report)
            if report is not None:
                self._apply(report)

    def _apply(self, report: Report) -> None:
        self.beat_at = time.monotonic()
        if report.kind == "beat":
            return
        self.report = report
        self.is_ready = self.is_ready or report.kind in {"ready", "database"}

    def ask_to_stop(self, within: float) -> None:
        """Ask it to stop; the supervisor kills it after `within` seconds."""
        if not self.is_leaving or self.is_retiring:
            self.is_retiring = False
            self.leaves_by = time.monotonic() + within
            self.send(Order("stop"))
            self.signal(signal.SIGTERM)
            self.signal(signal.SIGCONT)  # a stopped process would get neither

    def ask_to_retire(self, within: float) -> None:
        """Ask it to finish its work, take no more, and then stop."""
        if not self.is_leaving:
            self.is_retiring = True
            self.leaves_by = time.monotonic() + within
            self.send(Order("retire"))

    def free_ports(self) -> None:
        """Let it bind the ports of its duties."""
        self.waits_for_ports = False
        self.send(Order("ports"))

    def end_overdue(self, now: float, stall: float, start: float) -> None:
        """Kill it when it stood still, or was too slow to start or to stop."""
        if self.status is not None:
            return
        if self.is_leaving and now > self.leaves_by:
            _log.warn("a process did not stop in time and is killed", process=self.name, pid=self.pid)
            self.signal(signal.SIGKILL)
        elif self.is_ready and now - self.beat_at > stall and not self.killed_because:
            _log.error("a process stands still and is killed", process=self.name, pid=self.pid)
            self.kill_stalled(f"its event loop stood still for {stall:.0f} s")
        elif not self.is_ready and now - self.began_at > start and not self.killed_because:
            self.kill_stalled(f"it did not start within {start:.0f} s")

    def kill_stalled(self, why: str) -> None:
        """Kill it after it has written its stacks to standard error."""
        self.killed_because = why
        self.signal(DUMP_SIGNAL)
        self.signal(signal.SIGCONT)
        time.sleep(_DUMP_TIME)
        self.signal(signal.SIGKILL)

    def kill_unwatched(self) -> None:
        """Kill it and wait: its messages cannot be read."""
        self.signal(signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self.control.close()

    def signal(self, number: int) -> None:
        if self.status is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def reap(self) -> bool:
        """Return whether it has ended just now."""
        if self.status is not None:
            return False
        try:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
        except ChildProcessError:
            pid, status = self.pid, 0
        if not pid:
            return False
        self._read_last_messages()
        self.status = os.waitstatus_to_exitcode(status)
        self.control.close()
        return True


def fork(
    name: str,
    run: Callable[[ControlLink], Awaitable[None]],
    closed: Iterable[socket.socket],
    door: Door | None = None,
) -> Child:
    """Fork a process that runs `run`, without the supervisor's sockets in `closed`. Raises OSError when the system
    has no process or descriptor left."""
    ours, theirs = socket.socketpair()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # closed, or on a full disk
            stream.flush()
    signal.pthread_sigmask(signal.SIG_BLOCK, HANDLED)
    try:
        pid = os.fork()
    except OSError:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HANDLED)
        ours.close()
        theirs.close()
        raise
    if not pid:
        status = 1
        try:
            ours.close()
            for inherited in closed:
                inherited.close()
            status = main_of_fork(name, theirs, run)
        finally:
            exit_now(status)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, HANDLED)
    theirs.close()
    ours.setblocking(False)
    return Child(name, pid, ours, *door) if door is not None else Child(name, pid, ours)


def reap_orphans(known: Collection[int], *, is_init: bool | None = None) -> None:
    """Reap processes that became ours because their parents ended: the first process of a container gets them all.

    Zombies would fill the container's limit of processes. `known` are the children that the supervisor reaps itself.
    """
    if not (os.getpid() == 1 if is_init is None else is_init):
        return
    with contextlib.suppress(ChildProcessError):  # there are no children
        while (ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) and ended.si_pid not in known:
            os.waitpid(ended.si_pid, os.WNOHANG)
