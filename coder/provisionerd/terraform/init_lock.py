"""One `terraform init` at a time on a shared plugin cache: terraform's own writes to it race (measured: 10 of 24)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from coder.provisionerd.terraform.file_lock import locked


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
            async with locked(self._folder / "plugins.lock"):
                yield plugins
