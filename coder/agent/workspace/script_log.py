"""The file in which a script's output is kept on the machine: bounded, and no reason for anything to fail.

A disk that is full, a folder that cannot be written and a disk that does not answer cost the file and one line in the
agent's log, never the script: its output goes to the server all the same. So a task of its own writes, in threads.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

import trio

from coder.agent.disk import LOOK_TIME, FolderThreads, Held, on_disk
from coder.agent.workspace.files import open_to_write
from coder.base.groups import single_failure
from coder.base.log import get_logger

log = get_logger("agent")

MOST = 64 << 20
"""Ours: bytes of one run that are kept; a script that writes gigabytes must not fill the disk it runs on."""
BEHIND = 1 << 20
"""Ours: bytes that may wait for the disk; then the script waits, too."""
_THREADS = FolderThreads(8)
"""Ours: looks at a folder of logs at a time. One that does not answer is asked again by every run of a script."""
_FULL = b"\n[the rest of this run's output is not kept here]\n"


@contextlib.asynccontextmanager
async def script_log(path: Path, most: int = MOST) -> AsyncIterator[ScriptLog]:
    """The file is there when the block begins, and what was written by the end of the block is in it after it."""
    kept, writing = ScriptLog(path, most), trio.CancelScope(shield=True)

    async def write() -> None:
        with writing:
            await kept.run()

    with single_failure():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(write)
            try:
                with trio.move_on_after(LOOK_TIME):  # a disk that answers later has the file all the same
                    await kept.opened.wait()
                yield kept
            finally:
                with trio.CancelScope(shield=True):
                    await kept.finish()
                writing.cancel()


class ScriptLog:
    """`write` never fails and never waits; everything else waits LOOK_TIME for a disk that is silent."""

    def __init__(self, path: Path, most: int) -> None:
        self._path, self._left = path, most
        self._file: _File | None = None
        self._waiting: list[bytes] = []
        self._size = 0
        "Of what waits, and of what is being written."
        self._is_over = False
        "Nothing more is kept."
        self._more = trio.Event()
        self._written = trio.Event()
        self.opened = trio.Event()
        "The file is there, or nothing is kept."

    def write(self, chunk: bytes | bytearray) -> None:
        """Appends what there is room for."""
        if self._is_over or not self._left or not chunk:
            return
        kept = bytes(chunk[: self._left])
        self._left -= len(kept)
        self._waiting.append(kept if self._left else kept + _FULL)
        self._size += len(self._waiting[-1])
        self._more.set()

    async def keep_up(self) -> None:
        """Until little enough waits for the disk."""
        await self._wait(BEHIND)

    async def finish(self) -> None:
        """Until all is in the file, which is closed then; or nothing more is kept."""
        await self._answer(self.opened)
        await self._wait(0)
        file, self._file, self._is_over = self._file, None, True
        if file is not None:
            with trio.move_on_after(LOOK_TIME), contextlib.suppress(OSError):  # no room for a thread: it closes itself
                await on_disk(file.close, limiter=_THREADS.of(self._path.parent))

    async def _wait(self, most: int) -> None:
        while self._size > most and not self._is_over:
            await self._answer(self._written)

    async def _answer(self, event: trio.Event) -> None:
        with trio.move_on_after(LOOK_TIME) as limit:
            await event.wait()
        if limit.cancelled_caught:
            self._give_up(OSError("no answer from its disk"))

    def _give_up(self, error: OSError) -> None:
        if not self._is_over:
            log.warn("a script's output is kept no longer", path=self._path, error=error)
        self._file, self._waiting, self._is_over = None, [], True
        self._written.set()
        self.opened.set()

    async def run(self) -> None:
        """Writes until it is cancelled."""
        try:
            self._file = await on_disk(_open, self._path, limiter=_THREADS.of(self._path.parent))
            self.opened.set()
            while not self._is_over:
                await self._more.wait()
                self._more = trio.Event()
                pieces, self._waiting = self._waiting, []
                await on_disk(self._file.append, pieces, limiter=_THREADS.of(self._path.parent))
                self._size -= sum(map(len, pieces))
                told, self._written = self._written, trio.Event()
                told.set()
        except OSError as error:
            self._give_up(error)


class _File(Held):
    def append(self, pieces: list[bytes]) -> None:
        rest = memoryview(b"".join(pieces))
        while rest:
            rest = rest[os.write(self.descriptor, rest) :]


def _open(path: Path) -> _File:
    path.parent.mkdir(parents=True, exist_ok=True)
    return _File(open_to_write(path, os.O_APPEND, 0o644))
