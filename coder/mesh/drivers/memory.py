"""How the C library treats memory that bulk transfers free: it is kept, and given back when they have ended.

A transfer allocates and frees pieces of 64 KiB to 1 MiB, thousands a second. glibc returns each to the kernel by itself
and asks for it again, and the kernel clears every page anew: 600 page faults a MiB copied into a workspace
(docs/performance.md). What is kept is full of holes in the end, and of that nothing goes back by itself: an agent of
60 MiB was 80 for ever after its first transfer. Other C libraries are left alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
OWN_MAPPING_FROM = 4 << 20
"""Ours: bytes. Smaller pieces come from the heap, where they are found again; nothing of ours in bulk is larger."""
KEPT = 8 << 20
"""Ours: bytes at the heap's end that stay with us. What an idle process may cost more for having been busy."""


def keep_freed_memory() -> bool:
    """Set it for the whole process; may be called again. False where there is nothing to set."""
    tune = _function("mallopt")
    # Either one set switches glibc's own guessing off, so both are.
    return tune is not None and bool(tune(_M_MMAP_THRESHOLD, OWN_MAPPING_FROM) and tune(_M_TRIM_THRESHOLD, KEPT))


def give_back_freed_memory() -> bool:
    """Every page that nothing is left on, of all threads' heaps; some milliseconds. False if nobody can be asked."""
    trim = _function("malloc_trim")
    return trim is not None and bool(trim(0))


def _function(name: str) -> Callable[..., int] | None:
    if not sys.platform.startswith("linux"):
        return None
    import ctypes

    try:
        found: Callable[..., int] = getattr(ctypes.CDLL(None), name)
    except (OSError, AttributeError):
        return None  # musl has no such function
    return found
