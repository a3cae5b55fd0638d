"""Log file of a script's output on the machine: bounded, and its failure fails nothing else.

A full disk, an unwritable folder or a disk that does not answer costs the file and one line in the agent's log, never
the script: its output still reaches the server. So a task of its own writes, in threads.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import trio

from coder.agent.disk import DISK_TIMEOUT, FolderThreads, OpenDescriptor, on_disk
from coder.agent.workspace.files import NO_FOLLOW, open_for_writing, require_own_file
from coder.base.exception_groups import single_failure
from coder.base.log import get_logger

log = get_logger("agent")

MAX_SIZE = 64 << 20
"""Bytes (ours) of one run that are kept; a script that writes gigabytes must not fill its own disk."""
MAX_QUEUED = 1 << 20
"""Bytes (ours) that may wait for the disk; beyond them the script waits, too."""
_THREADS = FolderThreads(8)
"""Accesses (ours) to a folder of logs at a time. Every run of a script asks again for a folder that does not answer."""
_FULL = b"\n[the rest of this run's output is not kept]\n"


@contextlib.asynccontextmanager
async def script_log(
    path: Path, limit: int = MAX_SIZE, fallback: Callable[[], Path] | None = None
) -> AsyncIterator[ScriptLog]:
    """Open a log file for the block. The file exists when the block begins, and contains everything written when it
    ends. `fallback` returns another path, for a file that cannot be used: another user's or a link, for example."""
    kept, writing = ScriptLog(path, limit, fallback), trio.CancelScope(shield=True)

    async def write() -> None:
        with writing:
            await kept.run()

    with single_failure():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(write)
            try:
                with trio.move_on_after(DISK_TIMEOUT):  # a slow disk still gets the file later
                    await kept.opened.wait()
                yield kept
            finally:
                with trio.CancelScope(shield=True):
                    await kept.finish()
                writing.cancel()


class ScriptLog:
    """Log file of one run. `write` never fails and never waits; everything else waits at most DISK_TIMEOUT for a slow
    disk."""

    def __init__(self, path: Path, limit: int, fallback: Callable[[], Path] | None = None) -> None:
        self._path, self._left, self._fallback = path, limit, fallback
        self._file: _File | None = None
        self._queued: list[bytes] = []
        self._size = 0
        "Bytes of the queued chunks and of those being written."
        self._is_closed = False
        "Whether further output is dropped."
        self._has_more = trio.Event()
        self._written = trio.Event()
        self.opened = trio.Event()
        "Set when the file exists, or further output is dropped."

    def write(self, chunk: bytes | bytearray) -> None:
        """Append as many bytes as the limit allows."""
        if self._is_closed or not self._left or not chunk:
            return
        kept = bytes(chunk[: self._left])
        self._left -= len(kept)
        self._queued.append(kept if self._left else kept + _FULL)
        self._size += len(self._queued[-1])
        self._has_more.set()

    async def wait_for_room(self) -> None:
        """Wait until few enough bytes are queued."""
        await self._wait(MAX_QUEUED)

    async def finish(self) -> None:
        """Wait until everything is written and close the file; or until further output is dropped."""
        await self._answer(self.opened)
        await self._wait(0)
        file, self._file, self._is_closed = self._file, None, True
        if file is not None:
            with (
                trio.move_on_after(DISK_TIMEOUT),
                contextlib.suppress(OSError),
            ):  # no free thread: its finalizer closes it
                await on_disk(file.close, limiter=_THREADS.of(self._path.parent))

    async def _wait(self, limit: int) -> None:
        while self._size > limit and not self._is_closed:
            await self._answer(self._written)

    async def _answer(self, event: trio.Event) -> None:
        with trio.move_on_after(DISK_TIMEOUT) as limit:
            await event.wait()
        if limit.cancelled_caught:
            self._abandon(OSError("its disk does not answer"))

    def _abandon(self, error: OSError | ValueError) -> None:
        if not self._is_closed:
            log.warn("a script's log file is given up", path=self._path, error=error)
        self._file, self._queued, self._is_closed = None, [], True
        self._written.set()
        self.opened.set()

    async def run(self) -> None:
        """Write until cancelled."""
        try:
            self._file = await self._open()
            self.opened.set()
            while not self._is_closed:
                await self._has_more.wait()
                self._has_more = trio.Event()
                pieces, self._queued = self._queued, []
                await on_disk(self._file.append, pieces, limiter=_THREADS.of(self._path.parent))
                self._size -= sum(map(len, pieces))
                notified, self._written = self._written, trio.Event()
                notified.set()
        except (OSError, ValueError) as error:  # a zero byte, which no path can hold
            self._abandon(error)

    async def _open(self) -> _File:
        limiter = _THREADS.of(self._path.parent)
        try:
            return await on_disk(_open, self._path, limiter=limiter)
        except (OSError, ValueError) as error:
            if self._fallback is None:
                raise
            path = await on_disk(self._fallback, limiter=limiter)
            log.warn("a script's log file cannot be used", path=self._path, error=error, instead=path)
            self._path = path
            return await on_disk(_open, path, limiter=limiter)


class _File(OpenDescriptor):
    def append(self, pieces: list[bytes]) -> None:
        rest = memoryview(b"".join(pieces))
        while rest:
            rest = rest[os.write(self.descriptor, rest) :]


def _open(path: Path) -> _File:
    """Open the file to append. Raises OSError for a link and for a file that another user can read or chose."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_relative_to("/dev"):  # a template may choose the container's own output, which is a link
        return _File(open_for_writing(path, os.O_APPEND, 0o644))
    file = _File(open_for_writing(path, os.O_APPEND | NO_FOLLOW, 0o644))
    try:
        require_own_file(file.descriptor, path)
    except OSError:
        file.close()
        raise
    return file
