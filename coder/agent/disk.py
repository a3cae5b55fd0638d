"""Access to disks that may never answer: dedicated threads do the work, and a caller can stop waiting."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, TypeVarTuple

import trio

Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")

MAX_FOLDERS = 64
"""Folders with their own threads (ours), unless more of them hold a thread."""


class Threads:
    """Limited number of threads, per Trio run: a thread that outlives its run never returns its token."""

    def __init__(self, tokens: int) -> None:
        self._tokens = tokens
        self._run: trio.lowlevel.RunVar[trio.CapacityLimiter] = trio.lowlevel.RunVar("threads of disks")

    def limiter(self) -> trio.CapacityLimiter:
        try:
            return self._run.get()
        except LookupError:
            self._run.set(trio.CapacityLimiter(self._tokens))
            return self._run.get()


class FolderThreads:
    """Limited number of threads for each folder. A folder that does not answer holds only its own threads, however
    often it is accessed. Folders without running threads are dropped once there are many, because programs may name
    ever new ones."""

    def __init__(self, tokens: int) -> None:
        self._tokens = tokens
        self._run: trio.lowlevel.RunVar[dict[Path, trio.CapacityLimiter]] = trio.lowlevel.RunVar("threads of folders")

    def of(self, folder: Path) -> trio.CapacityLimiter:
        """Return the limiter of a folder. Use it immediately; call again for the next access."""
        try:
            limiters = self._run.get()
        except LookupError:
            limiters = {}
            self._run.set(limiters)
        if folder not in limiters and len(limiters) >= MAX_FOLDERS:
            for other in [path for path, limiter in limiters.items() if not limiter.borrowed_tokens]:
                del limiters[other]
        return limiters.setdefault(folder, trio.CapacityLimiter(self._tokens))


THREADS = Threads(16)
"""Shared threads (ours). Once 16 wait for a disk that does not answer, all further disk access waits; the rest of the
agent does not."""
DISK_TIMEOUT = 5.0
"""Seconds a disk has to answer one access (ours)."""


class OpenDescriptor:
    """Open file, closed when its last holder drops it; the holder may be a thread that the caller no longer waits
    for."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def close(self) -> None:
        """Close the file; a second call does nothing. Raises OSError."""
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        try:
            self.close()
        except OSError:
            pass  # nothing can receive the error


async def on_disk(
    access: Callable[[*Arguments], Result], *arguments: *Arguments, limiter: trio.CapacityLimiter | Threads = THREADS
) -> Result:
    """Return what `access` returns; raise what it raises. When the wait is cancelled, the thread runs until the disk
    answers and its result is dropped.

    Raises NoThreadError, which is an OSError: a script's processes may use all threads, and callers that access disks
    already handle OSError.
    """
    chosen_limiter = limiter.limiter() if isinstance(limiter, Threads) else limiter
    return await trio.to_thread.run_sync(access, *arguments, abandon_on_cancel=True, limiter=chosen_limiter)


async def in_thread(access: Callable[[*Arguments], Result], *arguments: *Arguments) -> Result:
    """Run `access` in a thread that never waits for a stuck disk: the default limiter is not shared with `on_disk`."""
    return await on_disk(access, *arguments, limiter=trio.to_thread.current_default_thread_limiter())
