"""What one program of an agent leaves to the next in the same process: a document in an unnamed file, and descriptors.

execve(2) keeps the process, its children and the descriptors that are not marked close-on-exec. So terminals and
pipes stay open, `wait` still works, and a service manager sees the process it started. Nothing of it is ever on a disk
by name. Whatever fails before the other program has begun, this one goes on with everything in the same process.
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

from coder.agent.upgrade.signals import take_told, told_to_a_pipe
from coder.base.errors import CoderError, explain_error
from coder.base.open_files import lowered_open_files

FORMAT = 1
"""Of the document: a program is asked for it before it is trusted with one. Raised when another would misread it."""
VARIABLE = "CODER_AGENT_HANDOVER"
"""Names the document's descriptor to the program that is started."""
_ROOM = 1 << 20
"Bytes of a document of many terminals."


@dataclass(slots=True)
class KeptTerminal:
    """A terminal that outlives its connections."""

    ident: str
    pid: int
    master: int
    replay: bytes


@dataclass(slots=True)
class KeptProcess:
    """A command that was started from afar."""

    ident: str
    command: str
    workdir: str
    background: bool
    pid: int
    started: float
    output: int | None
    "Descriptor of the reading end; None when it has ended."
    head: bytes
    tail: bytes
    size: int
    exited: float | None
    exit_code: int | None


@dataclass(slots=True)
class KeptUnits:
    """The socket of `coder exp sync` and how far its units are."""

    path: str
    owns_folder: bool
    status: dict[str, str]
    wanted: dict[str, list[str]]


@dataclass(slots=True)
class KeptContainer:
    """A dev container that was built: which one it is, and how to go in, only its builder has told."""

    folder: str
    container_id: str
    remote_user: str
    workspace_folder: str
    config: str = ""
    "Its description's path."


@dataclass(slots=True)
class Handover:
    """All of it."""

    version: str
    "Of the program that hands over."
    target: str
    "Version of the program that takes over."
    program: str
    "The file that is started."
    states: list[tuple[int, float]]
    "Lifecycle states reached, and when in seconds since 1970."
    manifest: bytes
    terminals: list[KeptTerminal]
    processes: list[KeptProcess]
    units: KeptUnits | None
    refused: str = ""
    "Why the other program could not be started, in what the old one goes on with."
    reported: int | None = None
    "How many of the states the server has confirmed; None in what an older program left."
    signals: int | None = None
    "Descriptor of a pipe with the numbers of signals that came at the very end."
    digest: str = ""
    "SHA-256 of that program, in hex; empty in what an older program left."
    containers: list[KeptContainer] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Restart:
    """How this program was started."""

    arguments: tuple[str, ...]
    "Without the program's own words."
    env: Mapping[str, str]
    caught: tuple[signal.Signals, ...] = ()
    "Signals that were ignored when we were started; what replaces us must find them so."


def descriptors(handover: Handover) -> list[int]:
    """Everything that has to stay open."""
    pipes = [one.output for one in handover.processes if one.output is not None]
    told = [handover.signals] if handover.signals is not None else []
    return [one.master for one in handover.terminals] + pipes + told


def replace_program(handover: Handover, restart: Restart) -> Handover:
    """Becomes the other program. Returns only when that fails: what this one goes on with, `refused` says why."""
    before, reason = {number: signal.signal(number, signal.SIG_IGN) for number in restart.caught}, ""
    try:
        with told_to_a_pipe() as handover.signals:
            _start([handover.program, *restart.arguments], handover, restart.env)
    except Exception as error:  # whatever it is: shells and commands are still here
        reason = getattr(error, "strerror", None) or explain_error(error).split("\n")[0]
    finally:
        handover.signals = None
    for number, handler in before.items():
        signal.signal(number, handler)
    _keep_from_children(handover)
    return replace(handover, refused=f"it could not be started: {reason}")


def _start(argv: list[str], handover: Handover, env: Mapping[str, str]) -> None:
    """Raises whatever stands in the way."""
    document = _unnamed_file()
    try:
        with os.fdopen(document, "wb", closefd=False) as out:
            out.write(_encode(handover))
        os.lseek(document, 0, os.SEEK_SET)
        for number in [document, *descriptors(handover)]:
            os.set_inheritable(number, True)
        _leave_launcher_lock()
        with lowered_open_files():
            os.execve(argv[0], argv, {**env, VARIABLE: str(document)})  # noqa: S606 - that is what this is for
    finally:
        os.close(document)


def _encode(handover: Handover) -> bytes:
    """Texts come from clients and may hold half a surrogate pair, which is no UTF-8 and which JSON can escape."""
    import msgspec  # a megabyte, which an agent that hands nothing over does without

    return json.dumps(msgspec.to_builtins(handover)).encode()


def _decode(document: bytes) -> Handover:
    """Raises ValueError, RecursionError."""
    import msgspec

    return msgspec.convert(json.loads(document), Handover)


def rehearse() -> None:
    """Leaves a document to nobody. Raises OSError when none could be left now: better before everything is ended."""
    document = _unnamed_file()
    with os.fdopen(document, "wb") as out:
        out.write(bytes(_ROOM))


def _leave_launcher_lock() -> None:
    """Our launcher's lock on the folder we were unpacked into is not the next program's, and would keep it for ever."""
    with contextlib.suppress(OSError):  # from sources; or a system that does not list descriptors
        lock = (Path(sys.executable).parent / ".lock").stat()
        for number in [int(entry.name) for entry in Path("/dev/fd").iterdir()]:
            with contextlib.suppress(OSError):  # the listing's own is closed by now
                found = os.fstat(number)
                if (found.st_dev, found.st_ino) == (lock.st_dev, lock.st_ino):
                    os.set_inheritable(number, False)


def _keep_from_children(handover: Handover) -> None:
    """Shells that are started from now on must not hold others' terminals."""
    for number in descriptors(handover):
        os.set_inheritable(number, False)


def _unnamed_file() -> int:
    if hasattr(os, "memfd_create"):  # needs no room on a disk
        return os.memfd_create("coder-agent-handover")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def take_over(environ: MutableMapping[str, str]) -> Handover | None:
    """What the program before us left; None when somebody else started us. Raises CoderError."""
    named = environ.pop(VARIABLE, "")
    if not named:
        return None
    try:
        with os.fdopen(int(named), "rb") as file:
            found = _decode(file.read())
        _keep_from_children(found)
        if found.signals is not None:
            with contextlib.suppress(OSError):  # it costs no shell
                take_told(found.signals)
            found.signals = None
    except (OSError, ValueError, RecursionError) as error:
        raise CoderError("handover", "what the program before this one left cannot be read") from error
    return found
