"""The page of metrics: equal to a recorded one as a set of families, labels and values.

The recording is from the renderer that this server had before it used a library; Prometheus reads both alike.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import cast

import pytest

from coder.appproxy.metrics.metric_families import PIECE, Family, Kind, exposition, exposition_pieces
from coder.coderd.config.settings import ServerConfig
from coder.coderd.services.foundation.context import Context
from coder.coderd.services.telemetry.metrics import Metrics
from coder.domain.agents.forwarded_families import KNOWN
from tests.kit.paths import DATA

RECORDED = DATA / "api" / "metrics_page.txt"
TEXTS = ("", "plain", 'a "quoted" \\ word\nand a line', "ünï ✓", "{a,b}=c", "trailing\\")
NUMBERS = (0, 1, 0.5, -3, 1e15, 2.0**64, 1234567.25, float("inf"))

Sample = tuple[str, frozenset[tuple[str, str]]]


def filled(family: Family, turn: int) -> Family:
    """Return the family with three series, of texts and numbers that need care."""
    for number in range(3):
        labels = [TEXTS[(turn + number * 5 + at) % len(TEXTS)] for at in range(len(family.labels))]
        value = NUMBERS[(turn + number) % len(NUMBERS)]
        if family.kind == "histogram":
            family.observe(min(abs(value), 1e15), *labels)
            family.observe(family.buckets[number], *labels)
        elif number == 0:
            family.add(*labels, by=value)
        else:
            family.set(value, *labels)
    return family


def page() -> str:
    """Return a page with every family of a server, and those that agents are known to send."""
    config = ServerConfig(prometheus_collect_agent_stats=True, prometheus_collect_db_metrics=True)
    own = Metrics(cast("Context", SimpleNamespace(config=config, process=SimpleNamespace(is_alone=True)))).families
    own.pop("coderd_build_info")  # has the version of this program
    recorded = set(re.findall(r"^# TYPE (\S+) ", RECORDED.read_text(), re.MULTILINE))
    own = {name: family for name, family in own.items() if name in recorded}  # later ones are not on the recorded page
    unfilled = ("coderd_license_errors", "coderd_api_total_user_count", "coderd_dbpurge_iteration_duration_seconds")
    families = [family if name in unfilled else filled(family, turn) for turn, (name, family) in enumerate(own.items())]
    families.append(Family("coder_without_labels_seconds", "histogram", 'A help with a "quote".'))
    forwarded = [Family(name, kind, "Reported by agents.", labels) for name, (kind, labels) in sorted(KNOWN.items())]
    return exposition([*families, *(filled(family, turn) for turn, family in enumerate(forwarded))])


def samples_of(text: str) -> Iterator[tuple[Sample, float]]:
    for line in re.findall(r"^[^#\n].*$", text, re.MULTILINE):
        name, labels, value = re.fullmatch(r"(\w+)(?:\{(.*)\})? (\S+)", line).groups()  # type: ignore[union-attr]
        pairs = re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"(?:,|$)', labels or "")
        assert ",".join(f'{key}="{text}"' for key, text in pairs) == (labels or ""), line
        yield (name, frozenset(pairs)), float(value)


@pytest.mark.parametrize("read", [lambda text: re.findall(r"^# (?:HELP|TYPE) .*$", text, re.MULTILINE), samples_of])
def test_page_equals_recorded(read: Callable[[str], Iterator[object]]) -> None:
    recorded, served = list(read(RECORDED.read_text())), list(read(page()))
    assert len(recorded) > 300
    assert sorted(map(repr, map(_ordered, served))) == sorted(map(repr, map(_ordered, recorded)))


def _ordered(item: object) -> object:
    if isinstance(item, tuple):
        (name, labels), value = item
        return name, sorted(labels), value
    return item


@pytest.mark.parametrize(("kind", "zero"), [("counter", 1), ("gauge", 1), ("histogram", 14)])
def test_family_without_labels_begins_with_zero(kind: Kind, zero: int) -> None:
    values = [value for _, value in samples_of(exposition([Family("coder_things_total", kind, "Things.")]))]
    assert values == [0] * zero


def test_replaced_series_are_gone() -> None:
    family = Family("coder_things", "gauge", "Things.", ("kind",))
    family.set(1, "old")
    family.replace([(("new",), 2)])
    assert dict(samples_of(exposition([family]))) == {("coder_things", frozenset({("kind", "new")})): 2}


def test_pieces_are_the_page_of_many_series() -> None:
    kinds: tuple[tuple[str, Kind], ...] = (("many", "gauge"), ("seen", "counter"), ("seen_total", "counter"))
    families = [filled(Family("duration", "histogram", "Help.", ("a",)), 1), Family("empty", "gauge", "None.", ("a",))]
    for name, kind in kinds:
        families.append(Family(name, kind, "Help.\nTwo lines.", ("a",)))
        families[-1].replace(((f"{text}{number}",), number) for number in range(PIECE) for text in ("# ", "b\n# ", "c"))
    pieces = list(exposition_pieces(families))
    assert "".join(pieces) == exposition(families)
    assert len(pieces) == 2 + 3 * len(kinds)
    assert max(piece.count("\n") for piece in pieces) <= PIECE + 2
