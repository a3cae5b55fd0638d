"""Compressed forms of programs: made on the first request, kept in the cache directory by SHA-1.

Only for programs of other builds. A program of `build/build.py` is already a compressed payload and is never compressed
again (docs/decisions/single-binary.md).
"""

from __future__ import annotations

import contextlib
import gzip
import itertools
import os
import threading
from dataclasses import dataclass
from pathlib import Path

import trio

from coder.base.log import get_logger

MIN_SIZE = 1 << 20
"""Bytes. Sending a smaller file takes less time than compressing it."""
LARGEST = 1 << 29
MAX_FILES = 16
"""Files in the folder: two for every platform. The one used longest ago is deleted first."""
MAX_RATIO = 0.9
"""Ratio to the program's size above which a compressed form is not kept."""
STALE_AFTER = 3600.0
"""Seconds after which an unfinished file belongs to a killed process."""
RETRY_AFTER = 300.0
"""Seconds until a failed write is retried: disks and permissions may get repaired."""
_LEVEL = 6
_PIECE = 1 << 20

_log = get_logger("programs")
_attempts = itertools.count()


@dataclass(frozen=True, slots=True)
class Form:
    """Compressed form of a program."""

    path: Path
    size: int


class CompressedPrograms:
    """Folder of one server process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._compressing = trio.Lock()
        self._not_worth: set[str] = set()
        "SHA-1 of programs that compression does not shrink."
        self._failed: dict[str, float] = {}
        "Time of the next try for programs whose form could not be written, by SHA-1."

    async def gzipped(self, program: Path, size: int, sha1: str) -> Form | None:
        """Return the program's gzip form, compressing it if necessary; concurrent callers wait for the same one.

        An existing form needs no wait. Cancelling the caller that compresses stops the work, and a waiting caller
        starts it again.
        """
        if not MIN_SIZE <= size <= LARGEST:
            return None
        target = self._folder / f"{sha1}.gz"
        form = _ready(target)
        if form is not None:
            return form
        async with self._compressing:
            form = _ready(target)
            if form is not None or sha1 in self._not_worth or self._failed.get(sha1, 0.0) > trio.current_time():
                return form
            return await self._make(program, target, int(size * MAX_RATIO), sha1)

    async def _make(self, program: Path, target: Path, largest: int, sha1: str) -> Form | None:
        stop = threading.Event()
        try:
            form = await trio.to_thread.run_sync(_write_form, program, target, largest, stop, abandon_on_cancel=True)
        except OSError as error:
            _log.warn("a program cannot be compressed", program=program.name, error=error)
            self._failed[sha1] = trio.current_time() + RETRY_AFTER
            return None
        except trio.Cancelled:
            stop.set()  # within one chunk, so that the thread neither delays the caller nor keeps running
            raise
        if form is None:
            self._not_worth.add(sha1)
        return form


def _ready(target: Path) -> Form | None:
    """Return the existing form and record its use."""
    try:
        size = target.stat().st_size
    except OSError:
        return None
    with contextlib.suppress(OSError):  # forms in a read-only folder are still usable
        os.utime(target)
    return Form(target, size)


def _write_form(program: Path, target: Path, largest: int, stop: threading.Event) -> Form | None:
    """Return the form if it is small enough. Raises OSError."""
    target.parent.mkdir(parents=True, exist_ok=True)
    # A stopped process may still be writing.
    half = target.with_suffix(f".{os.getpid()}-{next(_attempts)}.half")
    try:
        with half.open("wb") as out:
            with program.open("rb") as source, gzip.GzipFile("", "wb", _LEVEL, out, 0) as packed:
                while not stop.is_set() and (piece := source.read(_PIECE)):
                    packed.write(piece)
            out.flush()
            os.fsync(out.fileno())  # otherwise a power failure could leave an empty file, served for good
        written = half.stat()
        if stop.is_set() or written.st_size > largest:
            return None
        half.replace(target)
    finally:
        half.unlink(missing_ok=True)
    _tidy(target.parent, written.st_mtime)
    return Form(target, written.st_size)


def _tidy(folder: Path, now: float) -> None:
    """Delete old files. Another process may do so in the same folder."""
    for path in folder.glob("*.half"):
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_mtime < now - STALE_AFTER:
                path.unlink()
    by_use = []
    for path in folder.glob("*.gz"):
        with contextlib.suppress(FileNotFoundError):
            by_use.append((path.stat().st_mtime, path))
    for _, path in sorted(by_use)[:-MAX_FILES]:
        path.unlink(missing_ok=True)
