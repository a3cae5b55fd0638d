"""Access to files and folders of a workspace on behalf of other services.

The content is untrusted: a disk may never answer, and a name may be a pipe, a device or a tape. So dedicated threads
access it, a caller can stop waiting, and only regular files are opened.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, TypeVar, TypeVarTuple

import trio

from coder.agent.disk import DISK_TIMEOUT, FolderThreads, on_disk
from coder.agent.platform import system
from coder.agent.state import AgentState

Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")

READ_SIZE = 1 << 20
"Bytes per read: a limit may be far beyond the file's size (ours)."
NO_WAIT = sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOCTTY", "O_BINARY"))
"""Windows has no such pipes among its files, and would convert line ends."""
NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
"Flag of an open that fails for a link."

THREADS_PER_FOLDER = 4
"Shells and scripts (ours) that check their folder at a time; others queue."
_FOLDERS = FolderThreads(THREADS_PER_FOLDER)
"""Threads for each folder: every metadata script asks again for one that does not answer."""


class NotRegularError(OSError):
    """The path is not a regular file."""


async def workdir(state: AgentState) -> Path:
    """Return the folder where commands start: the manifest's directory if it exists, else home. A folder counts as
    missing when the check fails or does not answer: an unresponsive disk, a closed parent folder, no free thread."""
    for folder in state.workdirs():
        with trio.move_on_after(DISK_TIMEOUT), suppress(OSError):
            if await on_disk(folder.is_dir, limiter=_FOLDERS.of(folder)):
                return folder
    return Path("/")


def open_regular(path: Path, flags: int = os.O_RDONLY) -> BinaryIO:
    """Open a regular file, following links. Raises NotRegularError and other OSErrors.

    Other files are not even opened: opening alone rewinds tapes, raises modem lines and wakes the other end of a pipe.
    The type is checked again once the file is open, as the path may have changed meanwhile.
    """
    real = os.path.realpath(path, strict=not flags & os.O_CREAT)
    try:
        _require_regular(os.lstat(real).st_mode, path)
    except FileNotFoundError:
        if not flags & os.O_CREAT:
            raise
    descriptor = os.open(real, flags | NO_WAIT | NO_FOLLOW, 0o666)
    file = os.fdopen(descriptor, "wb" if flags & os.O_WRONLY else "rb")
    try:
        _require_regular(os.fstat(descriptor).st_mode, path)
    except NotRegularError:
        file.close()
        raise
    return file


def open_for_writing(path: Path, flags: int, mode: int) -> int:
    """Open a descriptor for writing; a new file gets `mode`. Raises OSError.

    A pipe without a reader is rejected, not waited for, and one with a slow reader rejects a write.
    """
    return os.open(path, flags | os.O_WRONLY | os.O_CREAT | NO_WAIT, mode)


def require_own_file(descriptor: int, path: Path) -> None:
    """Raise OSError unless the open file is regular, this user's, and has no second name.

    In a directory that other users write, one may have created the file to read what is written, or linked a file of
    ours there.
    """
    status = os.fstat(descriptor)
    _require_regular(status.st_mode, path)
    if not system.is_own(status) or status.st_nlink > 1:
        raise PermissionError(errno.EPERM, "it belongs to another user or has a second name", str(path))


def read_regular(path: Path, limit: int, offset: int = 0) -> bytes:
    """Return at most `limit` bytes from `offset` on. Raises as `open_regular`."""
    with open_regular(path) as file:
        file.seek(offset)
        pieces: list[bytes] = []
        while limit > 0 and (piece := file.read(min(limit, READ_SIZE))):  # None: the kernel would have waited
            pieces.append(piece)
            limit -= len(piece)
        return b"".join(pieces)


def _require_regular(mode: int, path: Path) -> None:
    if not stat.S_ISREG(mode):
        raise NotRegularError(errno.EINVAL, "not a regular file", str(path))
