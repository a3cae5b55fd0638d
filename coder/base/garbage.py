"""Settings of Python's cyclic garbage collector for processes with many long-lived objects.

With the default settings it traversed all objects of the start again and again, in the middle of requests: nearly half
of the server's own time for a page of workspaces. In a command that loads the mesh and SSH it took a sixth, as modules
consist of cycles and none of them is garbage.

A server has thousands of connections besides, each of some hundred objects that live as long as it does. `settle` lets
no automatic collection traverse what has survived one of the middle generation (docs/decisions/garbage-collection.md).
Cycles that end later are found by `sweep_if_due` only, which a loop of the server calls.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

_THRESHOLDS = (20_000, 10, 10)
"""Thresholds (ours) of a command: a page of 25 workspaces creates some thousand containers, all freed by reference
counting; with 700 (Python's default) the collector traverses all of them several times a page. Cycles may wait for as
many new objects: some MB."""
_SERVER_THRESHOLDS = (10_000, 3, 1 << 30)
"""The same (ours) of a server. New objects are counted without those that were freed, so a server without new
connections rarely collects. A collection of the middle generation traverses some 50,000 objects; of the oldest one
there is no automatic collection."""
NEW_OBJECTS = _SERVER_THRESHOLDS[0] * (_SERVER_THRESHOLDS[1] + 2)
"""At most about so many objects survive a collection of the middle generation. After bursts of objects that reference
counting frees, as of large pages, none do."""
SWEEP_EVERY, SWEEP_RARELY = 600.0, 6 * 3600.0
"""Seconds (ours) from one sweep to the next: at first, and at most. After the latter, growth alone is a reason."""
WORTH = 0.05
"""Part of the survivors (ours) that a sweep has to free for the next one not to be later."""
SWEEP_FROM = 400_000
"""Survivors since the last sweep (ours, some 40 MB) below which none is due."""
OF_LINK = 500
"""Objects (ours) that a link of a client may leave in cycles when it ends: an agent's once left 460."""
SWEEP_AT = 4_000_000
"""Blocks of memory (ours, some 400 MB) by which a process must have grown since the last sweep, and at least doubled,
for the next one not to wait: cycles must not use up the memory. Five thousand agents are fewer blocks, and a sweep of
them, which stops the process for two seconds, frees nothing."""


class Sweeps:
    """Tells when all objects since the start have to be traversed once."""

    def __init__(self, now: float) -> None:
        self.collections = 0
        """Collections of the middle generation since the last sweep."""
        self.ended_links = 0
        """Links that ended since the last sweep: what a connected one consists of is no garbage."""
        self._swept_at = now
        self._interval = SWEEP_EVERY
        self._due_at = now + self._interval
        self._blocks = sys.getallocatedblocks()
        """Blocks of memory in use after the last sweep."""

    def after(self, phase: Literal["start", "stop"], collection: dict[str, int]) -> None:
        """Count a collection; one of `gc.callbacks`."""
        self.collections += phase == "stop" and collection["generation"] == 1

    def is_due(self, now: float) -> bool:
        """Return whether a sweep is due: some time after the last one if enough survived since, and links ended that
        may have left as much; rarely, or at once if much, if memory has only grown."""
        survivors = self.collections * NEW_OBJECTS
        if survivors < SWEEP_FROM:
            return False
        if now >= self._due_at and self.ended_links * OF_LINK >= SWEEP_FROM:
            return True
        is_long_ago = now >= self._swept_at + SWEEP_RARELY
        if not is_long_ago and survivors < SWEEP_AT:
            return False
        grown = sys.getallocatedblocks() - self._blocks
        return grown >= (SWEEP_FROM if is_long_ago else max(SWEEP_AT, self._blocks))

    def swept(self, freed: int, now: float) -> None:
        """Record a sweep. The next one may be later when it freed little of what had survived."""
        is_worth_it = freed >= WORTH * self.collections * NEW_OBJECTS
        self._interval = SWEEP_EVERY if is_worth_it else min(2 * self._interval, SWEEP_RARELY)
        self._due_at, self.collections = now + self._interval, 0
        self._swept_at, self.ended_links = now, 0
        self._blocks = sys.getallocatedblocks()


_sweeps: list[Sweeps] = []
"""That of this process, once it has settled."""


def settle() -> None:
    """Freeze all current objects of a server, so that they are never traversed again, and let no automatic collection
    traverse later ones that survive. Call once when a process has started."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_SERVER_THRESHOLDS)
    if not _sweeps:
        _sweeps.append(Sweeps(time.monotonic()))
        gc.callbacks.append(_sweeps[0].after)


@contextmanager
def keeping_many() -> Iterator[None]:
    """Let no automatic collection traverse survivors during a block that keeps the objects of thousands of connections:
    for simulated agents it was half of the processor time. Cycles that end in the block are freed after it."""
    before = gc.get_threshold()
    gc.set_threshold(*_SERVER_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def link_ended() -> None:
    """Count a link of a client that has ended."""
    if _sweeps:
        _sweeps[0].ended_links += 1


def sweep_if_due() -> tuple[int, float] | None:
    """Collect cycles among all objects since the start, when that is due. Return how many objects were freed, and the
    seconds it took; None when it was not due. Frozen objects, which forked processes share, are not touched."""
    began = time.monotonic()
    if not _sweeps or not _sweeps[0].is_due(began):
        return None
    freed = gc.collect()
    ended = time.monotonic()
    _sweeps[0].swept(freed, ended)
    return freed, ended - began


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
