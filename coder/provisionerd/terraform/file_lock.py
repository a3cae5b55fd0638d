"""File lock between processes; waiting for it can be cancelled."""

from __future__ import annotations

import fcntl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import trio

_POLL = 0.05


@asynccontextmanager
async def locked(path: Path) -> AsyncIterator[None]:
    """Hold the lock of the file, which is created when missing. Raises OSError."""
    with path.open("w") as file:
        # Other processes hold it; waiting in a thread could not be cancelled, so poll.
        while not _try_lock(file.fileno()):  # noqa: ASYNC110 - the event is in another process
            await trio.sleep(_POLL)
        yield


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
