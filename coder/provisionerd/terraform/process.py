"""Runner of terraform commands: output line by line as it appears, interrupts, and cleanup of all child processes.

A killed daemon cannot stop its children. So a short shell script, the guard, runs alongside every long command: when
the daemon dies, the pipe between the two breaks. The guard then interrupts terraform, which writes its state, and kills
the rest of its process group. It only needs POSIX. Meanwhile it holds the reading ends of the output open: otherwise
terraform would die of its next write.
"""

from __future__ import annotations

import errno
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import trio

from coder.base.child_env import child_env
from coder.base.errors import CoderError
from coder.base.log import get_logger
from coder.provisionerd.terraform.limits import NO_LIMITS, ProcessLimits

_log = get_logger("provisionerd.terraform")

_CHUNK = 65536
_MAX_PENDING = 1024 * 1024
"Bytes after which an unterminated line is passed on in parts, which bounds memory for any template's output."
MAX_CAPTURE = 64 * 1024 * 1024
"""Bytes of a captured output (ours): the JSON of a plan takes some twenty times as much once parsed, in the process of
a server's built-in daemons."""
_MAX_ERROR = 64 * 1024
_DRAIN_TIMEOUT = 1.0
"Seconds to wait for the rest of the output once terraform has exited: a child of it may hold the pipe open."

_INTERRUPT_TIMEOUT = 5.0
"Seconds between the interrupt and the kill when the caller is cancelled."

_SHORTAGES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN})

_GUARD_TIMEOUT = 10
"Seconds the guard grants terraform to stop its work and write its state."
_GUARD = f"""
read -r word && exit 0
trap '' INT TERM HUP
cat <&1 >/dev/null &
cat <&2 >/dev/null &
exec 2>/dev/null
kill -INT "$1"
left={_GUARD_TIMEOUT * 10}
while [ "$left" -gt 0 ] && kill -0 "$1"; do left=$((left - 1)); sleep 0.1; done
kill -KILL "-$1"
"""
# Standard output and error of the guard are the reading ends of terraform's.

OnLine = Callable[[bytes], None]


