"""Allocator settings for bulk transfers: freed memory is kept, and returned when they have ended.

A transfer allocates and frees pieces of 64 KiB to 1 MiB, thousands a second. By default glibc returns each to the
kernel and requests it again, and the kernel clears every page again: 600 page faults a MiB copied into a workspace
(docs/performance.md). The kept memory is full of holes in the end and is not returned automatically: an agent of 60 MiB
stayed at 80 after its first transfer. Other C libraries are left alone.
"""

from __future__ import annotations

import sys
from typing import Protocol

_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
OWN_MAPPING_FROM = 4 << 20
"""Ours: bytes. Smaller pieces come from the heap, where they are reused; nothing of ours in bulk is larger."""
KEPT = 8 << 20
"""Ours: free bytes that stay at the heap's end. The extra cost of an idle process that was busy."""


class _Setting(Protocol):
    """A function of glibc's allocator."""

    def __call__(self, *numbers: int) -> int: ...


def keep_freed_memory() -> bool:
    """Apply the settings to the whole process; may be called again. Return False without such settings."""
    tune = _function("mallopt")
    # Setting either one disables glibc's own adaptation, so both are set.
    return tune is not None and bool(tune(_M_MMAP_THRESHOLD, OWN_MAPPING_FROM) and tune(_M_TRIM_THRESHOLD, KEPT))


def release_freed_memory() -> bool:
    """Return every free page of all threads' heaps to the kernel; some milliseconds.

    Return False without malloc_trim.
    """
    trim = _function("malloc_trim")
    return trim is not None and bool(trim(0))


def _function(name: str) -> _Setting | None:
    if not sys.platform.startswith("linux"):
        return None
    import ctypes

    try:
        function: _Setting = getattr(ctypes.CDLL(None), name)
    except (OSError, AttributeError):
        return None  # musl has no such function
    return function
