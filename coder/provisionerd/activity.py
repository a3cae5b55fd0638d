"""What the daemons of one process work on, for whoever asks how busy they are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Activity:
    """`slots` jobs may run at once, one a daemon."""

    def __init__(self, slots: int = 1) -> None:
        self.slots = slots
        self.jobs: set[str] = set()

    @contextmanager
    def working(self, job_id: str) -> Iterator[None]:
        """`job_id` runs for the length of the block."""
        self.jobs.add(job_id)
        try:
            yield
        finally:
            self.jobs.discard(job_id)
