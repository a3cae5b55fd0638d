"""Metrics of a workspace proxy for `--prometheus-enable`: requests, applications, terminals, relay, process.

Families that a server has too have the server's names, so that one query covers both; those of proxies only start with
`coderd_wsproxy_`. Labels are routes and a few methods, so that clients cannot create series.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coder.appproxy.metrics.metric_families import Declaration, Family, exposition
from coder.appproxy.metrics.open_links import OpenLinks, method_label
from coder.appproxy.metrics.process_metrics import PROCESS, RELAY, SCRAPES, set_process, set_relay
from coder.base.version import BUILD_VERSION

if TYPE_CHECKING:
    from coder.mesh.relay import DerpServer

BY_PATH = "/@{user}/{workspace}/apps/{app}/*"
BY_HOST = "{app host}/*"
"""Routes under which requests for applications are counted."""
ELSEWHERE = "/*"
"""Route under which unmatched requests are counted."""

FAMILIES: tuple[Declaration, ...] = (
    ("coderd_api_requests_processed_total", "counter", "code method path", "Answered requests."),
    ("coderd_api_concurrent_websockets", "gauge", "path", "Open terminals and relay connections."),
    ("coderd_api_websocket_durations_seconds", "histogram", "path", "Durations of terminals and relay connections."),
    ("coderd_wsproxy_app_sessions", "gauge", "", "App sessions: one per user, app and access method."),
    ("coderd_wsproxy_app_streams", "gauge", "", "Open app requests and terminals."),
    ("coderd_wsproxy_registered", "gauge", "", "Whether this process is registered at the server."),
    ("coderd_build_info", "gauge", "revision version", "The version of this proxy."),
    *RELAY,
    *PROCESS,
    *SCRAPES,
)


class ProxyMetrics:
    """Metric families of a proxy process."""

    def __init__(self) -> None:
        self.families = {name: Family(name, kind, text, tuple(labels.split())) for name, kind, labels, text in FAMILIES}
        self.links = OpenLinks(self.families)
        self.families["coderd_build_info"].set(1, BUILD_VERSION, BUILD_VERSION)

    def count(self, status: int, method: str, path: str) -> None:
        """Count an answered request; `path` is a route."""
        self.families["coderd_api_requests_processed_total"].add(str(status), method_label(method), path)

    def exposition(self, *, sessions: int, streams: int, is_registered: bool, relay: DerpServer | None) -> str:
        """Return the text of a scrape."""
        families = self.families
        families["coderd_api_concurrent_websockets"].replace(
            ((path,), count) for path, count in self.links.by_route().items()
        )
        families["coderd_wsproxy_app_sessions"].set(sessions)
        families["coderd_wsproxy_app_streams"].set(streams)
        families["coderd_wsproxy_registered"].set(is_registered)
        set_process(families)
        set_relay(families, relay)
        families["promhttp_metric_handler_requests_in_flight"].set(1)  # this request
        families["promhttp_metric_handler_requests_total"].add("200")
        return exposition(families.values())
