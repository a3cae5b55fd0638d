"""Programs compressed for the way: made when the first client asks, kept in the cache directory by SHA-1.

For programs that are not ours, whose code lies there as it runs. One that `build/build.py` made is a compressed payload
already and is never tried (docs/decisions/single-binary.md).
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

SMALLEST = 1 << 20
"""Bytes. What is smaller arrives before it would be compressed."""
LARGEST = 1 << 29
KEPT = 16
"""Files in the folder: two for every platform there is. The one used longest ago goes first."""
WORTH = 0.9
"""A compressed form that is larger than this share of the program is not kept."""
LEFT = 3600.0
"""Seconds after which an unfinished file is one that somebody left who was killed."""
AGAIN = 300.0
"""Seconds until a program is tried again after its form could not be written: disks get room, folders their rights."""
_LEVEL = 6
_PIECE = 1 << 20

_log = get_logger("programs")
_attempts = itertools.count()


@dataclass(frozen=True, slots=True)
class Form:
    """A program's compressed form."""

    path: Path
    size: int


class CompressedPrograms:
    """The folder of one server process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._one_at_a_time = trio.Lock()
        self._not_worth: set[str] = set()
        "SHA-1 of programs that gain nothing."
        self._failed: dict[str, float] = {}
        "By SHA-1, when those are tried again that could not be written."

    async def gzipped(self, program: Path, size: int, sha1: str) -> Form | None:
        """The program's gzip form, made now if need be; whoever asks meanwhile waits for the same one.

        What is there already waits for nobody. Who leaves while it is being made ends that: whoever waits begins anew.
        """
        if not SMALLEST <= size <= LARGEST:
            return None
        target = self._folder / f"{sha1}.gz"
        found = _ready(target)
        if found is not None:
            return found
        async with self._one_at_a_time:
            found = _ready(target)
            if found is not None or sha1 in self._not_worth or self._failed.get(sha1, 0.0) > trio.current_time():
                return found
            return await self._make(program, target, int(size * WORTH), sha1)

    async def _make(self, program: Path, target: Path, largest: int, sha1: str) -> Form | None:
        stop = threading.Event()
        try:
            made = await trio.to_thread.run_sync(_made, program, target, largest, stop, abandon_on_cancel=True)
        except OSError as error:
            _log.warn("a program cannot be compressed", program=program.name, error=error)
            self._failed[sha1] = trio.current_time() + AGAIN
            return None
        except trio.Cancelled:
            stop.set()  # within a piece: nobody waits for the thread, and it does not go on for nobody
            raise
        if made is None:
            self._not_worth.add(sha1)
        return made


def _ready(target: Path) -> Form | None:
    """The form that is there, noted as in use."""
    try:
        size = target.stat().st_size
    except OSError:
        return None
    with contextlib.suppress(OSError):  # a folder that cannot be written has good forms all the same
        os.utime(target)
    return Form(target, size)


def _made(program: Path, target: Path, largest: int, stop: threading.Event) -> Form | None:
    """The form, if it is small enough. Raises OSError."""
    target.parent.mkdir(parents=True, exist_ok=True)
    # Whoever was told to stop may still be writing.
    half = target.with_suffix(f".{os.getpid()}-{next(_attempts)}.half")
    try:
        with half.open("wb") as out:
            with program.open("rb") as source, gzip.GzipFile("", "wb", _LEVEL, out, 0) as packed:
                while not stop.is_set() and (piece := source.read(_PIECE)):
                    packed.write(piece)
            out.flush()
            os.fsync(out.fileno())  # after a power cut a name without its bytes would be served for good
        written = half.stat()
        if stop.is_set() or written.st_size > largest:
            return None
        half.replace(target)
    finally:
        half.unlink(missing_ok=True)
    _tidy(target.parent, written.st_mtime)
    return Form(target, written.st_size)


def _tidy(folder: Path, now: float) -> None:
    """Other processes may tidy the same folder."""
    for path in folder.glob("*.half"):
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_mtime < now - LEFT:
                path.unlink()
    by_use = []
    for path in folder.glob("*.gz"):
        with contextlib.suppress(FileNotFoundError):
            by_use.append((path.stat().st_mtime, path))
    for _, path in sorted(by_use)[:-KEPT]:
        path.unlink(missing_ok=True)
