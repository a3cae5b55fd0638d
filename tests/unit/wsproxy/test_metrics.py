"""Metrics of a proxy and their series. `test_end_to_end.py` covers served requests."""

from __future__ import annotations

from coder.appproxy.metrics.process_metrics import PROCESS, RELAY
from coder.mesh.keys import PrivateKey
from coder.mesh.relay import DerpServer
from coder.wsproxy.metrics import FAMILIES, ProxyMetrics


def _scrape(metrics: ProxyMetrics, *, is_registered: bool = True, relay: DerpServer | None = None) -> list[str]:
    return metrics.exposition(sessions=2, streams=3, is_registered=is_registered, relay=relay).splitlines()


def test_every_family_counts() -> None:
    metrics = ProxyMetrics()
    lines = _scrape(metrics)
    for name, kind, _, _ in FAMILIES:
        assert f"# TYPE {name} {kind}" in lines
    assert {name for name, *_ in (*RELAY, *PROCESS)} <= {name for name, *_ in FAMILIES}
    assert "coder_derp_server_accepts_total 0.0" in lines, "not registered yet: there is no relay"
    assert {"coderd_wsproxy_app_sessions 2.0", "coderd_wsproxy_app_streams 3.0", "coderd_wsproxy_registered 1.0"} <= {
        *lines
    }
    relay = DerpServer(PrivateKey.generate(bytes))
    relay.counters.connections = 4
    with metrics.links.counted("GET", "/derp") as answered:
        answered(101)
        lines = _scrape(metrics, is_registered=False, relay=relay)
        assert 'coderd_api_concurrent_websockets{path="/derp"} 1.0' in lines
    assert {"coderd_wsproxy_registered 0.0", "coder_derp_server_accepts_total 4.0"} <= {*lines}
    assert 'promhttp_metric_handler_requests_total{code="200"} 2.0' in lines
    assert not any("concurrent_websockets{" in line for line in _scrape(metrics))


def test_unknown_methods_share_series() -> None:
    metrics = ProxyMetrics()
    for number in range(100):
        metrics.count(404, f"M{number}", "/*")
        with metrics.links.counted(f"M{number}", "/derp") as answered:
            answered(405)
    counted = [line for line in _scrape(metrics) if line.startswith("coderd_api_requests_processed")]
    assert counted == [
        'coderd_api_requests_processed_total{code="404",method="other",path="/*"} 100.0',
        'coderd_api_requests_processed_total{code="405",method="other",path="/derp"} 100.0',
    ]
