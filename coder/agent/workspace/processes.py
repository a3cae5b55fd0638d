"""Commands that programs start in the workspace and look after from afar (`/api/v0/processes/…`).

Of each the first and the last of its output are kept; the oldest that have ended are forgotten.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import trio

from coder.agent.state import AgentState
from coder.agent.upgrade.handover import KeptProcess
from coder.agent.workspace import environment, files
from coder.agent.workspace.children import Child, end_group, kill_group
from coder.base.log import get_logger

log = get_logger("agent")

HEAD = TAIL = 16 << 10
"Bytes kept of the beginning and of the end of what a process says (ours)."
MAX_ENDED = 100
MAX_RUNNING = 100
"Processes remembered and running at a time (ours)."
LAST_WORDS = 1.0
"Seconds for output to be read to its end after the process has ended (ours)."
SIGNALS = {"kill": signal.SIGKILL, "terminate": signal.SIGTERM}


class Output:
    """The first and the last bytes of a stream."""

    def __init__(self, head: bytes = b"", tail: bytes = b"", size: int = 0) -> None:
        self._head = bytearray(head)
        self._tail = bytearray(tail)
        self.size = size

    def ends(self) -> tuple[bytes, bytes]:
        """What is kept of the beginning and of the end."""
        return bytes(self._head), bytes(self._tail)

    def add(self, chunk: bytes | bytearray) -> None:
        self.size += len(chunk)
        room = HEAD - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:] if room < len(chunk) else b""
        del self._tail[:-TAIL]

    def text(self) -> str:
        left_out = self.size - len(self._head) - len(self._tail)
        middle = f"\n[… {left_out} bytes left out …]\n" if left_out else ""
        return self._head.decode("utf-8", "replace") + middle + self._tail.decode("utf-8", "replace")

    def truncated(self) -> dict[str, Any] | None:
        """How much is missing; None when nothing is."""
        kept = len(self._head) + len(self._tail)
        if kept == self.size:
            return None
        counts = {"original_bytes": self.size, "retained_bytes": kept, "omitted_bytes": self.size - kept}
        return {**counts, "strategy": "head_tail"}


@dataclass(slots=True)
class StartedProcess:
    """One command."""

    id: str
    command: str
    workdir: str
    background: bool
    process: trio.Process | Child
    started: float
    output: Output = field(default_factory=Output)
    ended: trio.Event = field(default_factory=trio.Event)
    exited: float | None = None

    def row(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "command": self.command,
            "workdir": self.workdir,
            "background": self.background,
            "running": self.exited is None,
            "exit_code": self.exit_code(),
            "started_at_unix": int(self.started),
            "exited_at_unix": None if self.exited is None else int(self.exited),
        }

    def exit_code(self) -> int | None:
        return None if self.exited is None else self.process.returncode

    def left(self) -> KeptProcess:
        """What the next program of this process goes on with."""
        pipe = cast("Any", self.process.stdout)
        output = _another(pipe.fileno()) if self.exited is None and pipe is not None else None
        if output is not None and self.process.returncode is not None:  # it ended at the last moment
            self.exited = time.time()
            _read_waiting(output, self.output)
            os.close(output)
            output = None
        kept = KeptProcess(
            self.id,
            self.command,
            self.workdir,
            self.background,
            self.process.pid,
            self.started,
            output,
            *self.output.ends(),
            self.output.size,
            self.exited,
            self.exit_code(),
        )
        if isinstance(self.process, trio.Process):
            # Whoever goes on waits for it, which may be this program: Popen's finalizer would have it waited for twice.
            gone = cast("Any", self.process)
            gone._proc.returncode = 0
            gone._close_pidfd()
        return kept

    def send(self, signal_name: str) -> None:
        """To the whole process group."""
        kill_group(self.process.pid, SIGNALS[signal_name])

    def shown_output(self) -> dict[str, Any]:
        return {
            "output": self.output.text(),
            "truncated": self.output.truncated(),
            "running": self.exited is None,
            "exit_code": self.exit_code(),
            "command": self.command,
        }


class Processes:
    """All of one agent; they end with it."""

    def __init__(self, state: AgentState) -> None:
        self._state = state
        self._nursery: trio.Nursery | None = None
        self._known: dict[str, StartedProcess] = {}
        self._starting = 0
        "Those that count already and run soon."
        self._let_go = False

    def let_go(self) -> None:
        """Nothing is ended any more: for the next program of this process. `run` is to be cancelled after."""
        self._let_go = True

    def left(self) -> list[KeptProcess]:
        """What that program goes on with."""
        return [one.left() for one in self._known.values()]

    def _resume(self, nursery: trio.Nursery, kept: Sequence[KeptProcess]) -> None:
        for one in kept:
            child = Child(one.pid, one.output)
            made = StartedProcess(
                one.ident,
                one.command,
                one.workdir,
                one.background,
                child,
                one.started,
                Output(one.head, one.tail, one.size),
            )
            self._known[made.id] = made
            if one.exited is None:
                nursery.start_soon(self._attend, made)
            else:
                child.returncode, made.exited = one.exit_code, one.exited
                made.ended.set()

    async def run(self, kept: Sequence[KeptProcess] = ()) -> None:
        """Until cancelled; then every process group is killed."""
        try:
            async with trio.open_nursery() as self._nursery:
                self._resume(self._nursery, kept)
                await trio.sleep_forever()
        finally:
            self._nursery = None

    async def start(self, command: str, workdir: str, env: Mapping[str, str], *, background: bool) -> StartedProcess:
        """Raises ValueError when there are too many, OSError when it cannot be started."""
        if not self._looks_after():
            raise ValueError("the agent is ending")
        if self._starting + sum(one.exited is None for one in self._known.values()) >= MAX_RUNNING:
            raise ValueError(f"{MAX_RUNNING} processes are running already")
        self._starting += 1
        try:
            where = workdir or str(await files.workdir(self._state))
            process = await trio.lowlevel.open_process(
                environment.command_line(self._state.identity, command),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env={**environment.command_environment(self._state), **env},
                cwd=where,
                start_new_session=True,
            )
        finally:
            self._starting -= 1
        if not self._looks_after():  # any more
            await end_group(process)
            await _close(process)
            raise ValueError("the agent is ending")
        made = StartedProcess(str(uuid.uuid4()), command, where, background, process, time.time())
        self._known[made.id] = made
        assert self._nursery is not None  # noqa: S101 - asked before
        self._nursery.start_soon(self._attend, made)
        self._forget_oldest()
        return made

    def _looks_after(self) -> bool:
        return self._nursery is not None and not self._let_go

    def get(self, ident: str) -> StartedProcess | None:
        return self._known.get(ident)

    def rows(self) -> list[dict[str, Any]]:
        """Running ones first, the newest before the older."""
        ordered = sorted(self._known.values(), key=lambda one: (one.exited is not None, -one.started))
        return [one.row() for one in ordered]

    async def _attend(self, one: StartedProcess) -> None:
        drained = trio.Event()
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_copy, one, drained)
                await one.process.wait()
                with trio.move_on_after(LAST_WORDS):  # a child that keeps the pipe is not waited for
                    await drained.wait()
                nursery.cancel_scope.cancel()
        finally:
            if not self._let_go:
                await self._end(one)

    async def _end(self, one: StartedProcess) -> None:
        """Leaves nothing of it running."""
        await end_group(one.process)
        await _close(one.process)
        one.exited = time.time()
        one.ended.set()

    def _forget_oldest(self) -> None:
        ended = sorted((one for one in self._known.values() if one.exited), key=lambda one: one.exited or 0)
        for one in ended[: max(0, len(ended) - MAX_ENDED)]:
            del self._known[one.id]


def _another(pipe: int) -> int | None:
    """A descriptor that outlives ours. Where there are no more, one command's output is lost and nothing else."""
    try:
        return os.dup(pipe)
    except OSError as error:
        log.error("the output of a command cannot be handed over", error=error)
        return None


def _read_waiting(pipe: int, into: Output) -> None:
    with contextlib.suppress(OSError):  # there is no more now, or a child has closed it
        while chunk := os.read(pipe, TAIL):
            into.add(chunk)


async def _close(process: trio.Process | Child) -> None:
    if process.stdout is not None:
        with trio.CancelScope(shield=True):
            await process.stdout.aclose()


async def _copy(one: StartedProcess, drained: trio.Event) -> None:
    if one.process.stdout is not None:
        async for chunk in one.process.stdout:
            one.output.add(chunk)
    drained.set()
