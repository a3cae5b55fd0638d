"""What a proxy's scrape says, and what may become a series of it. Requests that are served: `test_end_to_end.py`."""

from __future__ import annotations

from typing import Any, cast

from coder.coderd.services.events.process_metrics import PROCESS, RELAY
from coder.mesh.keys import PrivateKey
from coder.mesh.relay import DerpServer
from coder.wsproxy.metrics import FAMILIES, ProxyMetrics


class FakeRegistration:
    problem = ""

    def explain_unwell(self) -> str:
        return self.problem


class FakeWorld:
    def __init__(self) -> None:
        self.registration = FakeRegistration()
        self.relay: DerpServer | None = None


class FakeAuthorizer:
    sessions, open_streams = 2, 3


def _scrape(metrics: ProxyMetrics, world: FakeWorld) -> list[str]:
    return metrics.exposition(cast("Any", world), cast("Any", FakeAuthorizer())).splitlines()


def test_every_family_is_there_and_moves_with_its_cause() -> None:
    metrics, world = ProxyMetrics(), FakeWorld()
    lines = _scrape(metrics, world)
    for name, kind, _, _ in FAMILIES:
        assert f"# TYPE {name} {kind}" in lines
    assert {name for name, *_ in (*RELAY, *PROCESS)} <= {name for name, *_ in FAMILIES}
    assert "coder_derp_server_accepts_total 0" in lines, "not registered yet: there is no relay"
    assert {"coderd_wsproxy_app_sessions 2", "coderd_wsproxy_app_streams 3", "coderd_wsproxy_registered 1"} <= {*lines}
    world.registration.problem = "the server was not reached for 91 s"
    world.relay = DerpServer(PrivateKey.generate(bytes))
    world.relay.counters.connections = 4
    with metrics.links.counted("GET", "/derp") as answered:
        answered(101)
        lines = _scrape(metrics, world)
        assert 'coderd_api_concurrent_websockets{path="/derp"} 1' in lines
    assert {"coderd_wsproxy_registered 0", "coder_derp_server_accepts_total 4"} <= {*lines}
    assert 'promhttp_metric_handler_requests_total{code="200"} 2' in lines
    assert not any("concurrent_websockets{" in line for line in _scrape(metrics, world))


def test_methods_that_are_made_up_are_one_series() -> None:
    metrics = ProxyMetrics()
    for number in range(100):
        metrics.count(404, f"M{number}", "/*")
        with metrics.links.counted(f"M{number}", "/derp") as answered:
            answered(405)
    counted = [line for line in _scrape(metrics, FakeWorld()) if line.startswith("coderd_api_requests_processed")]
    assert counted == [
        'coderd_api_requests_processed_total{code="404",method="other",path="/*"} 100',
        'coderd_api_requests_processed_total{code="405",method="other",path="/derp"} 100',
    ]
