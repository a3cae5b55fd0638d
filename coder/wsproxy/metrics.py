"""What a workspace proxy counts, for `--prometheus-enable`: requests, applications, terminals, its relay, its process.

Families that a server has as well bear the server's names, so that one query sums both up; what only a proxy has begins
with `coderd_wsproxy_`. Labels are routes and a few methods: nothing that a stranger writes becomes a series.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coder.appproxy.metrics.metric_families import Declaration, Family, exposition
from coder.appproxy.metrics.open_links import OpenLinks, shown_method
from coder.appproxy.metrics.process_metrics import PROCESS, RELAY, SCRAPES, set_process, set_relay
from coder.base.version import BUILD_VERSION

if TYPE_CHECKING:
    from coder.mesh.relay import DerpServer

BY_PATH = "/@{user}/{workspace}/apps/{app}/*"
BY_HOST = "{app host}/*"
"""Where requests for applications are counted."""
ELSEWHERE = "/*"
"""Where those are counted that are nobody's."""

FAMILIES: tuple[Declaration, ...] = (
    ("coderd_api_requests_processed_total", "counter", "code method path", "Requests that were answered."),
    ("coderd_api_concurrent_websockets", "gauge", "path", "Open terminals and connections of the relay."),
    ("coderd_api_websocket_durations_seconds", "histogram", "path", "How long those were open."),
    ("coderd_wsproxy_app_sessions", "gauge", "", "Sessions in applications: one a person, application and way."),
    ("coderd_wsproxy_app_streams", "gauge", "", "Requests for applications being served, and open terminals."),
    ("coderd_wsproxy_registered", "gauge", "", "Whether the server knows of this process at the moment."),
    ("coderd_build_info", "gauge", "revision version", "The version of this proxy."),
    *RELAY,
    *PROCESS,
    *SCRAPES,
)


class ProxyMetrics:
    """The families of one proxy process."""

    def __init__(self) -> None:
        self.families = {name: Family(name, kind, text, tuple(labels.split())) for name, kind, labels, text in FAMILIES}
        self.links = OpenLinks(self.families)
        self.families["coderd_build_info"].set(1, BUILD_VERSION, BUILD_VERSION)

    def count(self, status: int, method: str, path: str) -> None:
        """One request that was answered; `path` is a route."""
        self.families["coderd_api_requests_processed_total"].add(str(status), shown_method(method), path)

    def exposition(self, *, sessions: int, streams: int, is_registered: bool, relay: DerpServer | None) -> str:
        """The text of one scrape."""
        found = self.families
        found["coderd_api_concurrent_websockets"].replace(
            ((path,), count) for path, count in self.links.by_route().items()
        )
        found["coderd_wsproxy_app_sessions"].set(sessions)
        found["coderd_wsproxy_app_streams"].set(streams)
        found["coderd_wsproxy_registered"].set(is_registered)
        set_process(found)
        set_relay(found, relay)
        found["promhttp_metric_handler_requests_in_flight"].set(1)  # this one
        found["promhttp_metric_handler_requests_total"].add("200")
        return exposition(found.values())
