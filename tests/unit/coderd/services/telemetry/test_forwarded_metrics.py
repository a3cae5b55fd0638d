"""Metrics of agents are served with the agent's labels for a while, and cannot replace the server's own."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from coder.appproxy.metrics.metric_families import exposition
from coder.base.config import Inputs
from coder.base.errors import CoderError
from coder.coderd.config.reading import server_config
from coder.coderd.services.telemetry import forwarded_metrics
from coder.coderd.services.telemetry.forwarded_metrics import (
    EXPIRES_AFTER,
    MAX_BYTES,
    MAX_BYTES_OF_USER,
    MAX_FAMILIES,
    MAX_FAMILIES_OF_ONE,
    MAX_LABELS,
    MAX_SERIES,
    MAX_TEXT,
    ForwardedMetrics,
    ForwardedSample,
)
from coder.coderd.store.telemetry import metrics as store
from coder.domain.agents.forwarded_families import KNOWN
from tests.kit.server.server_in_process import running_coderd

NOW = datetime(2026, 1, 2, tzinfo=UTC)
PLACE_LABELS = ("agent_name", "template_name", "username", "workspace_name")
PLACE = ("main", "docker", "ada", "dev")


def sample(name: str, value: float = 1, **labels: str) -> ForwardedSample:
    return ForwardedSample(name, "counter", value, tuple(labels.items()))


def shown(result: ForwardedMetrics, now: datetime = NOW) -> str:
    return exposition(result.families(now))


def test_sample_expires() -> None:
    result, agent = ForwardedMetrics(), uuid4()
    result.take(agent, PLACE, [sample("agent_scripts_executed_total", 4, success='a"b')], NOW)
    place = 'agent_name="main",template_name="docker",username="ada",workspace_name="dev"'
    assert f'agent_scripts_executed_total{{success="a\\"b",{place}}} 4' in shown(result)
    assert "# TYPE agent_scripts_executed_total counter" in shown(result)
    result.take(agent, PLACE, [sample("other_total", 5)], NOW)
    assert "agent_scripts_executed_total" not in shown(result), "a report replaces the one before"
    result.take(uuid4(), ("main", "docker", "bob", "dev"), [sample("other_total", 6)], NOW + timedelta(seconds=30))
    assert shown(result).count("\nother_total{") == 2
    assert shown(result, NOW + EXPIRES_AFTER).count("\nother_total{") == 1
    assert "other_total" not in shown(result, NOW + 2 * EXPIRES_AFTER)


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("coderd_api_total_user_count", {}),
        ("", {}),
        ("a b", {}),
        ("x\n# TYPE y counter", {}),
        ("a" * 300, {}),
        ("ok_total", {"agent_name": "other"}),
        ("ok_total", {"le": "1"}),
        ("ok_total", {"bad name": "x"}),
        ("ok_total", {"__name__": "x"}),
        ("ok_total", {"x": "y" * 1000}),
        ("ok_total", {f"label_{number}": "" for number in range(40)}),
    ],
)
def test_invalid_samples_are_dropped(name: str, labels: dict[str, str]) -> None:
    result = ForwardedMetrics(own={"coderd_api_total_user_count": None})
    result.take(uuid4(), PLACE, [sample(name, 1, **labels), sample("good_total")], NOW)
    assert [family.name for family in result.families(NOW)] == ["good_total"]


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan")])
def test_non_numbers_are_dropped(value: float) -> None:
    result = ForwardedMetrics()
    result.take(uuid4(), PLACE, [sample("x_total", value)], NOW)
    assert result.families(NOW) == []


def test_series_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    result = ForwardedMetrics()
    result.take(uuid4(), PLACE, [sample("x_total", n=str(number)) for number in range(MAX_SERIES + 5)], NOW)
    assert shown(result).count("\nx_total{") == MAX_SERIES
    many = [sample(f"x_{number}_total") for number in range(MAX_FAMILIES_OF_ONE + 5)]
    result.take(uuid4(), PLACE, [*many, sample("magicsock_send_udp")], NOW)
    names = {family.name for family in result.families(NOW)}
    assert len(names) == 2 + MAX_FAMILIES_OF_ONE and "magicsock_send_udp" in names
    monkeypatch.setattr(forwarded_metrics, "MAX_FAMILIES", 3)
    assert len(result.families(NOW)) == 3 + 1
    for number in range(2):
        result.take(uuid4(), ("main", "docker", str(number), "dev"), [sample("z_total")], NOW)
    assert "z_total" in {family.name for family in result.families(NOW)}, "the form of two users precedes that of one"


def _of(user: str, number: int = 0) -> tuple[str, str, str, str]:
    return ("main", "docker", user, f"dev-{number}")


def test_many_names_displace_no_user() -> None:
    """With as many agents as necessary, and names that sort first."""
    result = ForwardedMetrics()
    for agent in range(2 * MAX_FAMILIES // MAX_FAMILIES_OF_ONE):
        many = [sample(f"A_{agent}_{number}") for number in range(MAX_FAMILIES_OF_ONE)]
        result.take(uuid4(), _of("eve", agent), many, NOW)
    mine = [f"z_{number}_total" for number in range(MAX_FAMILIES_OF_ONE)]
    result.take(uuid4(), _of("ada"), [sample(name) for name in mine], NOW)
    names = {family.name for family in result.families(NOW)}
    assert len(names) == MAX_FAMILIES and names >= set(mine)


def test_many_agents_count_once() -> None:
    result = ForwardedMetrics()
    for agent in range(5):
        result.take(uuid4(), _of("eve", agent), [ForwardedSample("x_total", "gauge", 1, ())], NOW)
    for user in ("ada", "bob"):
        result.take(uuid4(), _of(user), [sample("x_total", 5)], NOW)
    assert [family.kind for family in result.families(NOW)] == ["counter"]


_LABELLED = [name for name, (kind, labels) in KNOWN.items() if kind == "counter" and labels][:1]


def _texts(number: int) -> dict[str, Any]:
    return dict.fromkeys(KNOWN[_LABELLED[0]][1], f"{number:>{MAX_TEXT}}")


def _kept(result: ForwardedMetrics) -> int:
    return sum(item.size for report in result._reports.values() for item in report.samples)


def test_report_bytes_are_limited() -> None:
    result, agent = ForwardedMetrics(), uuid4()
    labels: dict[str, Any] = {f"{'a' * 190}_{number}": "\U0001f4a3" * MAX_TEXT for number in range(MAX_LABELS)}
    large = [sample(f"x_{number}_total", number, **labels) for number in range(MAX_SERIES - 1)]
    result.take(agent, PLACE, [*large, sample("small_total")], NOW)
    assert MAX_BYTES // 2 < _kept(result) <= MAX_BYTES
    assert "small_total" in {family.name for family in result.families(NOW)}, "samples within the limit are kept"
    result.take(
        agent, PLACE, [sample(name, **_texts(number)) for number in range(MAX_SERIES) for name in _LABELLED], NOW
    )
    assert MAX_BYTES // 2 < _kept(result) <= MAX_BYTES


def test_user_bytes_are_limited() -> None:
    """Of unknown families; known families, and those of other users, stay."""
    result, agents = ForwardedMetrics(), [uuid4() for _ in range(2 * MAX_BYTES_OF_USER // MAX_BYTES)]
    [known, *_] = (name for name, (kind, labels) in KNOWN.items() if (kind, labels) == ("counter", ()))
    texts: dict[str, Any] = {f"label_{number}": "y" * MAX_TEXT for number in range(8)}
    large = [sample("x_total", **texts, n=str(number)) for number in range(30)]
    for _ in range(2):
        for number, agent in enumerate(agents):
            result.take(agent, _of("eve", number), [*large, sample(known)], NOW)
    result.take(uuid4(), _of("ada"), [*large, sample(known)], NOW)
    assert MAX_BYTES_OF_USER < _kept(result) < MAX_BYTES_OF_USER + 2 * MAX_BYTES
    assert shown(result).count(f"\n{known}{{") == len(agents) + 1
    assert shown(result).count('username="ada"') == len(large) + 1
    assert result.families(NOW + EXPIRES_AFTER) == [] and not result._bytes_by_user


def test_expiry_without_scrape() -> None:
    result, late = ForwardedMetrics(), uuid4()
    result.take(late, PLACE, [sample("x_total")], NOW)
    for number in range(50):
        result.take(uuid4(), PLACE, [sample("x_total")], NOW + timedelta(seconds=number))
    result.take(late, PLACE, [sample("x_total")], NOW + EXPIRES_AFTER)
    assert len(result._reports) == 50, "49 came after the first second"
    result.take(late, PLACE, [sample("x_total")], NOW + 2 * EXPIRES_AFTER)
    assert list(result._reports) == [late]


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_known_family_keeps_form(name: str) -> None:
    """Independent of the first agent that reports it, and of the number of agents that disagree."""
    kind, labels = KNOWN[name]
    other: Any = "gauge" if kind == "counter" else "counter"
    given = tuple((label, "x") for label in reversed(labels))
    result = ForwardedMetrics()
    for number in range(3):
        wrong = [ForwardedSample(name, other, 1, given), ForwardedSample(name, kind, 1, (*given, ("more", "x")))]
        result.take(uuid4(), ("main", "docker", str(number), "dev"), wrong, NOW)
    assert result.families(NOW) == []
    result.take(uuid4(), PLACE, [ForwardedSample(name, kind, 7, given)], NOW)
    assert [(item.kind, item.labels[: len(labels)]) for item in result.families(NOW)] == [(kind, labels)]


async def test_server_families_are_reserved() -> None:
    """The names of a histogram's lines are not family names."""
    async with running_coderd(prometheus_collect_agent_stats=True) as world:
        metrics = world.ctx.services.metrics
        for family in metrics.families.values():
            if family.kind == "histogram":
                family.observe(1, *family.labels)
        lines = [line for family in metrics.families.values() for line in family.lines() if not line.startswith("#")]
        names = {re.split("[{ ]", line)[0] for line in lines}
        assert "coderd_api_request_latencies_seconds_sum" in names
        now = world.ctx.clock.now()
        metrics.forwarded.take(uuid4(), PLACE, [sample(name) for name in names] + [sample("good_total")], now)
        assert [family.name for family in metrics.forwarded.families(now)] == ["good_total"]


