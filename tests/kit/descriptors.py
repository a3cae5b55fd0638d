"""A process that has used up its file descriptors."""

from __future__ import annotations

import contextlib
import gc
import os
import resource
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def spare_descriptors(number: int) -> Iterator[None]:
    """Leave this process so many descriptors."""
    gc.collect()  # a socket of an earlier test would give its descriptor back meanwhile
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = max(int(path.name) for path in Path("/proc/self/fd").iterdir()) + 1
    taken: list[int] = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (most + number + 1, hard))
    try:
        with contextlib.suppress(OSError):
            while True:
                taken.append(os.dup(0))
        for _ in range(number):
            os.close(taken.pop())
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for descriptor in taken:
            os.close(descriptor)
