"""One scrape for all processes of a server."""

from __future__ import annotations

from coder.appproxy.metrics.metric_families import Family, exposition
from coder.coderd.services.telemetry.sibling_metrics import TAKEN_ONCE, ProcessMetrics, merged


def counter(name: str, value: float, *labels: str) -> Family:
    family = Family(name, "gauge", "help", tuple("abc"[: len(labels)]))
    family.set(value, *labels)
    return family


def text_of(own: Family, *elsewhere: Family) -> list[str]:
    states = [ProcessMetrics([family.state()], {}) for family in elsewhere]
    return [line.removesuffix(".0") for line in exposition(merged([own], states)).splitlines() if line[0] != "#"]


def test_single_process_is_unchanged() -> None:
    own = [counter("one", 1), counter("two", 2)]
    assert merged(own, []) == own


def test_counts_of_processes_are_added() -> None:
    assert text_of(counter("one", 1, "x"), counter("one", 2, "x"), counter("one", 5, "y")) == [
        'one{a="x"} 3',
        'one{a="y"} 5',
    ]


def test_histograms_are_added() -> None:
    families = [Family("took", "histogram", "help", buckets=(1.0, 2.0)) for _ in range(2)]
    families[0].observe(0.5)
    families[1].observe(1.5)
    families[1].observe(9)
    assert text_of(*families) == [
        'took_bucket{le="1"} 1',
        'took_bucket{le="2"} 2',
        'took_bucket{le="+Inf"} 3',
        "took_sum 11",
        "took_count 3",
    ]


def test_values_of_the_database_count_once() -> None:
    for name in sorted(TAKEN_ONCE):
        assert text_of(counter(name, 4), counter(name, 4)) == [f"{name} 4"]


def test_least_value_is_the_servers() -> None:
    assert text_of(counter("coder_pubsub_connected", 1), counter("coder_pubsub_connected", 0)) == [
        "coder_pubsub_connected 0"
    ]


def test_largest_value_is_the_servers() -> None:
    for name in ("coder_database_away_seconds", "coder_database_shortage"):
        assert text_of(counter(name, 0), counter(name, 1), counter(name, 0)) == [f"{name} 1"]


def test_family_of_a_sibling_alone_is_kept() -> None:
    assert text_of(counter("one", 1), counter("of_an_agent", 7)) == ["of_an_agent 7", "one 1"]


def test_siblings_clients_are_not_remote() -> None:
    kinds = ("_remote", "_local", "")
    own = [counter(f"coder_derp_server_clients{kind}", value) for kind, value in zip(kinds, (5, 2, 7), strict=True)]
    other = [counter(f"coder_derp_server_clients{kind}", value) for kind, value in zip(kinds, (3, 4, 7), strict=True)]
    results = {
        family.name: family.value for family in merged(own, [ProcessMetrics([one.state() for one in other], {})])
    }
    assert results == {
        "coder_derp_server_clients": 7,
        "coder_derp_server_clients_local": 6,
        "coder_derp_server_clients_remote": 1,
    }
