"""Atomic files: readers see the old or the new content, even when the writer is killed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from coder.base.files.private_files import PRIVATE, keep_access, open_private, replace_file, when_free

BINARY = getattr(os, "O_BINARY", 0)
"""Flag without which Windows converts line ends."""
HAS_OWNERS = hasattr(os, "chown")


def read_lossless(path: Path) -> str:
    """Return the text of a file that other programs edit, too: invalid UTF-8 and line ends are preserved, so that
    `write_atomically` restores them byte for byte. Raises OSError."""
    return path.read_bytes().decode(errors="surrogateescape")


def shown(text: str) -> str:
    """Return text of `read_lossless` for a stream, which accepts no invalid bytes."""
    return text.encode(errors="surrogateescape").decode(errors="replace")


def write_atomically(path: Path, text: str, *, mode: int = PRIVATE, owner: str = "", encoding: str = "utf-8") -> None:
    """Replace the content of `path` atomically, with bytes as `read_lossless` has them. Its folder must exist.

    `owner` is a user's name, for callers who may change the owner. The content is never readable by more users than
    `mode` allows, regardless of the umask. On Windows a mode of the owner only is an access list; with another mode the
    file keeps its own list, or inherits the folder's. Raises OSError, and then `path` is unchanged.
    """
    temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}")
    flags, is_private = os.O_WRONLY | os.O_CREAT | os.O_EXCL | BINARY, mode == PRIVATE
    # Only Windows inherits access from the folder, and cannot widen it by a mode.
    descriptor = open_private(temporary, flags, owner=owner) if is_private else os.open(temporary, flags, PRIVATE)
    try:
        with naming(path), os.fdopen(descriptor, "wb") as out:
            out.write(text.encode(encoding, errors="surrogateescape"))
        temporary.chmod(mode)
        if not is_private:
            keep_access(path, temporary)
        if owner and HAS_OWNERS:
            import shutil  # not for every short command

            shutil.chown(temporary, owner)
        replace_file(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Add the file's name to a failed write: the system names it for a failed open, not for a full disk."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise


def move_aside(path: Path, aside: Path) -> Path:
    """Rename a file or folder to `aside`, or, when that exists, to the same name with a number; return the new path.

    Earlier copies stay: two moves within a second have the same name derived from the time. Raises OSError.
    """
    target, number = aside, 1
    while os.path.lexists(target):
        number += 1
        target = aside.with_name(f"{aside.name}-{number}")
    when_free(lambda: path.rename(target))
    return target
