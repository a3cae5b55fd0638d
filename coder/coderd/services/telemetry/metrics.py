"""The server's metrics under upstream's names: counted as events happen, or queried at a scrape.

Names and labels are those of a recorded v2.34. Metrics of Go's runtime, and of parts this server does not have, are
left out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TypedDict

import trio

from coder.appproxy.metrics.metric_families import BUILDS, PIECE, Declaration, Family, Kind, exposition_pieces
from coder.appproxy.metrics.open_links import OpenLinks
from coder.appproxy.metrics.process_metrics import PROCESS, RELAY, SCRAPES, set_process, set_relay
from coder.base.version import BUILD_VERSION
from coder.coderd.services.telemetry.fault_metrics import FAULTS, set_faults
from coder.coderd.services.telemetry.forwarded_metrics import ForwardedMetrics
from coder.coderd.services.telemetry.sibling_metrics import AgentNode, ProcessMetrics, ask_siblings, merged
from coder.coderd.store.engine.availability import SILENT_AFTER, DatabaseAwayError
from coder.coderd.store.engine.sql_types import SqlRow
from coder.coderd.store.telemetry import metrics as store
from coder.domain.agents.agents import agent_status
from coder.domain.provisioning.provisioners import STALE_AFTER

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

STATS_WINDOW = timedelta(minutes=1)
DATABASE_TIMEOUT = 5.0
"""Seconds for the database's answers to a scrape, which goes on without them; Prometheus waits 10 by default."""

