"""Handover from one program of an agent to the next in the same process: a document in an unnamed file, and
descriptors.

execve(2) keeps the process, its children and the descriptors that are not marked close-on-exec. So terminals and pipes
stay open, `wait` still works, and a service manager sees the process it started. The document is never on a disk by
name. When the other program cannot start, this one continues with everything in the same process.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import tempfile
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from coder.agent.platform import system
from coder.agent.upgrade.signals import replay_signals, signals_to_pipe
from coder.agent.upgrade.supervisor import run_successor
from coder.base.errors import CoderError, explain_error
from coder.base.open_files import lowered_open_files

FORMAT = 1
"""Format version of the document: a program is asked for it before it receives one. Raised when another program would
misread the document."""
VARIABLE = "CODER_AGENT_HANDOVER"
"""Environment variable that names the document's descriptor to the started program."""
STANDARD_INPUT = "stdin"
"""Value of that variable for a document in standard input, from a process that waits for the program."""
_ROOM = 1 << 20
"Bytes of a document with many terminals."


@dataclass(slots=True)
class KeptTerminal:
    """Terminal that outlives its connections."""

    ident: str
    pid: int
    master: int
    replay: bytes


@dataclass(slots=True)
class KeptProcess:
    """Command that was started through the API."""

    ident: str
    command: str
    workdir: str
    background: bool
    pid: int
    started: float
    output: int | None
    "Descriptor of the reading end; None when the command has ended."
    head: bytes
    tail: bytes
    size: int
    exited: float | None
    exit_code: int | None


@dataclass(slots=True)
class KeptUnits:
    """Socket of `coder exp sync` and the progress of its units."""

    path: str
    owns_folder: bool
    status: dict[str, str]
    wanted: dict[str, list[str]]


@dataclass(slots=True)
class KeptContainer:
    """Dev container that was built. Only its builder reported the container id and how to enter it."""

    folder: str
    container_id: str
    remote_user: str
    workspace_folder: str
    config: str = ""
    "Path of its description."


@dataclass(slots=True)
class Handover:
    """Complete handover document."""

    version: str
    "Version of the program that hands over."
    target: str
    "Version of the program that takes over."
    program: str
    "File that is started."
    states: list[tuple[int, float]]
    "Lifecycle states reached, with times in seconds since 1970."
    manifest: bytes
    terminals: list[KeptTerminal]
    processes: list[KeptProcess]
    units: KeptUnits | None
    refused: str = ""
    "Reason why the other program could not be started, in the document the old program continues with."
    reported: int | None = None
    "Number of states the server has confirmed; None in an older program's document."
    signals: int | None = None
    "Descriptor of a pipe with the numbers of signals that arrived during the exec."
    digest: str = ""
    "SHA-256 of the program that takes over, in hex; empty in an older program's document."
    containers: list[KeptContainer] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Restart:
    """Arguments and environment this program was started with."""

    arguments: tuple[str, ...]
    "Arguments without the program's own name."
    env: Mapping[str, str]
    caught: tuple[signal.Signals, ...] = ()
    "Signals that were ignored at our start; the next program must find them ignored."


def descriptors(handover: Handover) -> list[int]:
    """Return every descriptor that has to stay open."""
    pipes = [item.output for item in handover.processes if item.output is not None]
    signal_pipe = [handover.signals] if handover.signals is not None else []
    return [item.master for item in handover.terminals] + pipes + signal_pipe


def replace_program(handover: Handover, restart: Restart) -> Handover:
    """Replace this process by the other program. Returns only on failure: the state to continue with, with the reason
    in `refused`. Where processes cannot do that, this one starts the other program and waits for it."""
    if not system.HAS_EXECVE:
        return run_successor(handover, restart)
    before, reason = {number: signal.signal(number, signal.SIG_IGN) for number in restart.caught}, ""
    try:
        with signals_to_pipe() as handover.signals:
            _start([handover.program, *restart.arguments], handover, restart.env)
    except Exception as error:  # any failure: shells and commands are still here
        reason = getattr(error, "strerror", None) or explain_error(error).split("\n")[0]
    finally:
        handover.signals = None
    for number, handler in before.items():
        signal.signal(number, handler)
    _set_close_on_exec(handover)
    return replace(handover, refused=f"it could not be started: {reason}")


def _start(argv: list[str], handover: Handover, env: Mapping[str, str]) -> None:
    """Start the other program. Raises any error that prevents it."""
    document = _unnamed_file()
    try:
        with os.fdopen(document, "wb", closefd=False) as out:
            out.write(encode(handover))
        os.lseek(document, 0, os.SEEK_SET)
        for number in [document, *descriptors(handover)]:
            os.set_inheritable(number, True)
        _close_launcher_lock_on_exec()
        with lowered_open_files():
            os.execve(argv[0], argv, {**env, VARIABLE: str(document)})  # noqa: S606 - the purpose
    finally:
        os.close(document)


def encode(handover: Handover) -> bytes:
    """Encode as JSON. Texts come from clients and may hold half a surrogate pair, which is not UTF-8 and which JSON can
    escape."""
    import msgspec  # a megabyte, which an agent that hands nothing over does not need

    return json.dumps(msgspec.to_builtins(handover)).encode()


def decode(document: bytes) -> Handover:
    """Decode a document. Raises ValueError, RecursionError."""
    import msgspec

    return msgspec.convert(json.loads(document), Handover)


def rehearse() -> None:
    """Write a document without handing it over. Raises OSError when that is impossible now: better before everything is
    stopped."""
    document = _unnamed_file()
    with os.fdopen(document, "wb") as out:
        out.write(bytes(_ROOM))


def _close_launcher_lock_on_exec() -> None:
    """Close our launcher's lock on exec: the lock on the folder we were unpacked into is not the next program's, and
    would be held forever."""
    with contextlib.suppress(OSError):  # run from sources; or a system that does not list descriptors
        lock = (Path(sys.executable).parent / ".lock").stat()
        for number in [int(entry.name) for entry in Path("/dev/fd").iterdir()]:
            with contextlib.suppress(OSError):  # the listing's own descriptor is closed by now
                handover = os.fstat(number)
                if (handover.st_dev, handover.st_ino) == (lock.st_dev, lock.st_ino):
                    os.set_inheritable(number, False)


def _set_close_on_exec(handover: Handover) -> None:
    """Mark the descriptors close-on-exec, so that new shells do not hold other terminals."""
    for number in descriptors(handover):
        os.set_inheritable(number, False)


def _unnamed_file() -> int:
    if hasattr(os, "memfd_create"):  # needs no disk space
        return os.memfd_create("coder-agent-handover")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def take_over(environ: MutableMapping[str, str]) -> Handover | None:
    """Return the state that the previous program left; None when the agent was started normally. Raises CoderError."""
    named = environ.pop(VARIABLE, "")
    if not named:
        return None
    try:
        with os.fdopen(0 if named == STANDARD_INPUT else int(named), "rb", closefd=named != STANDARD_INPUT) as file:
            handover = decode(file.read())
        _set_close_on_exec(handover)
        if handover.signals is not None:
            with contextlib.suppress(OSError):  # a failure costs no shell
                replay_signals(handover.signals)
            handover.signals = None
    except (OSError, ValueError, RecursionError) as error:
        raise CoderError("handover", "the handover document of the previous program cannot be read") from error
    return handover
