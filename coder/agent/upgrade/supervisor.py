"""Upgrade of a system whose processes cannot become another program (Windows has no execve).

The process that was started stays: it starts the newer program, gives it the handover document, and waits. So a service
manager sees the process it started, and a program that ends before it has connected is replaced by the one before it.
A newer program that is itself replaced gives the document back and ends, so there are never more than two processes.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from coder.agent.platform import system
from coder.agent.upgrade import handover as documents
from coder.agent.upgrade.handover import Handover, Restart, decode, encode, replace_program
from coder.base.errors import explain_error
from coder.base.log import get_logger

VARIABLE = "CODER_AGENT_SUPERVISOR"
"""Environment variable with the started program's end of the pipe to the process that started it."""
_TAKEN_OVER = b"T"
"First byte in that pipe: the program has taken over. A document may follow, for the next program."
log = get_logger("agent.upgrade")


@dataclass(frozen=True, slots=True)
class _Outcome:
    """End of a program."""

    code: int
    took_over: bool
    document: bytes
    "Document for the next program, empty if there is none."
    reason: str = ""
    "Reason why it could not be started."


class Supervisor:
    """Pipe from this program to the process that started it."""

    def __init__(self, descriptor: int) -> None:
        self._pipe = os.fdopen(descriptor, "wb", buffering=0)
        self._reported = False

    def report_takeover(self) -> None:
        """Report that this program has connected to the server; from now on its end is the agent's end."""
        if not self._reported:
            self._reported = True
            self._pipe.write(_TAKEN_OVER)

    def pass_on(self, document: bytes) -> None:
        """Give a document for the next program. The caller ends. Raises OSError."""
        with self._pipe:
            self.report_takeover()
            left = memoryview(document)
            while left:
                left = left[self._pipe.write(left) or 0 :]


_own: Supervisor | None = None


def find_supervisor(environ: MutableMapping[str, str]) -> bool:
    """Remember the process that started this program; return whether there is one. Raises OSError."""
    global _own
    named = environ.pop(VARIABLE, "")
    if named:
        _own = Supervisor(system.adopt_inherited(int(named), os.O_WRONLY))
    return _own is not None


def report_takeover() -> None:
    """Report that this program has connected, where another process started it and still waits for it."""
    if _own is not None:
        try:
            _own.report_takeover()
        except OSError as error:
            log.warn("the process that started this program has ended", reason=error.strerror)


def hand_over(handover: Handover, restart: Restart) -> Handover:
    """Continue as the newer program, in this process where that is possible. Returns only on failure, as
    `replace_program`."""
    return replace_program(handover, restart) if system.HAS_EXECVE else run_successor(handover, restart)


def run_successor(handover: Handover, restart: Restart) -> Handover:
    """Run newer programs until one ends that has taken over, then end with its exit code (SystemExit).

    Returns only on failure: the state to continue with in this process, with the reason in `refused`.
    """
    if _own is not None:
        try:
            _own.pass_on(encode(handover))
        except OSError as error:
            return replace(handover, refused=f"it could not be started: {error.strerror}")
        raise SystemExit(0)
    before = ""
    while True:
        outcome = _run(handover.program, encode(handover), restart)
        if outcome.document:
            before, handover = handover.program, decode(outcome.document)
        elif outcome.took_over:
            raise SystemExit(outcome.code)
        else:
            reason = outcome.reason or f"it ended with code {outcome.code} before it had connected"
            was_first = not handover.refused
            handover = replace(handover, refused=handover.refused or reason)
            if not before or not was_first:
                return handover
            handover = replace(handover, program=before)  # the program before it continues
            log.error("a newer program ended; the one before it continues", reason=reason, path=before)


def _run(program: str, document: bytes, restart: Restart) -> _Outcome:
    """Run a program to its end with the document in its standard input."""
    reading, writing = os.pipe()
    try:
        with _no_interrupts(), os.fdopen(reading, "rb") as pipe:
            env = {**restart.env, documents.VARIABLE: documents.STANDARD_INPUT}
            process = system.start_successor([program, *restart.arguments], env, VARIABLE, writing, _outputs())
            os.close(writing)
            writing = -1
            assert process.stdin is not None  # noqa: S101 - start_successor makes a pipe
            try:
                with process.stdin as given:
                    given.write(document)
            except OSError:
                pass  # it has ended, which the pipe tells, too
            said = pipe.read()
            return _Outcome(process.wait(), said[:1] == _TAKEN_OVER, said[1:])
    except OSError as error:
        return _Outcome(-1, False, b"", f"it could not be started: {error.strerror or explain_error(error)}")
    finally:
        if writing >= 0:
            os.close(writing)


def _outputs() -> tuple[int, int]:
    """Return descriptors for the program's output: ours, where they exist."""
    found = []
    for stream in (sys.stdout, sys.stderr):
        try:
            found.append(stream.fileno())
        except (AttributeError, OSError, ValueError):
            found.append(subprocess.DEVNULL)
    return found[0], found[1]


@contextmanager
def _no_interrupts() -> Iterator[None]:
    """Leave Ctrl-C and Ctrl-Break to the program, which shares our console. An ignored signal would be inherited."""
    names = ("SIGINT", "SIGBREAK")
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    before = {number: signal.signal(number, lambda _number, _frame: None) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
