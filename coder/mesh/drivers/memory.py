"""How the C library treats memory that bulk transfers free: it is kept instead of being given back at once.

A transfer allocates and frees pieces of 64 KiB to 1 MiB, thousands a second. glibc returns each to the kernel by itself
and asks for it again, and the kernel clears every page anew: 600 page faults a MiB copied into a workspace
(docs/performance.md). Other C libraries are left alone.
"""

from __future__ import annotations

import sys

_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
OWN_MAPPING_FROM = 4 << 20
"""Ours: bytes. Smaller pieces come from the heap, where they are found again; nothing of ours in bulk is larger."""
KEPT = 8 << 20
"""Ours: bytes at the heap's end that stay with us. What an idle process may cost more for having been busy."""


def keep_freed_memory() -> bool:
    """Set it for the whole process; may be called again. False where there is nothing to set."""
    if not sys.platform.startswith("linux"):
        return False
    import ctypes

    try:
        tune = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False  # musl has no such switch
    # Either one set switches glibc's own guessing off, so both are.
    return bool(tune(_M_MMAP_THRESHOLD, OWN_MAPPING_FROM) and tune(_M_TRIM_THRESHOLD, KEPT))
