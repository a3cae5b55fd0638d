"""Lock for `terraform init` on a shared plugin cache: terraform's own writes to it race (measured: 10 of 24)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from coder.provisionerd.terraform.file_lock import locked


class PluginCache:
    """Directory of downloaded providers, shared by all daemons of this machine with the same setting."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = trio.Lock()

    @asynccontextmanager
    async def exclusive(self) -> AsyncIterator[Path]:
        """Hold the cache for one init; yield the plugin directory."""
        async with self._lock:
            plugins = self._folder / "plugins"
            plugins.mkdir(mode=0o700, parents=True, exist_ok=True)
            async with locked(self._folder / "plugins.lock"):
                yield plugins
