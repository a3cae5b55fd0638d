"""Commands that clients start in the workspace and control through the API (`/api/v0/processes/…`).

The first and the last bytes of each output are kept; the oldest ended commands are dropped.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import trio

from coder.agent.platform import system
from coder.agent.state import AgentState
from coder.agent.upgrade.handover import KeptProcess
from coder.agent.workspace import environment, files
from coder.agent.workspace.children import Child, end_group, kill_group
from coder.base.json_types import JsonObject
from coder.base.log import get_logger

log = get_logger("agent")

HEAD = TAIL = 16 << 10
"Bytes kept of the beginning and of the end of a process's output (ours)."
MAX_ENDED = 100
MAX_RUNNING = 100
"Processes kept after their end, and running at a time (ours)."
DRAIN_TIMEOUT = 1.0
"Seconds for output to be read to its end after the process has exited (ours)."
SIGNALS = {"kill": system.KILL, "terminate": system.TERMINATE}


class Output:
    """First and last bytes of a stream."""

    def __init__(self, head: bytes = b"", tail: bytes = b"", size: int = 0) -> None:
        self._head = bytearray(head)
        self._tail = bytearray(tail)
        self.size = size

    def ends(self) -> tuple[bytes, bytes]:
        """Return the kept bytes of the beginning and of the end."""
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
        encoding = system.output_encoding(self._head, is_cut=True)
        return self._head.decode(encoding, "replace") + middle + self._tail.decode(encoding, "replace")

    def truncated(self) -> JsonObject | None:
        """Return the number of omitted bytes; None when the output is complete."""
        kept = len(self._head) + len(self._tail)
        if kept == self.size:
            return None
        counts = {"original_bytes": self.size, "retained_bytes": kept, "omitted_bytes": self.size - kept}
        return {**counts, "strategy": "head_tail"}


@dataclass(slots=True)
class StartedProcess:
    """Command that was started."""

    id: str
    command: str
    workdir: str
    background: bool
    process: trio.Process | Child
    started: float
    output: Output = field(default_factory=Output)
    ended: trio.Event = field(default_factory=trio.Event)
    exited: float | None = None

    def row(self) -> JsonObject:
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

    def handover_state(self) -> KeptProcess:
        """Return the state that the next program of this process continues with."""
        fileno: Callable[[], int] | None = getattr(self.process.stdout, "fileno", None)
        output = _duplicate(fileno()) if self.exited is None and fileno is not None else None
        if output is not None and self.process.returncode is not None:  # it exited at the last moment
            self.exited = time.time()
            _read_available(output, self.output)
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
            # The next program waits for the child, which may be this program again: Popen's finalizer would wait for it
            # twice.
            self.process._proc.returncode = 0
            self.process._close_pidfd()
        return kept

    def send(self, signal_name: str) -> None:
        """Send a signal to the whole process group."""
        kill_group(self.process.pid, SIGNALS[signal_name])

    def output_json(self) -> JsonObject:
        return {
            "output": self.output.text(),
            "truncated": self.output.truncated(),
            "running": self.exited is None,
            "exit_code": self.exit_code(),
            "command": self.command,
        }


class Processes:
    """Processes of one agent; they end with it."""

    def __init__(self, state: AgentState) -> None:
        self._state = state
        self._nursery: trio.Nursery | None = None
        self._known: dict[str, StartedProcess] = {}
        self._starting = 0
        "Processes that already count towards the limit and start soon."
        self._released = False

    def release(self) -> None:
        """Stop terminating processes, for the next program of this process. Cancel `run` afterwards."""
        self._released = True

    def handover_state(self) -> list[KeptProcess]:
        """Return the state that the next program continues with."""
        return [item.handover_state() for item in self._known.values()]

    def count(self) -> int:
        """Return the number of running commands."""
        return self._starting + sum(item.exited is None for item in self._known.values())

    def _resume(self, nursery: trio.Nursery, kept: Sequence[KeptProcess]) -> None:
        for item in kept:
            child = Child(item.pid, item.output)
            started_process = StartedProcess(
                item.ident,
                item.command,
                item.workdir,
                item.background,
                child,
                item.started,
                Output(item.head, item.tail, item.size),
            )
            self._known[started_process.id] = started_process
            if item.exited is None:
                nursery.start_soon(self._follow, started_process)
            else:
                child.returncode, started_process.exited = item.exit_code, item.exited
                started_process.ended.set()

    async def run(self, kept: Sequence[KeptProcess] = ()) -> None:
        """Run until cancelled; then kill every process group."""
        try:
            async with trio.open_nursery() as self._nursery:
                self._resume(self._nursery, kept)
                await trio.sleep_forever()
        finally:
            self._nursery = None

    async def start(self, command: str, workdir: str, env: Mapping[str, str], *, background: bool) -> StartedProcess:
        """Start a command. Raises ValueError when too many run or the agent shuts down, OSError when it cannot be
        started."""
        if not self._is_active():
            raise ValueError("the agent is shutting down")
        if self.count() >= MAX_RUNNING:
            raise ValueError(f"{MAX_RUNNING} processes are already running")
        self._starting += 1
        try:
            folder = workdir or str(await files.workdir(self._state))
            process = await trio.lowlevel.open_process(
                environment.command_line(self._state.identity, command),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env={**environment.command_environment(self._state), **env},
                cwd=folder,
                **system.START,
            )
        finally:
            self._starting -= 1
        if not self._is_active():  # checked again after the await
            await end_group(process)
            await _close(process)
            raise ValueError("the agent is shutting down")
        started_process = StartedProcess(str(uuid.uuid4()), command, folder, background, process, time.time())
        self._known[started_process.id] = started_process
        assert self._nursery is not None  # noqa: S101 - checked above
        self._nursery.start_soon(self._follow, started_process)
        self._forget_oldest()
        return started_process

    def _is_active(self) -> bool:
        return self._nursery is not None and not self._released

    def get(self, ident: str) -> StartedProcess | None:
        return self._known.get(ident)

    def rows(self) -> list[JsonObject]:
        """Return the running processes first, newer ones before older ones."""
        ordered = sorted(self._known.values(), key=lambda item: (item.exited is not None, -item.started))
        return [item.row() for item in ordered]

    async def _follow(self, item: StartedProcess) -> None:
        drained = trio.Event()
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_copy, item, drained)
                await item.process.wait()
                with trio.move_on_after(DRAIN_TIMEOUT):  # a child that keeps the pipe open is not waited for
                    await drained.wait()
                nursery.cancel_scope.cancel()
        finally:
            if not self._released:
                await self._end(item)

    async def _end(self, item: StartedProcess) -> None:
        """Kill the rest of the process group and record the exit."""
        await end_group(item.process)
        await _close(item.process)
        item.exited = time.time()
        item.ended.set()

    def _forget_oldest(self) -> None:
        ended = sorted((item for item in self._known.values() if item.exited), key=lambda item: item.exited or 0)
        for item in ended[: max(0, len(ended) - MAX_ENDED)]:
            del self._known[item.id]


def _duplicate(pipe: int) -> int | None:
    """Return a duplicate that outlives our descriptor. When no descriptors are left, one command's output is lost and
    nothing else."""
    try:
        return os.dup(pipe)
    except OSError as error:
        log.error("the output of a command cannot be handed over", error=error)
        return None


def _read_available(pipe: int, into: Output) -> None:
    with contextlib.suppress(OSError):  # nothing more is readable now, or a child has closed it
        while chunk := os.read(pipe, TAIL):
            into.add(chunk)


async def _close(process: trio.Process | Child) -> None:
    if process.stdout is not None:
        with trio.CancelScope(shield=True):
            await process.stdout.aclose()


async def _copy(item: StartedProcess, drained: trio.Event) -> None:
    if item.process.stdout is not None:
        async for chunk in item.process.stdout:
            item.output.add(chunk)
    drained.set()
