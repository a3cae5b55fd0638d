"""Looks at disks that may be away for ever: by threads that nothing else needs, and whoever waits can go."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, TypeVarTuple

import trio

Found = TypeVar("Found")
Arguments = TypeVarTuple("Arguments")

THREADS = trio.CapacityLimiter(16)
"""Ours. Once so many wait for a disk that does not answer, all further looks wait; nothing else of the agent does."""
LOOK_TIME = 5.0
"""Ours: seconds a disk has for an answer to one question."""


async def on_disk(
    look: Callable[[*Arguments], Found], *arguments: *Arguments, limiter: trio.CapacityLimiter = THREADS
) -> Found:
    """What `look` returns or raises. When the wait is cancelled it goes on until the disk answers, and is forgotten.

    Raises NoThreadError, which is an OSError: what a script started may have taken all the room, and whoever looks at
    disks expects them to fail.
    """
    return await trio.to_thread.run_sync(look, *arguments, abandon_on_cancel=True, limiter=limiter)


async def off_the_loop(look: Callable[[*Arguments], Found], *arguments: *Arguments) -> Found:
    """The same for what no disk holds up: it waits for none of those that wait for one."""
    return await on_disk(look, *arguments, limiter=trio.to_thread.current_default_thread_limiter())
