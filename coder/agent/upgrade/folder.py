"""Where an agent keeps programs: a folder that nobody else may write, and names that go on to mean something.

What lies there is started as us, with every shell in its hands. The names are told to shells, for git's password
prompt, and shells outlive programs.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import trio

from coder.agent.disk import LOOK_TIME, Held, on_disk
from coder.agent.upgrade.outcomes import UpgradeNotNowError
from coder.base.own_binary import own_binary

_NAME = re.compile(r"coder-[0-9a-f]{16}")
_NOBODY = 65534
"How a container shows whoever is outside of it."


def program_path(folder: Path, digest: str) -> Path:
    """Where the program with this SHA-256 lies once it is whole."""
    return folder / f"coder-{digest[:16]}"


def make_own(folder: Path) -> None:
    """The folder is there, and ours. Raises UpgradeNotNowError when others could put something into it; OSError."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    info = folder.lstat()
    if not stat.S_ISDIR(info.st_mode):
        raise UpgradeNotNowError(f"{folder} is no directory")
    if info.st_uid != os.geteuid():
        raise UpgradeNotNowError(f"{folder} belongs to somebody else")
    if info.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise UpgradeNotNowError(f"{folder} can be written by others")
    # Who may rename what is above it may put another in its place, by either way to it.
    for above in {*folder.absolute().parents, *folder.resolve().parents}:
        info = above.stat()
        if info.st_uid not in {0, os.geteuid(), _NOBODY}:
            raise UpgradeNotNowError(f"{above}, above {folder}, belongs to somebody else")
        if info.st_mode & stat.S_IWOTH and not info.st_mode & stat.S_ISVTX:
            raise UpgradeNotNowError(f"{above}, above {folder}, can be written by anybody")


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Nobody else is at work there: two agents of a machine may go by one name. Raises UpgradeNotNowError, OSError."""
    held = _Lock(folder)
    try:
        yield
    finally:
        held.close()


@asynccontextmanager
async def locked_in_thread(folder: Path) -> AsyncIterator[None]:
    """The same for who must not wait for a disk: an event loop."""
    held = await on_disk(_Lock, folder)
    try:
        yield
    finally:
        with trio.move_on_after(LOOK_TIME, shield=True):
            await on_disk(held.close)


class _Lock(Held):
    """Let go with its file."""

    def __init__(self, folder: Path) -> None:
        import fcntl

        super().__init__(-1)
        self.descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UpgradeNotNowError(f"another agent is at work in {folder}") from error


def link_others(folder: Path, kept: Path | None = None) -> None:
    """Every name of a program but `kept` starts the one that runs.

    None is taken away: a shell may outlive its agent, however that ended. A link costs nothing.
    """
    own = own_binary()
    if own is None:
        return
    real = own.resolve()
    is_here = real.parent == folder.resolve()
    target = real.name if is_here else str(own.absolute())
    for old in folder.glob("coder-*"):
        spared = {real.name if is_here else "", kept.name if kept is not None else ""}
        if old.name in spared or not _NAME.fullmatch(old.name) or (old.is_symlink() and str(old.readlink()) == target):
            continue
        link = folder / "link.part"
        link.unlink(missing_ok=True)
        link.symlink_to(target)
        link.replace(old)  # at once: git may start it at any time
