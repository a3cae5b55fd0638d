"""Files and folders of a workspace, looked at on behalf of others.

What lies there is not ours: a disk may be away for ever, and a name may be a pipe, a device or a tape. So threads that
nothing else needs look, whoever waits can go, and only regular files are opened.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, TypeVar, TypeVarTuple

import trio

from coder.agent.state import AgentState

Found = TypeVar("Found")
Arguments = TypeVarTuple("Arguments")

THREADS = trio.CapacityLimiter(16)
"""Ours. Once so many wait for a disk that does not answer, all further looks wait; nothing else of the agent does."""
PIECE = 1 << 20
"Bytes that are read at once: a limit may be far beyond the file (ours)."
LOOK_TIME = 5.0
"""Ours: seconds a folder has to say that it is one."""


class NotRegularError(OSError):
    """What is there is no regular file."""


async def on_disk(
    look: Callable[[*Arguments], Found], *arguments: *Arguments, limiter: trio.CapacityLimiter = THREADS
) -> Found:
    """What `look` returns or raises. When the wait is cancelled it goes on until the disk answers, and is forgotten."""
    return await trio.to_thread.run_sync(look, *arguments, abandon_on_cancel=True, limiter=limiter)


async def workdir(state: AgentState) -> Path:
    """Where commands start: the manifest's directory if it exists, else home. Silence is as good as a no."""
    for folder in state.workdirs():
        with trio.move_on_after(LOOK_TIME):
            if await on_disk(folder.is_dir):
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
    descriptor = os.open(real, flags | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW, 0o666)
    file = os.fdopen(descriptor, "wb" if flags & os.O_WRONLY else "rb")
    try:
        _require_regular(os.fstat(descriptor).st_mode, path)
    except NotRegularError:
        file.close()
        raise
    return file


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
