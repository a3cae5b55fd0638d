"""The file in which a script's output is kept on the machine: bounded, and no reason for anything to fail.

A disk that is full or a folder that cannot be written costs the file and one line in the agent's log, never the script:
its output goes to the server all the same.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from types import TracebackType

from coder.base.log import get_logger

log = get_logger("agent")

MOST = 64 << 20
"""Ours: bytes of one run that are kept; a script that writes gigabytes must not fill the disk it runs on."""
_FULL = b"\n[the rest of this run's output is not kept here]\n"


class ScriptLog:
    """Used as a block; `write` never fails."""

    def __init__(self, path: Path, most: int = MOST) -> None:
        self._path, self._left = path, most
        self._descriptor: int | None = None

    def __enter__(self) -> ScriptLog:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError as error:
            log.warn("a script's output is not kept in a file", path=self._path, error=error)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def write(self, chunk: bytes | bytearray) -> None:
        """Appends what there is room for."""
        if self._descriptor is None:
            return
        kept = memoryview(chunk)[: self._left]
        self._left -= len(kept)
        try:
            while kept:
                kept = kept[os.write(self._descriptor, kept) :]
            if not self._left:
                os.write(self._descriptor, _FULL)
                self._close()
        except OSError as error:
            log.warn("a script's output is kept no longer", path=self._path, error=error)
            self._close()

    def _close(self) -> None:
        if self._descriptor is not None:
            with contextlib.suppress(OSError):
                os.close(self._descriptor)
            self._descriptor = None
