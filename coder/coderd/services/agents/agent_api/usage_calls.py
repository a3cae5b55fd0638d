"""Calls by which an agent reports use of the workspace: statistics, and connections to the agent."""

from __future__ import annotations

import math
from datetime import datetime
from typing import TYPE_CHECKING, cast
from uuid import UUID

from google.protobuf.empty_pb2 import Empty

from coder.api.audit.audit import ConnectionType
from coder.appproxy.metrics.metric_families import Kind
from coder.coderd.services.agents.agent_api.call_table import CallTable, call
from coder.coderd.services.agents.agent_api.message_fields import address_untrusted, clean_text, time_of, uuid_untrusted
from coder.coderd.services.agents.report_batches import StatsReport
from coder.coderd.services.audit import connection_log
from coder.coderd.services.telemetry.forwarded_metrics import ForwardedSample
from coder.coderd.store.agents.agent_stats import AgentStats
from coder.coderd.store.agents.agents import CurrentAgent
from coder.coderd.store.templates import system_templates
from coder.rpc.errors import RpcError
from coder.rpc.proto import agent_pb2

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

_METRIC_KINDS: dict[int, Kind] = {
    agent_pb2.Stats.Metric.COUNTER: "counter",
    agent_pb2.Stats.Metric.GAUGE: "gauge",
}
_UNMEASURED = -1.0
_MAX_COUNT = (1 << 63) - 1


class UsageCalls:
    """Usage calls of an agent."""

    def __init__(self, ctx: Context, current: CurrentAgent) -> None:
        self._ctx = ctx
        self._current = current
        self._template_name: str | None = None

    def calls(self) -> CallTable:
        """Return the calls of this group by name."""
        return {
            "UpdateStats": call(self.update_stats, agent_pb2.UpdateStatsRequest),
            "ReportConnection": call(self.report_connection, agent_pb2.ReportConnectionRequest),
        }

    async def update_stats(self, request: agent_pb2.UpdateStatsRequest) -> agent_pb2.UpdateStatsResponse:
        if request.HasField("stats") and request.stats.ByteSize():
            await self._store_stats(request.stats)
        answer = agent_pb2.UpdateStatsResponse()
        answer.report_interval.FromTimedelta(self._ctx.config.agent_stats_refresh_interval)
        return answer

    async def report_connection(self, request: agent_pb2.ReportConnectionRequest) -> Empty:
        """Write the beginning or end of a session to the connection log."""
        connection = request.connection
        connection_id = uuid_untrusted(connection.id)
        if connection_id.int == 0:
            raise RpcError(0, "connection ID is empty")
        if not connection.action or not connection.type:
            raise RpcError(0, "connection action and type must be specified")
        await self._record(connection_id, connection)
        return Empty()

    async def _store_stats(self, stats: agent_pb2.Stats) -> None:
        """Store a report; usage of the workspace extends its deadline."""
        now = self._ctx.clock.now()
        report = stats_report(self._current, stats, now)
        await self._ctx.services.api.report_batches.stats.add(report)
        if report.is_used:
            self._ctx.services.last_use.note(self._current.workspace_id, now)
        if stats.metrics and self._ctx.config.prometheus_collect_agent_stats:
            samples = (
                ForwardedSample(
                    sample.name,
                    _METRIC_KINDS[sample.type],
                    sample.value,
                    tuple((label.name, label.value) for label in sample.labels),
                )
                for sample in stats.metrics
                if sample.type in _METRIC_KINDS
            )
            self._ctx.services.metrics.forwarded.take(self._current.agent.id, await self._names(), samples, now)

    async def _names(self) -> tuple[str, str, str, str]:
        """Return the names of the agent, its template, its owner and its workspace."""
        if self._template_name is None:
            template = await self._ctx.db.read(system_templates.get_template, self._current.template_id)
            self._template_name = template.name if template else ""
        return self._current.agent.name, self._template_name, self._current.owner_username, self._current.workspace_name

    async def _record(self, connection_id: UUID, connection: agent_pb2.Connection) -> None:
        """Store the beginning or end of a session to the agent."""
        kind = cast("ConnectionType", agent_pb2.Connection.Type.Name(connection.type).lower())
        at = time_of(connection.timestamp) if connection.HasField("timestamp") else self._ctx.clock.now()
        ip = "127.0.0.1" if connection.ip == "localhost" else address_untrusted(connection.ip)
        if connection.action == agent_pb2.Connection.CONNECT:
            await self._ctx.db.run(connection_log.record_connect, self._current, connection_id, kind, ip, at)
            return
        reason = clean_text(connection.reason)
        code = connection.status_code
        await self._ctx.db.run(_record_ended, self._current, connection_id, kind, ip, at, code, reason)


def stats_report(current: CurrentAgent, stats: agent_pb2.Stats, now: datetime) -> StatsReport:
    """Return the report to store; the workspace is in use while it has connections or sessions."""
    sessions = _session_counts(stats)
    latency = stats.connection_median_latency_ms
    values = AgentStats(
        created_at=now,
        user_id=current.owner_id,
        workspace_id=current.workspace_id,
        template_id=current.template_id,
        agent_id=current.agent.id,
        connections_by_proto={clean_text(name): count for name, count in stats.connections_by_proto.items()},
        connection_count=stats.connection_count,
        connection_median_latency_ms=latency if math.isfinite(latency) else _UNMEASURED,
        rx_packets=stats.rx_packets,
        rx_bytes=stats.rx_bytes,
        tx_packets=stats.tx_packets,
        tx_bytes=stats.tx_bytes,
        usage=False,
        session_count_vscode=sessions["vscode"],
        session_count_jetbrains=sessions["jetbrains"],
        session_count_reconnecting_pty=sessions["reconnecting_pty"],
        session_count_ssh=sessions["ssh"],
    )
    return StatsReport(current, values, stats.connection_count > 0 or any(sessions.values()), now)


async def _record_ended(
    tx: Tx,
    current: CurrentAgent,
    connection_id: UUID,
    kind: ConnectionType,
    ip: str,
    at: datetime,
    code: int,
    reason: str,
) -> None:
    await connection_log.record_disconnect(tx, current, connection_id, kind, ip, at, code=code, reason=reason)


def _session_counts(stats: agent_pb2.Stats) -> dict[str, int]:
    """Return counts of the four kinds in the database, from the map of newer agents or the older fields."""
    if not stats.session_counts:
        return {
            "vscode": stats.session_count_vscode,
            "jetbrains": stats.session_count_jetbrains,
            "reconnecting_pty": stats.session_count_reconnecting_pty,
            "ssh": stats.session_count_ssh,
        }
    counts = dict.fromkeys(("vscode", "jetbrains", "reconnecting_pty", "ssh"), 0)
    for name, count in stats.session_counts.items():
        kind = name.lower().replace("-", "_")
        kind = kind if kind in counts else "ssh"
        counts[kind] = min(counts[kind] + count, _MAX_COUNT)
    return counts
