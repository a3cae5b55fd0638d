"""Python's cyclic garbage collector, set for processes whose start makes much that stays.

Left alone it looked at everything that a start had made, again and again, in the middle of answers: nearly half of the
server's own time for a page of workspaces. Of a command that loads the mesh and SSH it took a sixth, as modules are
made of cycles and none of them is garbage.
"""

from __future__ import annotations

import gc

_THRESHOLDS = (20_000, 10, 10)
"""Ours: a page of 25 workspaces makes some thousand containers, all freed by counting references; 700 (Python's) had
the collector follow all of them several times a page. Cycles may wait for as many new objects: some MB."""


def settle() -> None:
    """To be called once when a process has started: what exists now stays, and is never looked at again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)


def pause() -> None:
    """To be called by a command before it loads much, and `go_on` or `settle` once it has: until then nothing is freed
    but by counting references."""
    gc.disable()


def go_on() -> None:
    """After `pause`. What exists stays, as after `settle`; one look through it would cost what `pause` saved."""
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
    gc.enable()