_FAMILIES: tuple[Declaration, ...] = (
    ("coderd_api_requests_processed_total", "counter", "code method path", "Requests answered."),
    ("coderd_api_request_latencies_seconds", "histogram", "method path", "Duration of requests."),
    ("coderd_api_concurrent_requests", "gauge", "method path", "Requests being answered."),
    ("coderd_api_concurrent_websockets", "gauge", "path", "Open WebSockets."),
    ("coderd_api_websocket_durations_seconds", "histogram", "path", "Duration of WebSocket connections."),
    ("coderd_api_websocket_probes_total", "counter", "path result", "Pings sent over WebSockets."),
    ("coderd_api_active_users_duration_hour", "gauge", "", "Users seen within the last hour."),
    ("coderd_api_total_user_count", "gauge", "status", "Users by status."),
    ("coderd_api_workspace_latest_build", "gauge", "status", "Workspaces by the status of their latest build."),
    (
        "coderd_workspace_latest_build_status",
        "gauge",
        "status template_name template_version workspace_owner workspace_transition",
        "Workspaces by the status of their latest build, in detail.",
    ),
    (
        "coderd_agents_up",
        "gauge",
        "template_name template_version username workspace_name",
        "Agents that are expected to run.",
    ),
    (
        "coderd_agents_connections",
        "gauge",
        "agent_name lifecycle_state status tailnet_node username workspace_name",
        "Agents by the state of their connection.",
    ),
    ("coderd_agents_apps", "gauge", "agent_name app_name health username workspace_name", "Apps of agents."),
    (
        "coderd_agents_connection_latencies_seconds",
        "gauge",
        "agent_name derp_region preferred username workspace_name",
        "Latency between agents and relays.",
    ),
    (
        "coderd_agents_first_connection_seconds",
        "histogram",
        "agent_name template_name",
        "Time until agents connected for the first time.",
    ),
    ("coderd_prometheusmetrics_agents_execution_seconds", "histogram", "", "Duration of reading the agents."),
    ("coderd_build_info", "gauge", "revision version", "The version of this server."),
    ("coderd_provisionerd_num_daemons", "gauge", "", "Provisioner daemons seen recently."),
    ("coderd_provisionerd_jobs_current", "gauge", "provisioner", "Running jobs."),
    ("coderd_provisionerd_job_timings_seconds", "histogram", "provisioner status", "Duration of jobs."),
    (
        "coderd_provisionerd_workspace_build_timings_seconds",
        "histogram",
        "status template_name template_version workspace_transition",
        "Duration of builds.",
    ),
    (
        "coderd_workspace_builds_total",
        "counter",
        "status template_name template_version workspace_name workspace_owner workspace_transition",
        "Finished builds.",
    ),
    (
        "coderd_workspace_builds_enqueued_total",
        "counter",
        "build_reason provisioner_type status transition",
        "Requested builds: queued or refused.",
    ),
    (
        "coderd_template_workspace_build_duration_seconds",
        "histogram",
        "is_prebuild organization_name status template_name transition",
        "Duration of starts, from the request of the build until every agent has started.",
    ),
    (
        "coderd_provisioner_job_queue_wait_seconds",
        "histogram",
        "build_reason job_type provisioner_type transition",
        "Time jobs waited for a provisioner.",
    ),
    (
        "coderd_workspace_creation_total",
        "counter",
        "organization_name preset_name template_name",
        "Workspaces created for users.",
    ),
    (
        "coderd_workspace_creation_duration_seconds",
        "histogram",
        "organization_name preset_name template_name type",
        "Duration of a workspace's first build, from its request to its end.",
    ),
    (
        "coderd_proxyhealth_health_check_duration_seconds",
        "histogram",
        "",
        "Duration of the health checks of all proxies.",
    ),
    ("coder_pubsub_connected", "gauge", "", "Whether the server receives database notices."),
    ("coder_pubsub_current_events", "gauge", "", "Channels with listeners."),
    ("coder_pubsub_current_subscribers", "gauge", "", "Listeners."),
    ("coder_pubsub_disconnections_total", "counter", "", "Times the listening connection was lost."),
    ("coder_pubsub_messages_total", "counter", "size", "Database notices received."),
    ("coder_pubsub_received_bytes_total", "counter", "", "Bytes of database notices received."),
    ("coder_pubsub_subscribes_total", "counter", "success", "Subscriptions."),
    ("coderd_lifecycle_autobuild_execution_duration_seconds", "histogram", "", "Duration of a run of autobuild."),
    (
        "coderd_notifications_dispatch_attempts_total",
        "counter",
        "method notification_template_id result",
        "Attempts to send a message.",
    ),
    (
        "coderd_notifications_inflight_dispatches",
        "gauge",
        "method notification_template_id",
        "Messages being sent.",
    ),
    ("coderd_notifications_dispatcher_send_seconds", "histogram", "method", "Duration of sending a message."),
    ("coderd_notifications_queued_seconds", "histogram", "method", "Time messages waited in the queue."),
    ("coderd_dbpurge_iteration_duration_seconds", "histogram", "success", "Duration of a purge."),
    ("coderd_dbpurge_records_purged_total", "counter", "record_type", "Purged rows."),
    ("coderd_license_active_users", "gauge", "", "Active users."),
    ("coderd_license_errors", "gauge", "", "Licences are not needed: always 0."),
    ("coderd_license_warnings", "gauge", "", "Licences are not needed: always 0."),
    ("coderd_license_user_limit_enabled", "gauge", "", "There is no limit: always 0."),
    ("go_sql_max_open_connections", "gauge", "db_name", "Maximum number of connections to the database."),
    ("go_sql_open_connections", "gauge", "db_name", "Connections to the database, in use or idle."),
    ("go_sql_in_use_connections", "gauge", "db_name", "Database connections in use."),
    ("go_sql_idle_connections", "gauge", "db_name", "Idle database connections."),
    *RELAY,
    *PROCESS,
    *SCRAPES,
)
_PROCESSES: tuple[Declaration, ...] = (
    ("coder_server_processes", "gauge", "", "Processes of this server that are ready."),
    (
        "coder_server_process_restarts_total",
        "counter",
        "process cause",
        "Processes that were lost and replaced since the supervisor started.",
    ),
)
"""Ours, for a server of several processes."""
_DATABASE: tuple[Declaration, ...] = (
    ("coderd_db_query_latencies_seconds", "histogram", "query", "Duration of database work."),
    ("coderd_db_query_counts_total", "counter", "method query route", "Database work by the request that caused it."),
)
OF_THE_DATABASE = frozenset(
    {
        "coderd_agents_apps",
        "coderd_agents_connection_latencies_seconds",
        "coderd_agents_connections",
        "coderd_agents_up",
        "coderd_api_active_users_duration_hour",
        "coderd_api_total_user_count",
        "coderd_api_workspace_latest_build",
        "coderd_license_active_users",
        "coderd_provisionerd_jobs_current",
        "coderd_provisionerd_num_daemons",
        "coderd_workspace_latest_build_status",
    }
)
"""Families that a scrape lacks while the database does not answer, as well as `coderd_agentstats_…`: old values would
hide the outage, and zeros would be another fault."""
_STATS_LABELS = ("agent_name", "username", "workspace_name")
_STATS = (
    "connection_count",
    "connection_median_latency_seconds",
    "rx_bytes",
    "tx_bytes",
    "session_count_jetbrains",
    "session_count_reconnecting_pty",
    "session_count_ssh",
    "session_count_vscode",
)