class ProcessError(CoderError):
    """terraform could not be started."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__("terraform_start", message, hint)


@dataclass(slots=True)
class Runner:
    """Runner of one command at a time with the same directory and base environment; can be interrupted from outside."""

    binary: str
    folder: Path
    exit_timeout: float
    limits: ProcessLimits = NO_LIMITS
    killed_because: str = ""
    "Reason why a command was killed, for the error."
    _canceled: trio.Event = field(default_factory=trio.Event)
    _running: set[trio.Process] = field(default_factory=set)

    def cancel(self) -> None:
        """Interrupt the running command; later commands are interrupted as they start."""
        self._canceled.set()
        for process in self._running:
            _signal(process, signal.SIGINT)

    async def run(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        on_stdout: OnLine,
        on_stderr: OnLine,
        *,
        guarded: bool = True,
    ) -> int:
        """Return the exit status (negative: killed by that signal). Raises ProcessError.

        `guarded`: the command ends with this process, even when that is killed; not worth it for short commands.
        """
        try:
            process = await trio.lowlevel.open_process(
                [self.binary, *arguments],
                cwd=self.folder,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,  # one signal reaches terraform and all its children
            )
        except OSError as problem:
            # A machine without descriptors, processes or memory says nothing about the program.
            hint = "" if problem.errno in _SHORTAGES else "Is it a terraform for this machine?"
            raise ProcessError(f"{self.binary} could not be started: {problem.strerror}", hint) from problem
        self.limits.apply(process.pid)
        self._running.add(process)
        try:
            return await self._follow(process, on_stdout, on_stderr, guarded=guarded)
        finally:
            self._running.discard(process)
            with trio.CancelScope(shield=True):
                await _end(process, interrupted=self._canceled.is_set())

    async def _follow(self, process: trio.Process, on_stdout: OnLine, on_stderr: OnLine, *, guarded: bool) -> int:
        assert process.stdout is not None and process.stderr is not None  # noqa: S101 - both are pipes, asked for above
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._enforce_cancel, process)
            nursery.start_soon(self._enforce_limits, process)
            if guarded:
                nursery.start_soon(_guard, process)
            async with trio.open_nursery() as readers:
                readers.start_soon(_read_lines, process.stdout, on_stdout)
                readers.start_soon(_read_lines, process.stderr, on_stderr)
                status = await process.wait()
                readers.cancel_scope.deadline = trio.current_time() + _DRAIN_TIMEOUT
            nursery.cancel_scope.cancel()
        return status

    async def _enforce_cancel(self, process: trio.Process) -> None:
        if self._canceled.is_set():
            _signal(process, signal.SIGINT)
        await self._canceled.wait()
        await trio.sleep(self.exit_timeout)
        _kill_group(process)

    async def _enforce_limits(self, process: trio.Process) -> None:
        await self.limits.wait_cpu_used(process.pid)
        self.killed_because = f"it used more than {self.limits.cpu_seconds:g} s of processor time and was killed"
        _kill_group(process)

    def explain(self, status: int) -> str:
        """Return the end of a command in the words of an error."""
        return self.killed_because or explain_status(status)

    async def capture(self, arguments: Sequence[str], environment: Mapping[str, str]) -> tuple[int, bytes, bytes]:
        """Return (exit status, stdout, stderr) of a short command."""
        out, err = bytearray(), bytearray()

        def keep(line: bytes) -> None:
            if len(out) + len(line) <= MAX_CAPTURE:
                out.extend(line)
            elif not self.killed_because:
                self.killed_because = f"it printed more than {MAX_CAPTURE >> 20} MiB and was killed"
                for process in self._running:
                    _kill_group(process)

        def keep_last(line: bytes) -> None:
            err.extend(line)
            del err[:-_MAX_ERROR]

        status = await self.run(arguments, environment, keep, keep_last, guarded=False)
        return status, bytes(out), bytes(err)


async def _guard(process: trio.Process) -> None:
    """Keep the guard running until cancelled. When it cannot start, terraform may outlive a killed daemon."""
    assert isinstance(process.stdout, trio.lowlevel.FdStream)  # noqa: S101 - pipes of this system
    assert isinstance(process.stderr, trio.lowlevel.FdStream)  # noqa: S101
    try:
        guard = await trio.lowlevel.open_process(
            ["/bin/sh", "-c", _GUARD, "sh", str(process.pid)],
            cwd="/",
            env={"PATH": child_env().get("PATH", os.defpath)},  # the guard needs no secrets of the daemon
            stdin=subprocess.PIPE,
            stdout=process.stdout.fileno(),
            stderr=process.stderr.fileno(),
            start_new_session=True,
        )
    except (OSError, trio.ClosedResourceError) as problem:
        _log.debug("starting the guard of terraform failed", error=problem)
        return
    assert guard.stdin is not None  # noqa: S101 - a pipe, asked for above
    try:
        await trio.sleep_forever()
    finally:
        with trio.CancelScope(shield=True), suppress(trio.BrokenResourceError):
            await guard.stdin.send_all(b"done\n")
            await guard.wait()
            await guard.stdin.aclose()


async def _read_lines(stream: trio.abc.ReceiveStream, on_line: OnLine) -> None:
    pending = bytearray()
    while data := await stream.receive_some(_CHUNK):
        *ends, rest = data.split(b"\n")  # of the new data only: a long line would be searched again and again
        for end in ends:
            on_line(bytes(pending + end) + b"\n")
            pending.clear()
        pending += rest
        if len(pending) > _MAX_PENDING:
            on_line(bytes(pending))
            pending.clear()
    if pending:
        on_line(bytes(pending))


async def _end(process: trio.Process, *, interrupted: bool) -> None:
    """Clean up after a command: nothing outlives an interrupt, a cancelled caller, or terraform's own death by a
    signal.

    After a normal exit the group is left alone: a template may have started an agent on this machine.
    """
    if process.returncode is None:
        # Long enough for terraform to stop its work and write its state.
        interrupted = True
        _signal(process, signal.SIGINT)
        with trio.move_on_after(_INTERRUPT_TIMEOUT):
            await process.wait()
    if interrupted or process.returncode is None or process.returncode < 0:
        # terraform kills the shell it has started, but not the shell's children
        _kill_group(process)
        await process.wait()
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            await stream.aclose()


def _signal(process: trio.Process, number: int) -> None:
    try:
        process.send_signal(number)
    except ProcessLookupError:
        pass  # it has just exited


def _kill_group(process: trio.Process) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        if process.returncode is None:
            _signal(process, signal.SIGKILL)


def explain_status(status: int) -> str:
    """Return the end of a program in the words of an error."""
    return f"exit status {status}" if status >= 0 else f"killed by signal {-status}"
