"""Files that are there whole or not at all, whoever reads and whatever is killed meanwhile."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def read_whole(path: Path) -> str:
    """The text of a file that is somebody else's as well: what is no UTF-8, and whatever lines end with, is in it so
    that `write_whole` puts it back byte for byte. Raises OSError."""
    return path.read_bytes().decode(errors="surrogateescape")


def shown(text: str) -> str:
    """Text of `read_whole` for a stream, which takes no bytes that are none."""
    return text.encode(errors="surrogateescape").decode(errors="replace")


def write_whole(path: Path, text: str, *, mode: int = 0o600, owner: str = "") -> None:
    """Puts `text` in the place of `path`, in one step: UTF-8, and bytes as `read_whole` has them. Its folder exists.

    `owner` is a user's name, for those who may give files away. The bytes are never readable by more people
    than `mode` says, whatever the umask. Raises OSError, and then `path` is as it was.
    """
    beside = path.with_name(f".{path.name}.{os.urandom(4).hex()}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with naming(path), os.fdopen(descriptor, "wb") as out:
            out.write(text.encode(errors="surrogateescape"))
        beside.chmod(mode)
        if owner:
            import shutil  # not for every short command

            shutil.chown(beside, owner)
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """A failure to write says of which file: the system names it for an open that fails, not for a full disk."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise


def move_aside(path: Path, aside: Path) -> Path:
    """Renames a file or folder to `aside`, or, where that is taken, to the same with a number; returns where it is.

    What was kept there before stays: a name made of the time is one that two moves within a second share. Raises
    OSError.
    """
    kept, number = aside, 1
    while os.path.lexists(kept):
        number += 1
        kept = aside.with_name(f"{aside.name}-{number}")
    return path.rename(kept)
