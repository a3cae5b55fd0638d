"""Folder of an agent's programs: only the agent's user may write it, and its names stay valid.

Programs there are started as the agent, with access to every shell. Shells store the names for git's password prompt,
and shells outlive programs.
"""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import trio

from coder.agent.disk import DISK_TIMEOUT, OpenDescriptor, on_disk
from coder.agent.platform import system
from coder.agent.upgrade.outcomes import UpgradeNotNowError
from coder.base.own_binary import own_binary
from coder.base.private_files import open_private

NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
_NAME = re.compile(rf"coder-[0-9a-f]{{16}}{re.escape(system.PROGRAM_SUFFIX)}")


def program_path(folder: Path, digest: str) -> Path:
    """Return the path of the complete program with this SHA-256."""
    return folder / f"coder-{digest[:16]}{system.PROGRAM_SUFFIX}"


def ensure_private(folder: Path) -> None:
    """Create the folder when missing and check that it is private. Raises UpgradeNotNowError when other users could
    write to it; OSError."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if reason := system.why_not_private(folder):
        raise UpgradeNotNowError(reason)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock the folder for the block: two agents of a machine may have the same name. Raises UpgradeNotNowError,
    OSError."""
    lock = _Lock(folder)
    try:
        yield
    finally:
        lock.close()


@asynccontextmanager
async def locked_in_thread(folder: Path) -> AsyncIterator[None]:
    """Lock the folder from an event loop, which must not wait for a disk."""
    lock = await on_disk(_Lock, folder)
    try:
        yield
    finally:
        with trio.move_on_after(DISK_TIMEOUT, shield=True):
            await on_disk(lock.close)


class _Lock(OpenDescriptor):
    """File lock, released with its descriptor."""

    def __init__(self, folder: Path) -> None:
        super().__init__(-1)
        self.descriptor = open_private(folder / ".lock", os.O_RDWR | os.O_CREAT | NO_FOLLOW)
        try:
            system.lock(self.descriptor)
        except BlockingIOError as error:
            raise UpgradeNotNowError(f"another agent is using {folder}") from error


def link_others(folder: Path, kept: Path | None = None) -> None:
    """Link every program name but `kept` to the running program.

    No name is removed where a shell may outlive its agent, however the agent ended. A link costs nothing.
    """
    running = own_binary()
    if running is None:
        return
    real = running.resolve()
    is_here = real.parent == folder.resolve()
    target = real.name if is_here else str(running.absolute())
    for name_path in folder.glob("coder-*"):
        spared = {real.name if is_here else "", kept.name if kept is not None else ""}
        if name_path.name not in spared and _NAME.fullmatch(name_path.name):
            system.retire_program(name_path, target)
