"""Families of metrics: counters, gauges and histograms under upstream's names, and the page that Prometheus reads.

The library writes the text (format 0.0.4); see docs/decisions/metrics.md. The counts are kept here, because most of
them are totals that another part counts, and because processes of one server add theirs up.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import msgspec
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import Metric

Kind = Literal["counter", "gauge", "histogram"]
Declaration = tuple[str, Kind, str, str]
"""Name, kind, labels separated by blanks, help."""
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Buckets of requests and loops, in seconds."""
BUILDS = (1.0, 10.0, 30.0, 60.0, 300.0, 600.0, 1800.0, 3600.0)
"""Buckets of jobs and builds, in seconds."""
PIECE = 500
"""Series (ours) of a family that are computed or written at a time: ten thousand take 70 ms."""
_TOTAL = "_total"
"""The library adds this suffix to every counter's name; upstream has counters without it."""


@dataclass(slots=True)
class _Distribution:
    counts: list[int]
    total: float = 0.0
    count: int = 0


class FamilyState(msgspec.Struct):
    """Declaration and counts of a family."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...]
    buckets: tuple[float, ...]
    values: list[tuple[tuple[str, ...], float]]
    distributions: list[tuple[tuple[str, ...], list[int], float, int]]
    "Labels, counts by bucket, sum, number."


@dataclass(slots=True)
class Family:
    """Name with its labelled series. Label values are in the order of `labels`."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = SECONDS
    _values: dict[tuple[str, ...], float] = field(default_factory=dict)
    _distributions: dict[tuple[str, ...], _Distribution] = field(default_factory=dict)

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
        result = self._distributions.get(labels)
        if result is None:
            result = self._distributions[labels] = _Distribution([0] * len(self.buckets))
        bucket = bisect.bisect_left(self.buckets, value)
        if bucket < len(result.counts):
            result.counts[bucket] += 1
        result.total += value
        result.count += 1

    def state(self) -> FamilyState:
        """Return everything that the family has counted, for another process."""
        return FamilyState(
            self.name,
            self.kind,
            self.help,
            self.labels,
            self.buckets,
            [(labels, float(value)) for labels, value in self._values.items()],
            [(labels, item.counts, item.total, item.count) for labels, item in self._distributions.items()],
        )

    @classmethod
    def sum_of(cls, states: Sequence[FamilyState]) -> Family:
        """Return the family that has counted what all of these have together; its declaration is the first one's."""
        first = states[0]
        family = cls(first.name, first.kind, first.help, first.labels, first.buckets)
        for state in states:
            for labels, value in state.values:
                family.add(*labels, by=value)
            for labels, counts, total, count in state.distributions:
                result = family._distributions.setdefault(labels, _Distribution([0] * len(first.buckets)))
                result.counts = [one + other for one, other in zip(result.counts, counts, strict=False)]
                result.total += total
                result.count += count
        return family

    def parts(self, size: int) -> Iterator[Family]:
        """Yield the family in parts of so many series, in order; a histogram as a whole."""
        if self.kind == "histogram" or len(self._values) <= size:
            yield self
            return
        values = sorted(self._values.items())
        for start in range(0, len(values), size):
            part = Family(self.name, self.kind, self.help, self.labels, self.buckets)
            part._values = dict(values[start : start + size])
            yield part

    @property
    def value(self) -> float:
        """Return the value of a family without labels."""
        return self._values.get((), 0.0)

    def collect(self) -> Metric:
        """Return the family and its samples."""
        if self.kind == "histogram":
            return self._collect_histogram()
        is_named_total = self.kind == "counter" and self.name.endswith(_TOTAL)
        kind = self.kind if is_named_total or self.kind != "counter" else "unknown"
        metric = Metric(self.name.removesuffix(_TOTAL) if is_named_total else self.name, self.help, kind)
        values = self._values if self._values or self.labels else {(): 0.0}
        for labels, value in sorted(values.items()):
            metric.add_sample(self.name, dict(zip(self.labels, labels, strict=True)), value)
        return metric

    def _collect_histogram(self) -> Metric:
        if not self.labels and () not in self._distributions:
            self._distributions[()] = _Distribution([0] * len(self.buckets))
        metric = Metric(self.name, self.help, self.kind)
        for labels, result in sorted(self._distributions.items(), key=lambda item: item[0]):
            named, below = dict(zip(self.labels, labels, strict=True)), 0
            for bound, count in zip(self.buckets, result.counts, strict=True):
                below += count
                metric.add_sample(f"{self.name}_bucket", {**named, "le": _bound(bound)}, below)
            metric.add_sample(f"{self.name}_bucket", {**named, "le": "+Inf"}, result.count)
            metric.add_sample(f"{self.name}_sum", named, result.total)
            metric.add_sample(f"{self.name}_count", named, result.count)
        return metric


@dataclass(frozen=True, slots=True)
class _Page:
    """All families, in the order of names."""

    families: Sequence[Family]

    def collect(self) -> Iterable[Metric]:
        return (family.collect() for family in sorted(self.families, key=lambda family: family.name))


def exposition(families: Iterable[Family]) -> str:
    """Return the text of a scrape, in the order of names."""
    page = _Page(tuple(families))
    text = generate_latest(page).decode()
    for family in page.families:
        if family.kind == "counter" and not family.name.endswith(_TOTAL):
            text = text.replace(f"# TYPE {family.name} untyped\n", f"# TYPE {family.name} counter\n", 1)
    return text


def exposition_pieces(families: Iterable[Family]) -> Iterator[str]:
    """Yield the text of `exposition` in pieces, between which other work may be done."""
    for family in sorted(families, key=lambda family: family.name):
        for number, part in enumerate(family.parts(PIECE)):
            text = exposition([part])
            yield text if not number else _without_head(text)


def _without_head(text: str) -> str:
    """Return the samples without the lines about their family."""
    start = 0
    while text.startswith("# ", start):
        start = text.index("\n", start) + 1
    return text[start:]


def _bound(value: float) -> str:
    """Write a bucket's bound as upstream does: Prometheus compares labels as texts, and the library writes 1.0."""
    return repr(float(value)).removesuffix(".0")
