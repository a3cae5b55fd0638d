"""Usage of file systems, any of which may not answer: its usage is unknown then, and the others are unaffected."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

import trio

from coder.agent.disk import DISK_TIMEOUT, FolderThreads, on_disk
from coder.base.host import disk_usage

Usage = tuple[int | None, int | None]
"""(used, total)"""
_THREADS = FolderThreads(1)
"""One thread per folder, however many connections there are."""


async def read_volumes(folders: Collection[Path]) -> dict[Path, Usage]:
    """Return (used, total) of each folder's file system; None for one that does not answer."""
    usages: dict[Path, Usage] = dict.fromkeys(folders, (None, None))

    async def measure(folder: Path) -> None:
        with trio.move_on_after(DISK_TIMEOUT), suppress(OSError, ValueError):  # no room for a thread; a zero byte
            usages[folder] = await on_disk(disk_usage, folder, limiter=_THREADS.of(folder))

    async with trio.open_nursery() as nursery:
        for folder in usages:
            nursery.start_soon(measure, folder)
    return usages
