"""Directories of the scripts that an agent runs, and the directory that puts this program on PATH as `coder`.

By default they are in the system's temporary directory, where any local user may have created the same names earlier.
PATH begins with one of them, so the agent uses only directories that it owns and that other users cannot write.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from coder.agent.platform import system
from coder.base.log import get_logger

log = get_logger("agent.scripts")

NAME = "coder-script-data"
PROGRAM = "coder"
"Name under which scripts call this program."


class ScriptDirectories:
    """Base directory of all scripts. Methods access the disk; several threads may call them."""

    def __init__(self, data_dir: Path, home: Path) -> None:
        self._data_dir, self._home = data_dir, home
        self._base: Path | None = None
        self._lock = threading.Lock()

    def base(self) -> Path:
        """Return the base directory; create, check or replace it first. Raises OSError when none can be used."""
        with self._lock:
            if self._base is not None and _is_usable(self._base):
                return self._base
            with contextlib.suppress(OSError):  # the candidates fail then, too, and say why
                self._data_dir.mkdir(parents=True, exist_ok=True)
            for candidate in self._candidates():
                if _is_usable(candidate):
                    self._base = candidate
                    return candidate
            base = Path(tempfile.mkdtemp(prefix=f"{NAME}-"))
            make_private(base / "bin")
            self._base = base
            return base

    def bin(self) -> Path:
        """Return the directory for programs that scripts install. Raises OSError."""
        return self.base() / "bin"

    def data(self, source: str) -> Path:
        """Return the directory (0700) of the script with that log source id. Raises OSError."""
        return make_private(self.base() / source)

    def log(self, name: str) -> Path:
        """Return the path of a log file that only this user can have created. Raises OSError."""
        return make_private(self.base() / "logs") / name

    def program_folder(self, program: Path) -> Path | None:
        """Return the directory that has `program` under the name `coder`; None when the program does not exist.

        It is the program's own directory, unless the program has another name (`coder-linux-amd64`) or other users can
        write the directory: then a private directory with a link. Raises OSError.
        """
        if not program.is_absolute() or not os.access(program, os.X_OK) or not program.is_file():
            return None
        if program.name == PROGRAM and is_protected(program.parent):
            return program.parent
        digest = hashlib.sha256(os.fsencode(program)).hexdigest()[:12]
        folder = make_private(self.base() / f"program-{digest}")
        system.link_program(program, folder / PROGRAM)
        return folder

    def _candidates(self) -> Iterator[Path]:
        yield self._data_dir / NAME
        own = f"{NAME}-{system.user_mark()}"
        yield self._data_dir / own
        yield Path(tempfile.gettempdir()) / own
        yield self._home / f".{NAME}"


def make_private(path: Path) -> Path:
    """Create the directory with mode 0700, or verify that this user owns it and close it to other users. Renew its
    modification time, so that a cleaner of temporary files keeps it. Raises OSError."""
    parent = path.parent.stat()
    if system.others_can_replace(parent):
        raise PermissionError(errno.EPERM, "other users can replace it", str(path))
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        status = path.lstat()
        if not stat.S_ISDIR(status.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, "it is not a directory", str(path)) from None
        if not system.is_own(status):
            raise PermissionError(errno.EPERM, "it belongs to another user", str(path)) from None
        system.close_to_others(path, status)
        os.utime(path)
    return path


def is_protected(folder: Path) -> bool:
    """Return whether only this user and root can create files there."""
    return system.is_protected(folder.stat())


def _is_usable(base: Path) -> bool:
    try:
        make_private(make_private(base) / "bin")
    except OSError as error:
        log.warn("a directory is not used for scripts", path=base, error=error)
        return False
    return True