def test_family_has_one_form() -> None:
    result = ForwardedMetrics()
    result.take(uuid4(), PLACE, [sample("x_total", 1, a="1")], NOW)
    other: list[Any] = [sample("x_total", 2, b="1"), ForwardedSample("x_total", "gauge", 3, (("a", "2"),))]
    result.take(uuid4(), PLACE, [*other, sample("x_total", 4, a="2")], NOW)
    assert shown(result).count("\nx_total{") == 2 and "} 4" in shown(result)


def test_majority_of_users_decides() -> None:
    result, places = ForwardedMetrics(), [("main", "docker", name, "dev") for name in ("eve", "ada", "bob")]
    result.take(uuid4(), places[0], [ForwardedSample("x_total", "gauge", 1, (("b", ""),))], NOW)
    for place in places[1:]:
        result.take(uuid4(), place, [sample("x_total", 5, b="", a="")], NOW)
    assert shown(result).count("\nx_total{") == 2 and 'username="eve"' not in shown(result)


def test_series_are_added_up_by_labels() -> None:
    result = ForwardedMetrics(by=("username",))
    for number, place in enumerate((("a", "t", "ada", "w"), ("b", "t", "ada", "v"), ("a", "t", "bob", "w")), 1):
        result.take(uuid4(), place, [sample("agent_x", number, kind="k")], NOW)
    (family,) = result.families(NOW)
    assert list(family.lines())[2:] == [
        'agent_x{kind="k",username="ada"} 3',
        'agent_x{kind="k",username="bob"} 3',
    ]
    assert ForwardedMetrics(by=()).families(NOW) == []


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (
            PLACE_LABELS,
            [
                '{agent_name="a",username="ada",workspace_name="v"} 2',
                '{agent_name="a",username="ada",workspace_name="w"} 1',
            ],
        ),
        (("username",), ['{username="ada"} 3']),
        (("agent_name", "template_name"), ['{agent_name="a"} 3']),
        ((), [" 3"]),
    ],
)
async def test_agent_statistics_are_added_up(
    monkeypatch: pytest.MonkeyPatch, labels: tuple[str, ...], expected: list[str]
) -> None:
    async def reports(_tx: object, _since: datetime) -> list[Any]:
        return [("a", "ada", "w", *[1] * 8), ("a", "ada", "v", *[2] * 8)]

    monkeypatch.setattr(store, "agent_stats", reports)
    async with running_coderd(prometheus_collect_agent_stats=True, prometheus_aggregate_agent_stats_by=labels) as world:
        text = await world.ctx.services.metrics.exposition()
        name = "coderd_agentstats_rx_bytes"
        assert [line for line in text.splitlines() if line.startswith(name)] == [name + line for line in expected]


def test_unknown_aggregation_label_is_refused() -> None:
    with pytest.raises(CoderError, match="no label of agent statistics"):
        server_config(Inputs(flags={"prometheus-aggregate-agent-stats-by": "username,color"}), Path("/nowhere"))
