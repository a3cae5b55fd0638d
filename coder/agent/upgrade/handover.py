"""What one program of an agent leaves to the next in the same process: a document in an unnamed file, and descriptors.

execve(2) keeps the process, its children and the descriptors that are not marked close-on-exec. So terminals and
pipes stay open, `wait` still works, and a service manager sees the process it started. Nothing of it is ever on a disk
by name.
"""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass

import msgspec

from coder.base.errors import CoderError

FORMAT = 1
"""Of the document: a program is asked for it before it is trusted with one. Raised when another would misread it."""
VARIABLE = "CODER_AGENT_HANDOVER"
"""Names the document's descriptor to the program that is started."""


class KeptTerminal(msgspec.Struct):
    """A terminal that outlives its connections."""

    ident: str
    pid: int
    master: int
    replay: bytes


class KeptProcess(msgspec.Struct):
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


class KeptUnits(msgspec.Struct):
    """The socket of `coder exp sync` and how far its units are."""

    path: str
    owns_folder: bool
    status: dict[str, str]
    wanted: dict[str, list[str]]


class Handover(msgspec.Struct):
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
    "Why the other program could not be started, in what the old one leaves to itself."
    digest: str = ""
    "SHA-256 of that program, in hex; empty in what an older program left."


@dataclass(frozen=True, slots=True)
class Restart:
    """How this program was started."""

    argv: tuple[str, ...]
    "The program's own words first, such as an interpreter and its module; the arguments after them."
    own_words: int
    "How many of them are the program's own."
    env: Mapping[str, str]
    caught: tuple[signal.Signals, ...] = ()
    "Signals that were ignored when we were started; what replaces us must find them so."


def descriptors(handover: Handover) -> list[int]:
    """Everything that has to stay open."""
    pipes = [one.output for one in handover.processes if one.output is not None]
    return [one.master for one in handover.terminals] + pipes


def replace_program(handover: Handover, restart: Restart) -> None:
    """Becomes the other program; does not return. Where that fails, the old one starts anew with everything it had.

    Raises OSError when neither can be started.
    """
    for number in restart.caught:
        signal.signal(number, signal.SIG_IGN)
    arguments = restart.argv[restart.own_words :]
    try:
        _start([handover.program, *arguments], handover, restart.env)
    except OSError as error:
        handover.refused = f"it could not be started: {error.strerror}"
        _start(list(restart.argv), handover, restart.env)


def _start(argv: list[str], handover: Handover, env: Mapping[str, str]) -> None:
    document = _unnamed_file()
    with os.fdopen(document, "wb", closefd=False) as out:
        out.write(msgspec.json.encode(handover))
    os.lseek(document, 0, os.SEEK_SET)
    for number in [document, *descriptors(handover)]:
        os.set_inheritable(number, True)
    try:
        os.execve(argv[0], argv, {**env, VARIABLE: str(document)})  # noqa: S606 - that is what this is for
    finally:
        os.close(document)


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
            found = msgspec.json.decode(file.read(), type=Handover)
        for number in descriptors(found):
            os.set_inheritable(number, False)  # shells that are started from now on must not hold others' terminals
    except (OSError, ValueError, msgspec.DecodeError) as error:
        raise CoderError("handover", "what the program before this one left cannot be read") from error
    return found
