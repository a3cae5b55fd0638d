"""Metrics that agents send with their statistics: kept for a while and served with the server's own families.

An agent's metric keeps its name if that is valid, is not a name of the server and is within the limits: workspaces
belong to their users, and so do their metrics. A family that agents are known to send
(`coder/domain/agents/forwarded_families.py`) has one kind and one set of labels. For other families the majority of
users decides, independent of the number of their agents. If space is short, every user gets a share, so that no user
can displace another user's metrics.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from uuid import UUID

from coder.appproxy.metrics.metric_families import Family, Kind
from coder.domain.agents.forwarded_families import AGENT_LABELS, KNOWN

PLACE = AGENT_LABELS
EXPIRES_AFTER = timedelta(minutes=2)
"""Agents report every half minute; metrics of a silent agent expire."""
MAX_SERIES = 512
"""Series of one agent (ours); the longest known report has a fifth of it."""
MAX_FAMILIES_OF_ONE = 64
"""Families of one agent, besides the known ones."""
MAX_BYTES = 64 << 10
"""Bytes of names and labels of one agent (ours), counted twice: for known families, where the longest report has a
tenth of it, and for others.
"""
MAX_BYTES_OF_USER = 1 << 20
"""Bytes of unknown families, from all agents of one user."""
MAX_FAMILIES = 1024
"""Families of all agents, besides the known ones: each costs two lines of every scrape."""
MAX_LABELS, MAX_TEXT = 16, 256

_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]{0,199}")
_HELP = "Reported by agents."

Labels = tuple[tuple[str, str], ...]
Form = tuple[Kind, tuple[str, ...]]
"""Kind of a family, and the names of its labels in order."""


@dataclass(frozen=True, slots=True)
class ForwardedSample:
    """A sample as an agent sent it."""

    name: str
    kind: Kind
    value: float
    labels: Labels

    @property
    def form(self) -> Form:
        return self.kind, tuple(name for name, _ in self.labels)

    @property
    def size(self) -> int:
        """Bytes of its texts."""
        return len(self.name) + sum(len(name) + len(value.encode("utf-8", "replace")) for name, value in self.labels)


@dataclass(slots=True)
class _Report:
    place: tuple[str, str, str, str]
    at: datetime
    samples: list[ForwardedSample] = field(default_factory=list)

    known_size: int = 0
    "Bytes of known families, and of others."
    unknown_size: int = 0

    @property
    def user(self) -> str:
        return self.place[PLACE.index("username")]

    def unknown(self) -> set[tuple[str, Form]]:
        return {(sample.name, sample.form) for sample in self.samples if sample.name not in KNOWN}

    def add(self, sample: ForwardedSample) -> None:
        self.samples.append(sample)
        if sample.name in KNOWN:
            self.known_size += sample.size
        else:
            self.unknown_size += sample.size


class ForwardedMetrics:
    """Last report of each agent connected to this replica."""

    def __init__(self, own: Container[str] = (), by: Container[str] = PLACE) -> None:
        self._places = [number for number, label in enumerate(PLACE) if label in by]
        "Labels of `PLACE` that are served; series that differ in the others are added up."
        self._own = own
        "Names agents may not use: those of every line of the server's own families."
        self._reports: dict[UUID, _Report] = {}
        "Reports, oldest first."
        self._bytes_by_user: Counter[str] = Counter()
        "Bytes of unknown families by user."

    def take(
        self, agent_id: UUID, place: tuple[str, str, str, str], samples: Iterable[ForwardedSample], now: datetime
    ) -> None:
        """Replace an agent's report. `place` has the values of `PLACE`. Samples that break a rule are dropped."""
        self._forget(now)
        self._drop(agent_id)
        report = _Report(place, now)
        room = min(MAX_BYTES, MAX_BYTES_OF_USER - self._bytes_by_user[report.user])
        unknown: set[str] = set()
        for sample in samples:
            if len(report.samples) == MAX_SERIES:
                break
            if sample.name in self._own or not _is_sound(sample):
                continue
            ordered = replace(sample, labels=tuple(sorted(sample.labels)))
            if sample.name in KNOWN:
                if ordered.form == KNOWN[sample.name] and report.known_size + sample.size <= MAX_BYTES:
                    report.add(ordered)
            elif report.unknown_size + sample.size <= room and (
                sample.name in unknown or len(unknown) < MAX_FAMILIES_OF_ONE
            ):
                unknown.add(sample.name)
                report.add(ordered)
        self._reports[agent_id] = report
        self._bytes_by_user[report.user] += report.unknown_size

    def _drop(self, agent_id: UUID) -> None:
        report = self._reports.pop(agent_id, None)
        if report is not None:
            self._bytes_by_user[report.user] -= report.unknown_size
            if not self._bytes_by_user[report.user]:
                del self._bytes_by_user[report.user]

    def families(self, now: datetime) -> list[Family]:
        """Return the families to serve. A name has one kind and one set of labels."""
        self._forget(now)
        forms = self._forms()
        families: dict[str, Family] = {}
        for report, sample in self._samples():
            if forms.get(sample.name) == sample.form:
                family = families.get(sample.name)
                if family is None:
                    kind, labels = sample.form
                    places = (PLACE[number] for number in self._places)
                    family = families[sample.name] = Family(sample.name, kind, _HELP, (*labels, *places))
                places = (report.place[number] for number in self._places)
                family.add(*(value for _, value in sample.labels), *places, by=sample.value)
        return list(families.values())

    def _forms(self) -> dict[str, Form]:
        """Return the forms of known families, and of others the form of the most users. Ties: each user's first, before
        any second.
        """
        by_user: dict[str, set[tuple[str, Form]]] = {}
        for report in self._reports.values():
            by_user.setdefault(report.user, set()).update(report.unknown())
        users = Counter(named for named_forms in by_user.values() for named in named_forms)
        turns: dict[tuple[str, Form], int] = {}
        for named_forms in by_user.values():
            for turn, named in enumerate(sorted(named_forms, key=lambda named: (-users[named], named))):
                turns[named] = min(turn, turns.get(named, turn))
        forms: dict[str, Form] = dict(KNOWN)
        for name, form in sorted(users, key=lambda named: (-users[named], turns[named], named)):
            if name not in forms and len(forms) < len(KNOWN) + MAX_FAMILIES:
                forms[name] = form
        return forms

    def _samples(self) -> Iterator[tuple[_Report, ForwardedSample]]:
        for report in self._reports.values():
            for sample in report.samples:
                yield report, sample

    def _forget(self, now: datetime) -> None:
        while self._reports:
            oldest = next(iter(self._reports))
            if now - self._reports[oldest].at < EXPIRES_AFTER:
                break
            self._drop(oldest)


def _is_sound(sample: ForwardedSample) -> bool:
    names = [name for name, _ in sample.labels]
    return (
        _NAME.fullmatch(sample.name) is not None
        and math.isfinite(sample.value)
        and len(names) <= MAX_LABELS
        and len(set(names)) == len(names)
        and not set(names) & {*PLACE, "le", "quantile"}
        and all(_NAME.fullmatch(name) and not name.startswith("__") for name in names)
        and all(len(value) <= MAX_TEXT for _, value in sample.labels)
    )
