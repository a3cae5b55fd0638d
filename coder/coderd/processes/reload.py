"""Executing the program again in place: the process keeps its id, its children and its sockets.

The new program gets what it inherits as JSON in an environment variable, descriptors by number. Before, a trial of it
loads everything with the current settings; one that fails changes nothing.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from collections.abc import Iterable

import msgspec

from coder.base.log import get_logger
from coder.base.own_binary import own_binary
from coder.coderd.processes.children import Child
from coder.coderd.services.foundation.this_process import Incident

STATE = "CODER_SUPERVISOR_STATE"
TRIAL = "CODER_SUPERVISOR_TRIAL"
"""Set for a trial: the program ends with status 0 once it has loaded its settings and modules, and could listen on the
addresses that are new. The value is a JSON list of the settings of those that the supervisor listens on."""
TRIAL_TIMEOUT = 60.0
_log = get_logger("supervisor")


class InheritedChild(msgspec.Struct):
    """A process that goes on."""

    name: str
    pid: int
    control: int
    number: int
    socket_path: str
    duties: tuple[str, ...]
    is_ready: bool = True
    knows_retiring: bool = False
    waits_for_ports: bool = False
    leaves_by: float = 0.0
    "By the machine's monotonic clock, which the next program reads as well."
    is_retiring: bool = False


class State(msgspec.Struct):
    """What a supervisor passes to the program that it executes."""

    machine: str
    next_number: int
    folder: str
    database_url: str
    sockets: list[tuple[str, str, int]]
    "URL, setting, descriptor."
    workers: list[InheritedChild]
    keeper: InheritedChild | None = None
    lost: list[str] = []
    incidents: list[Incident] = []
    restarts: list[tuple[str, str, int]] = []


def inherited_state() -> State | None:
    """Return what the former program of this process left, once; None in a fresh process."""
    text = os.environ.pop(STATE, "")
    return msgspec.json.decode(text, type=State) if text else None


def is_under_supervisor() -> bool:
    """Return whether a supervisor executed this program, to go on in its place or to try."""
    return STATE in os.environ or is_trial()


def is_trial() -> bool:
    return bool(os.environ.get(TRIAL))


def program() -> tuple[str, list[str]]:
    """Return the file to execute and its arguments, as this process was started."""
    binary = own_binary()
    if binary is not None:
        return str(binary), [str(binary), *sys.argv[1:]]
    return sys.executable, [sys.executable, *sys.orig_argv[1:]]


def known_addresses() -> frozenset[str] | None:
    """Return the addresses that the supervisor of this trial listens on, as `BoundSocket.address`; None for a
    supervisor of an earlier release, which does not say."""
    try:
        return frozenset(msgspec.json.decode(os.environ.get(TRIAL, ""), type=list[str]))
    except msgspec.MsgspecError:
        return None


def start_trial(addresses: Iterable[str]) -> Child | None:
    """Start a trial of the program on disk; its exit status is the result. None when the machine has no descriptor
    left."""
    try:
        ours, theirs = socket.socketpair()
    except OSError as error:
        _log.error("the program on disk cannot be tried; nothing is changed", error=error)
        return None
    with theirs:
        path, arguments = program()
        environment = {**os.environ, TRIAL: msgspec.json.encode(list(addresses)).decode()}
        try:
            pid = os.posix_spawn(path, arguments, environment)
        except OSError as error:
            ours.close()
            _log.error("the program cannot be executed", path=path, error=error)
            failed = Child("trial", 0, ours)
            failed.status = 127
            return failed
    ours.setblocking(False)
    return Child("trial", pid, ours)


def execute(state: State) -> None:
    """Become the program on disk; return when the system refuses."""
    descriptors = [
        *(descriptor for _, _, descriptor in state.sockets),
        *(child.control for child in state.workers),
        *([state.keeper.control] if state.keeper is not None else []),
    ]
    path, arguments = program()
    for descriptor in descriptors:
        os.set_inheritable(descriptor, True)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # closed, or on a full disk
            stream.flush()
    try:
        os.execve(path, arguments, {**os.environ, STATE: msgspec.json.encode(state).decode()})  # noqa: S606 - without a shell on purpose
    except OSError as error:
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)
        _log.error("the program cannot be executed", path=path, error=error)


def adopt(child: InheritedChild) -> Child:
    """Return a process that the former program started."""
    control = socket.socket(fileno=child.control)
    control.setblocking(False)
    os.set_inheritable(child.control, False)
    return Child(
        child.name,
        child.pid,
        control,
        number=child.number,
        socket_path=child.socket_path,
        duties=child.duties,
        is_ready=child.is_ready,
        knows_retiring=child.knows_retiring,
        waits_for_ports=child.waits_for_ports,
        leaves_by=child.leaves_by,
        is_retiring=child.is_retiring,
    )


def inherited(child: Child) -> InheritedChild:
    """Return what the next program needs to know of a process."""
    return InheritedChild(
        child.name,
        child.pid,
        child.control.fileno(),
        child.number,
        child.socket_path,
        child.duties,
        child.is_ready,
        child.knows_retiring,
        child.waits_for_ports,
        child.leaves_by,
        child.is_retiring,
    )
