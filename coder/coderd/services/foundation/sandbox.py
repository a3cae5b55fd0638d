"""Worker processes that parse and evaluate texts of users, with limits on CPU time, memory and waiting time.

Templates are untrusted programs. A budget of steps bounds what is foreseen; killing the process bounds the rest, so
that an evaluation never blocks the server's interpreter. The processes start on first use and stay; a process that
exceeds a limit or exits is replaced. They get no secrets of the server: neither its environment nor its files.

This module is the server's end of the pipe; the worker's end, with the list of calls, is `templates/sandbox_worker.py`.
A frame is a length (big-endian, four bytes) and a JSON text. Archives are passed as files: one may have a hundred
megabytes, which this process never holds in memory.
"""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import msgspec
import trio

from coder.api.base.refusals import Failed, Invalid, Refusal
from coder.base.child_env import child_env
from coder.base.errors import CoderError
from coder.base.json_types import Json, JsonObject, as_object
from coder.base.log import get_logger
from coder.base.threads import in_thread_or_here

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

WORKERS = 2
"""Worker processes. Servers usually have two cores to spare; a third caller waits for its turn."""
CPU_SECONDS = 4
"""CPU time of one call. A large template takes a tenth of it."""
WALL_SECONDS = 20.0
"""Elapsed time of one call, more than its CPU time: a busy machine delays the process."""
MEMORY = 768 << 20
"""Address space of one process."""
MAX_RESULT = 1 << 20
"""Bytes of a result, which the server's process reads in one piece."""
WORKER_COMMAND = "sandbox-worker"
_LENGTH = struct.Struct(">I")
_EXIT_TIMEOUT = 2.0
"""Seconds to wait for a process to exit after its output has ended."""
_TIME_SIGNALS = frozenset(getattr(signal, name) for name in ("SIGXCPU", "SIGKILL") if hasattr(signal, name))
_KEPT_VARIABLES = frozenset({"PATH", "PYTHONPATH", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT"})
_ROOT = Path(__file__).resolve().parents[4]
_log = get_logger("sandbox")

NewFile = Callable[[], BinaryIO]
"""Opens one more file for writing."""
LoadFiles = Callable[[NewFile], Awaitable[None]]


class SandboxEvaluationError(CoderError):
    """A text of a user was not evaluated: the message has the reason, the hint the next step."""


class SandboxFailedError(SandboxEvaluationError):
    """The server itself is at fault, not the text."""

    def __init__(self) -> None:
        super().__init__(
            "sandbox_failed",
            "The evaluation failed because of an error in the server. The server's log has the details.",
            "Try again; if that does not help, ask the administrator of the server.",
        )


class TooMuchWorkError(SandboxEvaluationError):
    """Evaluating the text exceeds a limit."""

    def __init__(self, what: str) -> None:
        super().__init__(
            "too_much_work",
            f"The evaluation takes more {what} than is allowed ({CPU_SECONDS} s of computing time, "
            f"{MEMORY >> 20} MiB of memory, {MAX_RESULT >> 20} MiB of results).",
            "Check for patterns, loops and references that multiply each other.",
        )


def refused_evaluation(error: SandboxEvaluationError) -> Refusal:
    """Return the refusal to answer with: Invalid for a fault of the text, Failed for a fault of the server."""
    kind = Failed if isinstance(error, SandboxFailedError) else Invalid
    return kind(error.message, error.hint)


@dataclass(frozen=True, slots=True)
class Documents:
    """Archives of a call, by a name that is never reused. Loaded into a worker that does not have them yet."""

    name: str
    load: LoadFiles
    "Writes each archive to its own file."


@asynccontextmanager
async def _on_disk(load: LoadFiles) -> AsyncIterator[list[str]]:
    """Yield the paths of the loaded files, which exist while the block runs. Only the server's user can read them."""
    folder = tempfile.TemporaryDirectory(prefix="coder-template-")  # mode 0700
    files: list[BinaryIO] = []

    def new_file() -> BinaryIO:
        files.append((Path(folder.name) / str(len(files))).open("xb"))
        return files[-1]

    try:
        try:
            await load(new_file)
        finally:
            for file in files:
                file.close()
        yield [file.name for file in files]
    finally:
        with trio.CancelScope(shield=True):
            await in_thread_or_here(folder.cleanup)


@dataclass(slots=True, eq=False)
class _Call:
    """A call in progress, and its result."""

    name: str
    values: Mapping[str, Json]
    documents: Documents | None
    finished: trio.Event = field(default_factory=trio.Event)
    value: Json = None
    error: Exception | None = None


class Sandbox:
    """The worker processes of one server."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._idle: list[_Worker] = []
        self._all: set[_Worker] = set()
        self._turns = trio.CapacityLimiter(WORKERS)
        self._callers: dict[str, trio.CapacityLimiter] = {}

    def start(self, nursery: trio.Nursery) -> None:
        """Kill all workers at shutdown."""
        nursery.start_soon(self._kill_all_at_shutdown)

    async def call(
        self, name: str, values: Mapping[str, Json], documents: Documents | None = None, *, caller: str = ""
    ) -> Json:
        """Return the result of a call. Raises SandboxEvaluationError and every error of loading the documents.

        Each `caller` has one call in progress at a time, so a busy caller delays only itself. Cancelling the caller
        does not kill the process or lose its cached documents: the call runs to its end, and the same caller waits for
        that, too.
        """
        call = _Call(name, values, documents)
        limiter = self._callers.setdefault(caller, trio.CapacityLimiter(1)) if caller else trio.CapacityLimiter(1)
        try:
            await limiter.acquire_on_behalf_of(call)
            try:
                await self._turns.acquire_on_behalf_of(call)
            except BaseException:
                limiter.release_on_behalf_of(call)
                raise
        except BaseException:
            self._forget(caller, limiter)
            raise
        self._ctx.nursery.start_soon(self._work, call, caller, limiter)
        await call.finished.wait()
        if call.error is not None:
            raise call.error
        return call.value

    async def _work(self, call: _Call, caller: str, limiter: trio.CapacityLimiter) -> None:
        try:
            call.value = await self._run(call.name, call.values, call.documents)
        except Exception as error:
            call.error = error  # raised to the caller, if it still waits
        finally:
            self._turns.release_on_behalf_of(call)
            limiter.release_on_behalf_of(call)
            self._forget(caller, limiter)
            call.finished.set()

    def _forget(self, caller: str, limiter: trio.CapacityLimiter) -> None:
        if (
            self._callers.get(caller) is limiter
            and not limiter.borrowed_tokens
            and not limiter.statistics().tasks_waiting
        ):
            del self._callers[caller]

    async def warm(self) -> None:
        """Start a process in advance."""
        async with self._turns:
            if not self._all:
                self._idle.append(await self._start())

    async def _run(self, name: str, values: Mapping[str, Json], documents: Documents | None) -> Json:
        worker = await self._idle_or_new()
        try:
            key = documents.name if documents is not None else ""
            reply = await worker.exchange({"call": name, "documents": key, "values": values})
            if documents is not None and reply == {"missing": True}:
                async with _on_disk(documents.load) as paths:
                    reply = await worker.exchange({"load": key, "files": paths})
                if "value" in reply:
                    reply = await worker.exchange({"call": name, "documents": key, "values": values})
        except BaseException:
            # The process exited or stalled in the middle of a frame, so its pipe cannot be used any more.
            self._all.discard(worker)
            await worker.close()
            raise
        self._idle.append(worker)
        if "failed" in reply:
            raise TooMuchWorkError(str(reply["failed"]))
        if "broken" in reply:
            # Where the error occurred and its type; its message may contain a user's text.
            _log.error("evaluating failed", call=name, **as_object(reply["broken"]))
            raise SandboxFailedError
        return reply["value"]

    async def _idle_or_new(self) -> _Worker:
        while self._idle:
            worker = self._idle.pop()  # the most recently used worker has the documents
            if worker.is_running:
                return worker
            # Ended while idle, for example by the system's out-of-memory killer: the current call is not the cause.
            _log.warn("an idle evaluation process was killed")
            self._all.discard(worker)
            await worker.close()
        return await self._start()

    async def _start(self) -> _Worker:
        worker = await _Worker.start()
        self._all.add(worker)
        return worker

    async def _kill_all_at_shutdown(self) -> None:
        try:
            await trio.sleep_forever()
        finally:
            for worker in list(self._all):
                await worker.close()


class _Worker:
    def __init__(self, process: trio.Process, sink: trio.abc.SendStream, source: trio.abc.ReceiveStream) -> None:
        self._process = process
        self._sink = sink
        self._source = source
        self._buffer = b""

    @classmethod
    async def start(cls) -> _Worker:
        environment = {name: value for name, value in os.environ.items() if name in _KEPT_VARIABLES}
        frozen = getattr(sys, "frozen", False)
        if not frozen:
            environment["PYTHONPATH"] = str(_ROOT)
        process = await trio.lowlevel.open_process(
            [sys.executable, *([] if frozen else ["-m", "coder"]), WORKER_COMMAND, str(CPU_SECONDS), str(MEMORY)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=child_env(base=environment),
            cwd="/" if os.name == "posix" else None,
        )
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("a process was started without its pipes")
        return cls(process, process.stdin, process.stdout)

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    async def exchange(self, head: Mapping[str, Json]) -> JsonObject:
        """Send a frame and wait for the reply. Raises SandboxEvaluationError when none arrives in time."""
        text = json.dumps(head).encode()
        with trio.move_on_after(WALL_SECONDS):
            try:
                await self._sink.send_all(_LENGTH.pack(len(text)) + text)
                (size,) = _LENGTH.unpack(await self._read(_LENGTH.size))
                if size > MAX_RESULT:
                    raise TooMuchWorkError("space for its results")
                return msgspec.json.decode(await self._read(size), type=dict)
            except (trio.BrokenResourceError, trio.ClosedResourceError, EOFError) as error:
                raise await self._exit_error() from error
        raise TooMuchWorkError("time")

    async def _exit_error(self) -> SandboxEvaluationError:
        """Return the error for an exited worker: a limit kills it by a signal, a fault of the server does not."""
        with trio.move_on_after(_EXIT_TIMEOUT):
            await self._process.wait()
        status = self._process.returncode
        _log.warn("an evaluation process exited during a call", status=status)
        if status is None or status >= 0:
            return SandboxFailedError()
        return TooMuchWorkError("computing time" if -status in _TIME_SIGNALS else "memory or depth")

    async def _read(self, size: int) -> bytes:
        while len(self._buffer) < size:
            data = await self._source.receive_some(1 << 16)
            if not data:
                raise EOFError
            self._buffer += data
        content, self._buffer = self._buffer[:size], self._buffer[size:]
        return content

    async def close(self) -> None:
        """Kill the process."""
        with suppress(ProcessLookupError):
            self._process.kill()
        with trio.CancelScope(shield=True):
            await trio.aclose_forcefully(self._sink)
            await trio.aclose_forcefully(self._source)
            await self._process.wait()
