"""Files that only their owner can read, on every system: by their mode, or by an access list on Windows.

A new file is private from its first moment. A mode means nothing on Windows, where a new file inherits the access list
of its folder: in a folder that other users read, they would read a secret, too.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

PRIVATE = 0o600
HELD_SECONDS, HELD_INTERVAL = 2.0, 0.1
"""Seconds (ours) that a replacement waits for a file which another program holds open, and between two attempts."""
SHARING_VIOLATION = 32
"""Windows' error ERROR_SHARING_VIOLATION: another program holds the file open."""
_HELD = frozenset({5, SHARING_VIOLATION})
"With ERROR_ACCESS_DENIED, which a file that is being removed gives."


def open_private(path: Path, flags: int, *, owner: str = "") -> int:
    """Return a descriptor of the file; one that is created (`os.O_CREAT` in `flags`) is readable by its owner only.

    On Windows the system account can read it, too, as root can elsewhere; so can the user `owner`, if named. An
    existing file keeps its mode or access list, unless the caller overwrites it (`os.O_TRUNC`): a file of this user
    then becomes as private as a new one before it receives its content. Raises OSError.
    """
    if sys.platform == "win32":
        from coder.base.files.windows_access import open_with_access_list

        return open_with_access_list(path, flags, owner)
    descriptor = os.open(path, flags & ~os.O_TRUNC, PRIVATE)
    if flags & os.O_TRUNC:
        try:
            _empty(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
    return descriptor


def _empty(descriptor: int) -> None:
    """Truncate a regular file; one of this user first loses the rights of other users. Raises OSError."""
    before = os.fstat(descriptor)
    if not stat.S_ISREG(before.st_mode):
        return  # a pipe or a terminal, which O_TRUNC leaves alone, too
    if before.st_uid == os.geteuid() and stat.S_IMODE(before.st_mode) & ~PRIVATE:
        with suppress(PermissionError):  # a file system without modes, such as FAT
            os.fchmod(descriptor, PRIVATE)
    os.ftruncate(descriptor, 0)


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read, or replace an existing one. Raises OSError, and leaves it as it was.

    Links, pipes, terminals and files in a folder that cannot be written get the content in place.
    """
    if not path.is_symlink() and (path.is_file() or not path.exists()):
        temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}")
        try:
            descriptor = open_private(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        except PermissionError:
            pass
        else:
            _replace_by(temporary, descriptor, path, content)
            return
    with os.fdopen(open_private(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as out:
        out.write(content)


def _replace_by(temporary: Path, descriptor: int, path: Path, content: bytes) -> None:
    try:
        with os.fdopen(descriptor, "wb") as out:
            out.write(content)
        replace_file(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def keep_access(replaced: Path, new: Path) -> None:
    """Give `new`, which will replace `replaced`, its access list on Windows; modes are the caller's. Raises OSError."""
    if sys.platform == "win32" and replaced.exists():
        from coder.base.files.windows_access import copy_access_list

        copy_access_list(replaced, new)


def replace_file(new: Path, path: Path) -> None:
    """Rename `new` to `path`, replacing it in one step. Raises OSError."""
    when_free(lambda: new.replace(path))


def when_free(change: Callable[[], object]) -> None:
    """Change a file, waiting for a moment while another program holds it open. Raises OSError.

    Windows does not replace or remove such a file; antivirus programs hold new files for moments.
    """
    end = time.monotonic() + HELD_SECONDS
    while True:
        try:
            change()
        except OSError as error:
            if getattr(error, "winerror", None) not in _HELD or time.monotonic() > end:
                raise
            time.sleep(HELD_INTERVAL)
        else:
            return
