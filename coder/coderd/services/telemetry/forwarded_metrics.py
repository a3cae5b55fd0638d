"""Metrics that agents send with their statistics: kept for a while, and served beside the server's own families.

Whatever an agent counts is taken under the name it gives, as long as it is a name, is not one of ours and is not too
much: workspaces belong to their users, and so does what their agents say. What agents are known to send
(`coder/domain/agents/forwarded_families.py`) has one kind and one set of labels; of what else they send most users
decide, however many agents each has, and where there is not room for all everybody gets some: so none can hide what the
others say.
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
from coder.domain.agents.forwarded_families import KNOWN

PLACE = ("agent_name", "template_name", "username", "workspace_name")
"""Labels every series gets from us."""
KEPT_FOR = timedelta(minutes=2)
"""An agent reports every half minute; one that fell silent is not shown for ever."""
MAX_SERIES = 512
"""Of one agent (ours); the longest known report has a fifth of it."""
MAX_FAMILIES_OF_ONE = 64
"""Of one agent, besides those that are known."""
MAX_BYTES = 64 << 10
"""Names and labels of one agent (ours), twice: of what is known, where the longest report has a tenth of it, and of the
rest."""
MAX_BYTES_OF_USER = 1 << 20
"""Of the rest, from all agents of one user."""
MAX_FAMILIES = 1024
"""Of all agents, besides those that are known: each costs two lines of every scrape, whoever thought of its name."""
MAX_LABELS, MAX_TEXT = 16, 256

_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]{0,199}")
_HELP = "Reported by agents."

Labels = tuple[tuple[str, str], ...]
Form = tuple[Kind, tuple[str, ...]]
"""A family's kind and the names of its labels, in their order."""


@dataclass(frozen=True, slots=True)
class ForwardedSample:
    """One number as an agent sent it."""

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
    "Bytes of what is known, and of the rest."
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
    """The last report of each agent that is connected to this replica."""

    def __init__(self, own: Container[str] = ()) -> None:
        self._own = own
        "Names no agent may speak for: of every line of the server's own families."
        self._reports: dict[UUID, _Report] = {}
        "The oldest first."
        self._held: Counter[str] = Counter()
        "Bytes of what is not known, by user."

    def take(
        self, agent_id: UUID, place: tuple[str, str, str, str], samples: Iterable[ForwardedSample], now: datetime
    ) -> None:
        """Replaces what the agent said before. `place`: the values of `PLACE`. What breaks a rule is left out."""
        self._forget(now)
        self._drop(agent_id)
        report = _Report(place, now)
        room = min(MAX_BYTES, MAX_BYTES_OF_USER - self._held[report.user])
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
        self._held[report.user] += report.unknown_size

    def _drop(self, agent_id: UUID) -> None:
        report = self._reports.pop(agent_id, None)
        if report is not None:
            self._held[report.user] -= report.unknown_size
            if not self._held[report.user]:
                del self._held[report.user]

    def families(self, now: datetime) -> list[Family]:
        """What is shown now. A name has one kind and one set of labels."""
        self._forget(now)
        forms = self._forms()
        found: dict[str, Family] = {}
        for report, sample in self._samples():
            if forms.get(sample.name) == sample.form:
                family = found.get(sample.name)
                if family is None:
                    kind, labels = sample.form
                    family = found[sample.name] = Family(sample.name, kind, _HELP, (*labels, *PLACE))
                family.set(sample.value, *(value for _, value in sample.labels), *report.place)
        return list(found.values())

    def _forms(self) -> dict[str, Form]:
        """Of what is known, and of what most users say besides; of what equally many say, everybody's first before
        anybody's second."""
        by_user: dict[str, set[tuple[str, Form]]] = {}
        for report in self._reports.values():
            by_user.setdefault(report.user, set()).update(report.unknown())
        said = Counter(one for ones in by_user.values() for one in ones)
        turns: dict[tuple[str, Form], int] = {}
        for ones in by_user.values():
            for turn, one in enumerate(sorted(ones, key=lambda one: (-said[one], one))):
                turns[one] = min(turn, turns.get(one, turn))
        forms: dict[str, Form] = dict(KNOWN)
        for name, form in sorted(said, key=lambda one: (-said[one], turns[one], one)):
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
            if now - self._reports[oldest].at < KEPT_FOR:
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
