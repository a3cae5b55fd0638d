"""Folder of an agent's programs: only the agent's user may write it, and its names stay valid.

Programs there are started as the agent, with access to every shell. Shells store the names for git's password prompt,
and shells outlive programs.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import trio

from coder.agent.disk import DISK_TIMEOUT, OpenDescriptor, on_disk
from coder.agent.upgrade.outcomes import UpgradeNotNowError
from coder.base.own_binary import own_binary

_NAME = re.compile(r"coder-[0-9a-f]{16}")
_OVERFLOW_UID = 65534
"User id that a container reports for users outside of it."


def program_path(folder: Path, digest: str) -> Path:
    """Return the path of the complete program with this SHA-256."""
    return folder / f"coder-{digest[:16]}"


def ensure_private(folder: Path) -> None:
    """Create the folder when missing and check that it is private. Raises UpgradeNotNowError when other users could
    write to it; OSError."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    info = folder.lstat()
    if not stat.S_ISDIR(info.st_mode):
        raise UpgradeNotNowError(f"{folder} is not a directory")
    if info.st_uid != os.geteuid():
        raise UpgradeNotNowError(f"{folder} belongs to another user")
    if info.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise UpgradeNotNowError(f"{folder} is writable by other users")
    # A user who may rename a parent folder could replace this one, by either path to it.
    for above in {*folder.absolute().parents, *folder.resolve().parents}:
        info = above.stat()
        if info.st_uid not in {0, os.geteuid(), _OVERFLOW_UID}:
            raise UpgradeNotNowError(f"{above}, above {folder}, belongs to another user")
        if info.st_mode & stat.S_IWOTH and not info.st_mode & stat.S_ISVTX:
            raise UpgradeNotNowError(f"{above}, above {folder}, is writable by everyone")


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
        import fcntl

        super().__init__(-1)
        self.descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UpgradeNotNowError(f"another agent is using {folder}") from error


def link_others(folder: Path, kept: Path | None = None) -> None:
    """Link every program name but `kept` to the running program.

    No name is removed: a shell may outlive its agent, however the agent ended. A link costs nothing.
    """
    running = own_binary()
    if running is None:
        return
    real = running.resolve()
    is_here = real.parent == folder.resolve()
    target = real.name if is_here else str(running.absolute())
    for name_path in folder.glob("coder-*"):
        spared = {real.name if is_here else "", kept.name if kept is not None else ""}
        if (
            name_path.name in spared
            or not _NAME.fullmatch(name_path.name)
            or (name_path.is_symlink() and str(name_path.readlink()) == target)
        ):
            continue
        link = folder / "link.part"
        link.unlink(missing_ok=True)
        link.symlink_to(target)
        link.replace(name_path)  # atomic: git may start it at any time
