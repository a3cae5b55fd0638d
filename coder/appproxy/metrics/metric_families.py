"""Metrics in Prometheus' format: counters, gauges, histograms, and their text form (version 0.0.4).

No library: the usual one renames counters and adds series of its own; here every name is upstream's.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import msgspec

Kind = Literal["counter", "gauge", "histogram"]
Declaration = tuple[str, Kind, str, str]
"""Name, kind, labels separated by blanks, help."""
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Buckets of requests and loops, in seconds."""
BUILDS = (1.0, 10.0, 30.0, 60.0, 300.0, 600.0, 1800.0, 3600.0)
"""Buckets of jobs and builds, in seconds."""


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

    @property
    def value(self) -> float:
        """Return the value of a family without labels."""
        return self._values.get((), 0.0)

    def lines(self) -> Iterator[str]:
        yield f"# HELP {self.name} {self.help}"
        yield f"# TYPE {self.name} {self.kind}"
        if self.kind == "histogram":
            yield from self._histogram_lines()
            return
        if not self._values and not self.labels:
            yield f"{self.name} 0"
        for labels, value in sorted(self._values.items()):
            yield f"{self.name}{_braces(self.labels, labels)} {_number(value)}"

    def _histogram_lines(self) -> Iterator[str]:
        if not self.labels and () not in self._distributions:
            self._distributions[()] = _Distribution([0] * len(self.buckets))
        for labels, result in sorted(self._distributions.items(), key=lambda item: item[0]):
            below = 0
            for bound, count in zip(self.buckets, result.counts, strict=True):
                below += count
                yield f"{self.name}_bucket{_braces((*self.labels, 'le'), (*labels, _number(bound)))} {below}"
            yield f"{self.name}_bucket{_braces((*self.labels, 'le'), (*labels, '+Inf'))} {result.count}"
            yield f"{self.name}_sum{_braces(self.labels, labels)} {_number(result.total)}"
            yield f"{self.name}_count{_braces(self.labels, labels)} {result.count}"


def exposition(families: Iterable[Family]) -> str:
    """Return the text of a scrape, in the order of names."""
    ordered = sorted(families, key=lambda family: family.name)
    return "\n".join(line for family in ordered for line in family.lines()) + "\n"


def _braces(names: Sequence[str], values: Sequence[str]) -> str:
    if not names:
        return ""
    pairs = (f'{name}="{_escaped(value)}"' for name, value in zip(names, values, strict=True))
    return "{" + ",".join(pairs) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if float(value).is_integer() else repr(float(value))
