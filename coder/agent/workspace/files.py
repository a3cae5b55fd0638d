"""Files and folders of a workspace, looked at on behalf of others.

What lies there is not ours: a disk may be away for ever, and a name may be a pipe, a device or a tape. So threads that
nothing else needs look, whoever waits can go, and only regular files are opened.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, TypeVar, TypeVarTuple

import trio

from coder.agent.disk import LOOK_TIME, FolderThreads, on_disk
from coder.agent.state import AgentState

Found = TypeVar("Found")
Arguments = TypeVarTuple("Arguments")

PIECE = 1 << 20
"Bytes that are read at once: a limit may be far beyond the file (ours)."
_NO_WAIT = sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOCTTY", "O_BINARY"))
"""Windows has no such pipes among its files, and would change the ends of lines."""


ASKED_AT_ONCE = 4
"Ours: shells and scripts that look for their folder at a time; others wait for them."
_FOLDERS = FolderThreads(ASKED_AT_ONCE)
"""One that does not answer is asked again by every script of the metadata."""


class NotRegularError(OSError):
    """What is there is no regular file."""


async def workdir(state: AgentState) -> Path:
    """Where commands start: the manifest's directory if it exists, else home. Silence is as good as a no, and so is
    whatever keeps one from looking: a disk that is gone, a folder above that is closed, no room for a thread."""
    for folder in state.workdirs():
        with trio.move_on_after(LOOK_TIME), suppress(OSError):
            if await on_disk(folder.is_dir, limiter=_FOLDERS.of(folder)):
                return folder
    return Path("/")


def open_regular(path: Path, flags: int = os.O_RDONLY) -> BinaryIO:
    """The file, links followed. Raises NotRegularError and other OSErrors.

    What is no regular file is not even opened: opening alone rewinds tapes, raises modem lines and wakes who waits at a
    pipe. It is looked at again once it is open, as it may be another by then.
    """
    real = os.path.realpath(path, strict=not flags & os.O_CREAT)
    try:
        _require_regular(os.lstat(real).st_mode, path)
    except FileNotFoundError:
        if not flags & os.O_CREAT:
            raise
    descriptor = os.open(real, flags | _NO_WAIT | getattr(os, "O_NOFOLLOW", 0), 0o666)
    file = os.fdopen(descriptor, "wb" if flags & os.O_WRONLY else "rb")
    try:
        _require_regular(os.fstat(descriptor).st_mode, path)
    except NotRegularError:
        file.close()
        raise
    return file


def open_to_write(path: Path, flags: int, mode: int) -> int:
    """A descriptor, of a new file with `mode` where there is none. Raises OSError.

    A pipe nobody reads from is refused, not waited for, and one whose reader is slow refuses a write.
    """
    return os.open(path, flags | os.O_WRONLY | os.O_CREAT | _NO_WAIT, mode)


def read_regular(path: Path, limit: int, offset: int = 0) -> bytes:
    """At most `limit` bytes from `offset` on. Raises as `open_regular`."""
    with open_regular(path) as file:
        file.seek(offset)
        taken: list[bytes] = []
        while limit > 0 and (piece := file.read(min(limit, PIECE))):  # None: what the kernel would have waited for
            taken.append(piece)
            limit -= len(piece)
        return b"".join(taken)


def _require_regular(mode: int, path: Path) -> None:
    if not stat.S_ISREG(mode):
        raise NotRegularError(errno.EINVAL, "no regular file", str(path))
