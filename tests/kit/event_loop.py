"""Calls on files that a thread makes: an event loop makes none, as a disk may not answer."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CALLS = frozenset(
    {
        "open",
        "os.chmod",
        "os.link",
        "os.listdir",
        "os.mkdir",
        "os.remove",
        "os.rename",
        "os.rmdir",
        "os.scandir",
        "os.symlink",
        "os.truncate",
        "os.utime",
    }
)
_watched: list[tuple[str, str]] = []
_thread: list[int] = []


def _hear(event: str, arguments: tuple[object, ...]) -> None:
    if _thread and event in CALLS and threading.get_ident() == _thread[0]:
        _watched.append((event, str(arguments[0])))


sys.addaudithook(_hear)  # for the life of the process: it listens where somebody watches


@contextmanager
def watched(folder: Path) -> Iterator[list[str]]:
    """Calls on files in the folder that this thread makes."""
    found: list[str] = []
    _watched.clear()
    _thread.append(threading.get_ident())
    try:
        yield found
    finally:
        _thread.clear()
        found += [event for event, path in _watched if str(folder) in path]
