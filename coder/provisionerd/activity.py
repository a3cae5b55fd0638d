"""Activity of the daemons of one process: current jobs and durations of past jobs, for metrics and the overlay."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

BUCKETS = (1.0, 10.0, 30.0, 60.0, 300.0, 600.0, 1800.0, 3600.0)
"""Upper bounds of the histogram in seconds: an import of a small template takes one, a cluster an hour."""


@dataclass
class Timings:
    """Histogram of job durations."""

    total: float = 0.0
    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    "Number of jobs by the first bucket whose bound they do not exceed; the last has no bound."

    def add(self, seconds: float) -> None:
        self.total += seconds
        self.counts[next((at for at, bound in enumerate(BUCKETS) if seconds <= bound), len(BUCKETS))] += 1


class ProvisionerActivity:
    """Activity of one process, in which `slots` jobs may run concurrently, one for each daemon."""

    def __init__(self, slots: int = 1) -> None:
        self.slots = slots
        self.jobs: dict[str, str] = {}
        "Provisioner type by id of a running job."
        self.timings: dict[tuple[str, str], Timings] = {}
        "Durations by provisioner type and `success` or `failed`."

    @contextmanager
    def working(self, job_id: str, provisioner: str = "") -> Iterator[None]:
        """Register `job_id` as running for the duration of the block."""
        self.jobs[job_id] = provisioner
        try:
            yield
        finally:
            self.jobs.pop(job_id, None)

    def record(self, provisioner: str, seconds: float, *, succeeded: bool) -> None:
        """Record the duration of an ended job."""
        self.timings.setdefault((provisioner, "success" if succeeded else "failed"), Timings()).add(seconds)
