"""What the daemons of one process work on and have worked on, for whoever asks how busy they are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

BUCKETS = (1.0, 10.0, 30.0, 60.0, 300.0, 600.0, 1800.0, 3600.0)
"""Upper bounds, in seconds: imports of small templates take one, clusters an hour."""


@dataclass
class Timings:
    """How long jobs took: a histogram."""

    total: float = 0.0
    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    "Jobs by the first bucket they fit in; the last has no bound."

    def add(self, seconds: float) -> None:
        self.total += seconds
        self.counts[next((at for at, bound in enumerate(BUCKETS) if seconds <= bound), len(BUCKETS))] += 1


class ProvisionerActivity:
    """`slots` jobs may run at once, one a daemon."""

    def __init__(self, slots: int = 1) -> None:
        self.slots = slots
        self.jobs: dict[str, str] = {}
        "Provisioner by the id of a running job."
        self.timings: dict[tuple[str, str], Timings] = {}
        "By provisioner and `success` or `failed`."

    @contextmanager
    def working(self, job_id: str, provisioner: str = "") -> Iterator[None]:
        """`job_id` runs for the length of the block."""
        self.jobs[job_id] = provisioner
        try:
            yield
        finally:
            self.jobs.pop(job_id, None)

    def took(self, provisioner: str, seconds: float, *, good: bool) -> None:
        """A job ended."""
        self.timings.setdefault((provisioner, "success" if good else "failed"), Timings()).add(seconds)
