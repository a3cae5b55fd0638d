"""Looks at disks that may be away for ever: by threads that nothing else needs, and whoever waits can go."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, TypeVarTuple

import trio

Found = TypeVar("Found")
Arguments = TypeVarTuple("Arguments")

MOST_FOLDERS = 64
"""Ours: folders whose threads are told apart, unless more of them hold some."""


class Threads:
    """So many threads at a time. Of one run of Trio's: a thread that outlives its run never gives its token back."""

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
    """So many threads for each folder: one that does not answer holds these, however often it is asked, and none of
    other looks. Folders that hold none are forgotten once there are many: programs may name ever new ones."""

    def __init__(self, tokens: int) -> None:
        self._tokens = tokens
        self._run: trio.lowlevel.RunVar[dict[Path, trio.CapacityLimiter]] = trio.lowlevel.RunVar("threads of folders")

    def of(self, folder: Path) -> trio.CapacityLimiter:
        """To be used at once; ask again for the next look."""
        try:
            limiters = self._run.get()
        except LookupError:
            limiters = {}
            self._run.set(limiters)
        if folder not in limiters and len(limiters) >= MOST_FOLDERS:
            for other in [path for path, limiter in limiters.items() if not limiter.borrowed_tokens]:
                del limiters[other]
        return limiters.setdefault(folder, trio.CapacityLimiter(self._tokens))


THREADS = Threads(16)
"""Ours. Once so many wait for a disk that does not answer, all further looks wait; nothing else of the agent does."""
LOOK_TIME = 5.0
"""Ours: seconds a disk has for an answer to one question."""


class Held:
    """An open file. It is closed with the last who holds it: that may be a thread that nobody waits for any more."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def close(self) -> None:
        """Once; the second does nothing. Raises OSError."""
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        try:
            self.close()
        except OSError:
            pass  # nobody is left who could be told


async def on_disk(
    look: Callable[[*Arguments], Found], *arguments: *Arguments, limiter: trio.CapacityLimiter | Threads = THREADS
) -> Found:
    """What `look` returns or raises. When the wait is cancelled it goes on until the disk answers, and is forgotten.

    Raises NoThreadError, which is an OSError: what a script started may have taken all the room, and whoever looks at
    disks expects them to fail.
    """
    own = limiter.limiter() if isinstance(limiter, Threads) else limiter
    return await trio.to_thread.run_sync(look, *arguments, abandon_on_cancel=True, limiter=own)


async def off_the_loop(look: Callable[[*Arguments], Found], *arguments: *Arguments) -> Found:
    """The same for what no disk holds up: it waits for none of those that wait for one."""
    return await on_disk(look, *arguments, limiter=trio.to_thread.current_default_thread_limiter())