class Metrics:
    """Every metric family of this process."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self.families: dict[str, Family] = {}
        for name, kind, labels, text in (*_FAMILIES, *FAULTS):
            self._declare(name, kind, labels, text)
        if ctx.config.prometheus_collect_agent_stats:
            self._stats_labels = [
                at for at, label in enumerate(_STATS_LABELS) if label in ctx.config.prometheus_aggregate_agent_stats_by
            ]
            labels = " ".join(_STATS_LABELS[at] for at in self._stats_labels)
            for name in _STATS:
                self._declare(f"coderd_agentstats_{name}", "gauge", labels, "Reported by agents recently.")
        if not ctx.process.is_alone:
            for name, kind, labels, text in _PROCESSES:
                self._declare(name, kind, labels, text)
        if ctx.config.prometheus_collect_db_metrics:
            for name, kind, labels, text in _DATABASE:
                self._declare(name, kind, labels, text)
        self.forwarded = ForwardedMetrics(
            own={name for family in self.families.values() for name in family.series_names},
            by=ctx.config.prometheus_aggregate_agent_stats_by,
        )
        self.families["coderd_build_info"].set(1, BUILD_VERSION, BUILD_VERSION)
        self.at_scrape: list[Callable[[Metrics], None]] = []
        """Parts that set their gauges at each scrape."""
        self.links = OpenLinks(self.families)
        self._lock = trio.Lock()

    def _declare(self, name: str, kind: Kind, labels: str, text: str) -> None:
        buckets = BUILDS if "timings" in name or "build_duration" in name else Family("", "gauge", "").buckets
        self.families[name] = Family(name, kind, text, tuple(labels.split()), buckets)

    def __getitem__(self, name: str) -> Family:
        return self.families[name]

    async def exposition(self) -> str:
        """Return the text of one scrape."""
        in_flight = self["promhttp_metric_handler_requests_in_flight"]
        in_flight.add()
        try:
            async with self._lock:
                elsewhere = await ask_siblings(self._ctx.process)
                has_answered = await self._collect(elsewhere)
                self["promhttp_metric_handler_requests_total"].add("200")
                families = merged(self._all_families(), elsewhere)
                shown = (family for family in families if has_answered or not _is_of_database(family.name))
                text = []
                for piece in exposition_pieces(shown):
                    text.append(piece)
                    await trio.lowlevel.checkpoint()
                return "".join(text)
        finally:
            in_flight.add(by=-1)

    async def of_this_process(self) -> ProcessMetrics:
        """Return what this process has counted, for the sibling that answers a scrape."""
        self._collect_here()
        coordinator = self._ctx.services.relay.coordinator
        agents = {}
        for count, peer in enumerate(coordinator.core.nodes(), 1):
            if count % PIECE == 0:
                await trio.lowlevel.checkpoint()
            number = coordinator.node_number(peer)
            if number is not None:
                agents[str(peer)] = AgentNode(number, dict(coordinator.latency_of(peer) or {}))
        return ProcessMetrics([family.state() for family in self._all_families()], agents)

    def _all_families(self) -> list[Family]:
        return [*self.families.values(), *self.forwarded.families(self._ctx.clock.now())]

    def _collect_here(self) -> None:
        """Set what this process knows by itself."""
        for ask in self.at_scrape:
            ask(self)
        self._set_notices()
        self._set_pool()
        set_faults(self._ctx, self.families)
        set_process(self.families)
        set_relay(self.families, self._ctx.services.relay.derp.server)
        if not self._ctx.process.is_alone:
            self["coder_server_process_restarts_total"].replace(
                (labels, float(number)) for labels, number in self._ctx.process.restarts.items()
            )
            self["coder_server_processes"].set(len(self._ctx.process.siblings) + 1)

    async def _collect(self, elsewhere: Sequence[ProcessMetrics]) -> bool:
        """Set all families; return whether the database has answered."""
        now = self._ctx.clock.now()
        figures = await self._ask_database(now)
        self._collect_here()
        if figures is not None:
            await self._set_figures(figures, elsewhere)
        return figures is not None

    async def _ask_database(self, now: datetime) -> _DatabaseFigures | None:
        """Return None where it does not answer in time."""
        if self._ctx.db.availability.away_for() > SILENT_AFTER:
            return None
        since = now - STATS_WINDOW if self._ctx.config.prometheus_collect_agent_stats else None
        with trio.move_on_after(DATABASE_TIMEOUT):
            try:
                return await self._ctx.db.read(_load, now, since)
            except DatabaseAwayError:
                pass
        return None

    async def _set_figures(self, values: _DatabaseFigures, elsewhere: Sequence[ProcessMetrics]) -> None:
        self["coderd_api_total_user_count"].replace(values["users"])
        self["coderd_api_active_users_duration_hour"].set(values["active"])
        self["coderd_license_active_users"].set(
            sum(value for labels, value in values["users"] if labels == ("active",))
        )
        self["coderd_workspace_latest_build_status"].replace(values["builds"])
        by_status: dict[tuple[str, ...], float] = {}
        for labels, value in values["builds"]:
            by_status[labels[:1]] = by_status.get(labels[:1], 0) + value
        self["coderd_api_workspace_latest_build"].replace(by_status.items())
        self["coderd_agents_apps"].replace(values["apps"])
        self["coderd_provisionerd_num_daemons"].set(values["daemons"])
        self["coderd_provisionerd_jobs_current"].replace(values["jobs"])
        began = self._ctx.clock.monotonic()
        nodes = {key: node for other in elsewhere for key, node in other.agents.items()}
        await self._set_agents(values["agents"], nodes)
        self["coderd_prometheusmetrics_agents_execution_seconds"].observe(
            values["agents_took"] + self._ctx.clock.monotonic() - began
        )
        if self._ctx.config.prometheus_collect_agent_stats:
            for column, name in enumerate(_STATS, 3):
                sums: dict[tuple[str, ...], float] = {}
                for row in values["stats"]:
                    labels = tuple(str(row[at]) for at in self._stats_labels)
                    sums[labels] = sums.get(labels, 0) + float(row[column])
                self[f"coderd_agentstats_{name}"].replace(sums.items())

    async def _set_agents(self, rows: Sequence[SqlRow], elsewhere: Mapping[str, AgentNode]) -> None:
        now = self._ctx.clock.now()
        up: dict[tuple[str, ...], float] = {}
        connections: dict[tuple[str, ...], float] = {}
        latencies: dict[tuple[str, ...], float] = {}
        coordinator = self._ctx.services.relay.coordinator
        for count, row in enumerate(rows, 1):
            if count % PIECE == 0:
                await trio.lowlevel.checkpoint()
            (
                agent_id,
                agent,
                user,
                workspace,
                template,
                version,
                lifecycle,
                first,
                last,
                disconnected,
                created,
                timeout,
            ) = row
            status = agent_status(
                now,
                created_at=created,
                first_connected_at=first,
                last_connected_at=last,
                disconnected_at=disconnected,
                connection_timeout_seconds=timeout,
            )
            key = (template, version, user, workspace)
            up[key] = up.get(key, 0) + 1
            node, remote = coordinator.node_number(agent_id), elsewhere.get(str(agent_id))
            if node is None and remote is not None:
                node = remote.number
            connections[agent, lifecycle, status, "unknown" if node is None else str(node), user, workspace] = 1
            latency = coordinator.latency_of(agent_id) or (remote.latencies if remote is not None else {})
            for region, measured in latency.items():
                preferred = str(measured.preferred).lower()
                latencies[agent, region, preferred, user, workspace] = measured.latency_ms / 1000
        self["coderd_agents_up"].replace(up.items())
        self["coderd_agents_connections"].replace(connections.items())
        self["coderd_agents_connection_latencies_seconds"].replace(latencies.items())

    def _set_pool(self) -> None:
        pool = self._ctx.db.pool()
        counts = {
            "max_open": pool.limit,
            "open": pool.in_use + pool.idle,
            "in_use": pool.in_use,
            "idle": pool.idle,
        }
        for name, value in counts.items():
            self[f"go_sql_{name}_connections"].set(value, "coder")

    def _set_notices(self) -> None:
        notices = self._ctx.db.notices()
        self["coder_pubsub_connected"].set(notices.is_connected)
        self["coder_pubsub_current_events"].set(notices.channels)
        self["coder_pubsub_current_subscribers"].set(notices.subscribers)
        self["coder_pubsub_disconnections_total"].set(notices.counters.losses)
        self["coder_pubsub_messages_total"].replace(
            ((size,), float(count))
            for size, count in (("normal", notices.counters.small), ("colossal", notices.counters.big))
        )
        self["coder_pubsub_received_bytes_total"].set(notices.counters.received_bytes)
        self["coder_pubsub_subscribes_total"].set(notices.counters.subscribed, "true")


class _DatabaseFigures(TypedDict):
    """What a scrape reads from the database."""

    agents: Sequence[SqlRow]
    agents_took: float
    "Seconds of reading the agents."
    users: store.Series
    active: int
    builds: store.Series
    apps: store.Series
    daemons: int
    jobs: store.Series
    stats: Sequence[SqlRow]


def _is_of_database(name: str) -> bool:
    return name in OF_THE_DATABASE or name.startswith("coderd_agentstats_")


async def _load(tx: Tx, now: datetime, stats_since: datetime | None) -> _DatabaseFigures:
    began = time.perf_counter()
    agents = await store.list_agents(tx)
    return {
        "agents": agents,
        "agents_took": time.perf_counter() - began,
        "users": await store.users_by_status(tx),
        "active": await store.count_active(tx, now - timedelta(hours=1)),
        "builds": await store.latest_builds(tx),
        "apps": await store.apps(tx),
        "daemons": await store.count_daemons(tx, now - STALE_AFTER),
        "jobs": await store.running_jobs(tx),
        "stats": [] if stats_since is None else await store.agent_stats(tx, stats_since),
    }
