"""How many files this process may have open: as many as the system allows, and its children as many as it found.

Every connection is a file. Systems give a process 1024 of them (the soft limit) and let it take more (the hard one);
the low number is there for programs that wait by `select`, which knows no higher ones. So whatever we start gets the
soft limit back that we were started with. Source: Go's runtime does the same since 1.19 (os/rlimit.go, and
syscall/exec_unix.go for children).
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

if sys.platform != "win32":
    import resource

MOST = 1 << 20
"""What is taken where the system allows more or sets no limit: Linux refuses more (fs.nr_open) unless told otherwise,
and at a hundred kilobytes a connection memory ends first."""
FEWEST = 10_240
"What macOS allows (OPEN_MAX) where its hard limit says unlimited and its kernel refuses the number above."

_plain_popen = subprocess.Popen.__init__
_original: int | None = None
"The soft limit we were started with, once it was raised."


def raise_open_files() -> None:
    """For processes that serve many connections, at their start. Without effect on Windows, which has no such limit."""
    global _original
    if sys.platform == "win32":
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = MOST if hard == resource.RLIM_INFINITY else min(hard, MOST)
    for wanted in (allowed, min(allowed, FEWEST)):
        if soft == resource.RLIM_INFINITY or soft >= wanted:
            return
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (ValueError, OSError):
            continue  # macOS: the kernel has a limit of its own below the hard one
        if _original is None:
            _original = soft
            subprocess.Popen.__init__ = _start  # type: ignore[method-assign, assignment]
        return


@contextmanager
def lowered_open_files() -> Iterator[None]:
    """For a process that becomes another program: as many as it found, until the block ends because that failed."""
    _lower()
    try:
        yield
    finally:
        if _original is not None:
            raise_open_files()


def _lower() -> None:
    if sys.platform != "win32" and _original is not None:
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        soft = _original if hard == resource.RLIM_INFINITY else min(_original, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def _start(
    process: subprocess.Popen[bytes],
    *words: object,
    preexec_fn: Callable[[], object] | None = None,
    **options: object,
) -> None:
    """In place of `Popen.__init__`: trio, asyncio and `subprocess.run` start all children by it.

    A function before the program costs a fork instead of a vfork: a millisecond for each 100 MB of ours.
    """

    def prepare() -> None:
        _lower()
        if preexec_fn is not None:
            preexec_fn()

    _plain_popen(process, *words, preexec_fn=prepare, **options)  # type: ignore[call-overload]
