"""Families of metrics: counters, gauges and histograms under upstream's names, and the page that Prometheus reads.

The library counts histograms and writes the text (format 0.0.4); see docs/decisions/metrics.md. Counters and gauges are
kept here, because most of them are totals that another part counts, and are set or replaced at a scrape.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from prometheus_client import Histogram, disable_created_metrics
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import Metric

Kind = Literal["counter", "gauge", "histogram"]
Declaration = tuple[str, Kind, str, str]
"""Name, kind, labels separated by blanks, help."""
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Buckets of requests and loops, in seconds."""
BUILDS = (1.0, 10.0, 30.0, 60.0, 300.0, 600.0, 1800.0, 3600.0)
"""Buckets of jobs and builds, in seconds."""
_TOTAL = "_total"
"""The library adds this suffix to every counter's name; upstream has counters without it."""

disable_created_metrics()  # type: ignore[no-untyped-call] # upstream has no series for the time of creation


class Family:
    """Name with its labelled series. Label values are in the order of `labels`."""

    def __init__(
        self,
        name: str,
        kind: Kind,
        help: str,
        labels: tuple[str, ...] = (),
        buckets: tuple[float, ...] = SECONDS,
    ) -> None:
        self.name, self.kind, self.help, self.labels, self.buckets = name, kind, help, labels, buckets
        self._values: dict[tuple[str, ...], float] = {}
        self._histogram = Histogram(name, help, labels, registry=None, buckets=buckets) if kind == "histogram" else None

    @property
    def series_names(self) -> tuple[str, ...]:
        """Return all names its lines have."""
        suffixes = ("", "_bucket", "_sum", "_count") if self.kind == "histogram" else ("",)
        return tuple(self.name + suffix for suffix in suffixes)

    def add(self, *labels: str, by: float = 1) -> None:
        self._values[labels] = self._values.get(labels, 0) + by

    def set(self, value: float, *labels: str) -> None:
        self._values[labels] = value

    def replace(self, values: Iterable[tuple[Sequence[str], float]]) -> None:
        """Replace all series; missing ones are removed."""
        self._values = {tuple(labels): value for labels, value in values}

    def observe(self, value: float, *labels: str) -> None:
        """Count a value of a histogram. Raises TypeError for another kind of family."""
        if self._histogram is None:
            raise TypeError(f"{self.name} is a {self.kind}")
        (self._histogram.labels(*labels) if labels else self._histogram).observe(value)

    def collect(self) -> Iterable[Metric]:
        """Return the family and its samples, as the library's collectors do."""
        if self._histogram is not None:
            return map(_with_upstream_bounds, self._histogram.collect())
        is_named_total = self.kind == "counter" and self.name.endswith(_TOTAL)
        kind = self.kind if is_named_total or self.kind != "counter" else "unknown"
        metric = Metric(self.name.removesuffix(_TOTAL) if is_named_total else self.name, self.help, kind)
        values = self._values if self._values or self.labels else {(): 0.0}
        for labels, value in sorted(values.items()):
            metric.add_sample(self.name, dict(zip(self.labels, labels, strict=True)), value)
        return (metric,)


def _with_upstream_bounds(metric: Metric) -> Metric:
    """Write the bounds of buckets as upstream does: Prometheus compares labels as texts, and the library writes 1.0."""
    for sample in metric.samples:
        if "le" in sample.labels:
            sample.labels["le"] = sample.labels["le"].removesuffix(".0")
    return metric


@dataclass(frozen=True, slots=True)
class _Page:
    """All families, in the order of names."""

    families: Sequence[Family]

    def collect(self) -> Iterable[Metric]:
        for family in sorted(self.families, key=lambda family: family.name):
            yield from family.collect()


def exposition(families: Iterable[Family]) -> str:
    """Return the text of a scrape, in the order of names."""
    page = _Page(tuple(families))
    text = generate_latest(page).decode()
    for family in page.families:
        if family.kind == "counter" and not family.name.endswith(_TOTAL):
            text = text.replace(f"# TYPE {family.name} untyped\n", f"# TYPE {family.name} counter\n", 1)
    return text
