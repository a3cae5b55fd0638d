"""How full file systems are, of which any may be away: one that does not answer is unknown, and costs no other."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

import trio

from coder.agent.disk import LOOK_TIME, FolderThreads, on_disk
from coder.base.host import disk_usage

Usage = tuple[int | None, int | None]
"""(used, total)"""
_THREADS = FolderThreads(1)
"""However many connections come."""


async def read_volumes(folders: Collection[Path]) -> dict[Path, Usage]:
    """(used, total) of the file system of each; None of one that does not answer."""
    found: dict[Path, Usage] = dict.fromkeys(folders, (None, None))

    async def look(folder: Path) -> None:
        with trio.move_on_after(LOOK_TIME), suppress(OSError):  # no room for a thread
            found[folder] = await on_disk(disk_usage, folder, limiter=_THREADS.of(folder))

    async with trio.open_nursery() as nursery:
        for folder in found:
            nursery.start_soon(look, folder)
    return found
