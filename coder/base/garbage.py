"""Python's cyclic garbage collector, set for a process that lives long and answers requests.

Left alone it looked at everything that a start had made, again and again, in the middle of answers: nearly half of the
server's own time for a page of workspaces.
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
