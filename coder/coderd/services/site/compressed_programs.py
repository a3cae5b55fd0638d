"""Programs compressed for the way: made when the first client asks, kept in the cache directory by SHA-1.

For programs that are not ours, whose code lies there as it runs. One that `build/build.py` made is a compressed payload
already and is never tried (docs/decisions/single-binary.md).
"""

from __future__ import annotations

import gzip
import os
import shutil
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
_LEVEL = 6

_log = get_logger("programs")


class CompressedPrograms:
    """The folder of one server process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._one_at_a_time = trio.Lock()
        self._without: set[str] = set()
        "SHA-1 of programs that have none: not worth it, or it could not be written."

    async def gzipped(self, program: Path, size: int, sha1: str) -> Path | None:
        """The program's gzip form, made now if need be; whoever asks meanwhile waits for the same one."""
        if not SMALLEST <= size <= LARGEST:
            return None
        target = self._folder / f"{sha1}.gz"
        async with self._one_at_a_time:
            if sha1 in self._without:
                return None
            try:
                if await trio.to_thread.run_sync(_made, program, target, int(size * WORTH)):
                    return target
            except OSError as error:
                _log.warn("a program cannot be compressed", program=program.name, error=error)
            self._without.add(sha1)
            return None


def _made(program: Path, target: Path, largest: int) -> bool:
    """Whether `target` is there now. Raises OSError."""
    if target.is_file():
        os.utime(target)  # it is in use
        return True
    target.parent.mkdir(parents=True, exist_ok=True)
    half = target.with_suffix(f".{os.getpid()}.half")
    try:
        with program.open("rb") as source, half.open("wb") as out, gzip.GzipFile("", "wb", _LEVEL, out, 0) as packed:
            shutil.copyfileobj(source, packed, 1 << 20)
        if half.stat().st_size > largest:
            return False
        half.replace(target)
    finally:
        half.unlink(missing_ok=True)
    by_use = sorted(target.parent.glob("*.gz"), key=lambda path: path.stat().st_mtime)
    for path in by_use[:-KEPT]:
        path.unlink(missing_ok=True)
    return True
