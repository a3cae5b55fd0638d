"""A system that has no room for another thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from trio._core._thread_cache import THREAD_CACHE

from coder.base import threads


@contextmanager
def no_threads() -> Iterator[None]:
    """For the block, and for threads that are begun: those that run go on."""

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading.Thread, "start", threads._start)
        patch.setattr(threads, "_plain_start", refuse)
        patch.setattr(THREAD_CACHE, "_idle_workers", {})
        yield
