"""Settings of Python's cyclic garbage collector for processes that create many long-lived objects at their start.

With the default settings it traversed all objects of the start again and again, in the middle of requests: nearly half
of the server's own time for a page of workspaces. In a command that loads the mesh and SSH it took a sixth, as modules
consist of cycles and none of them is garbage.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_THRESHOLDS = (20_000, 10, 10)
"""Thresholds (ours): a page of 25 workspaces creates some thousand containers, all freed by reference counting; with
700 (Python's default) the collector traverses all of them several times a page. Cycles may wait for as many new
objects: some MB."""


def settle() -> None:
    """Freeze all current objects, so that they are never traversed again. Call once when a process has started."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)


def pause() -> None:
    """Disable the collector. A command calls this before it loads many modules, and `go_on` or `settle` afterwards:
    until then only reference counting frees memory."""
    gc.disable()


def go_on() -> None:
    """Enable the collector after `pause`. Current objects are frozen, as in `settle`; one collection would cost what
    `pause` saved."""
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
    gc.enable()


@contextmanager
def paused() -> Iterator[None]:
    """Disable the collector while a block loads modules. Cycles that the imports leave are never freed: for the server
    less than 2 MB of 125."""
    pause()
    try:
        yield
    finally:
        go_on()
