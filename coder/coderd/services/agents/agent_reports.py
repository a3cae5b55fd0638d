"""What agents report, stored and told on: lifecycle, startup, logs, metadata, app health, statistics.

Verbs of the Agent service that write; each takes the agent's place and the request message
(docs/protocol/agents.md#calls). Refusals are RpcErrors with upstream's words: some of them make a genuine agent
reconnect, see there.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from uuid import UUID

from google.protobuf.timestamp_pb2 import Timestamp

from coder.appproxy.metrics.metric_families import Kind
from coder.coderd.services.activity.deadlines import move_deadline
from coder.coderd.services.activity.last_use import LastUse
from coder.coderd.services.agents import ready_times
from coder.coderd.services.agents.agents import AgentLogLine, AppReport, report_app_status, store_logs
from coder.coderd.services.audit import connection_log
from coder.coderd.services.telemetry.forwarded_metrics import ForwardedSample
from coder.coderd.services.telemetry.metrics import Metrics
from coder.coderd.store.agents import agent_apps as app_store
from coder.coderd.store.agents import agent_metadata as metadata_store
from coder.coderd.store.agents import agent_scripts as script_store
from coder.coderd.store.agents import agent_stats as stats_store
from coder.coderd.store.agents import agents as agent_store
from coder.coderd.store.agents.agents import AgentPlace, LogSourceRow
from coder.coderd.store.templates import templates as template_store
from coder.coderd.store.workspaces.change_feed import Kind as Change
from coder.coderd.store.workspaces.change_feed import notify_change
from coder.rpc.errors import RpcError
from coder.rpc.proto import agent_pb2

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

EXTERNAL_SOURCE = UUID("3b579bf4-1ed8-4b99-87a8-e9a1e3410410")
"""Where lines without a source of their own go."""
MAX_VALUE = 2048
"""Bytes of a metadata value or error."""
MAX_KEYS = 6144
"""Bytes of all metadata keys of one request."""

_METRIC_KINDS: dict[int, Kind] = {
    agent_pb2.Stats.Metric.COUNTER: "counter",
    agent_pb2.Stats.Metric.GAUGE: "gauge",
}
_UNMEASURED = -1.0
_MOST = (1 << 63) - 1
_SEMVER = re.compile(r"v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?")
_LifecycleState = agent_pb2.Lifecycle.State


class AgentReports:
    """The reports of one connected agent."""

    def __init__(self, ctx: Context, place: AgentPlace) -> None:
        self._ctx = ctx
        self._place = place
        self._template_name: str | None = None

    async def lifecycle(self, lifecycle: agent_pb2.Lifecycle) -> None:
        """Raises RpcError for a state that is none."""
        if lifecycle.state not in _LifecycleState.values() or not lifecycle.state:
            raise RpcError(0, f"unknown lifecycle state: {lifecycle.state}")
        state = _LifecycleState.Name(lifecycle.state).lower()
        changed_at = time_of(lifecycle.changed_at)
        values: dict[str, Any] = {"lifecycle_state": state, "updated_at": self._ctx.clock.now()}
        if state == "starting":
            values |= {"started_at": changed_at, "ready_at": None}
        elif state in ready_times.ENDED:
            values |= {"ready_at": changed_at}
            took = await self._ctx.db.run(_end_start, self._place, values, changed_at)
            if took is not None:
                took.observe(self._ctx.part(Metrics))
            return
        await self._change("lifecycle", values)

    async def startup(self, startup: agent_pb2.Startup) -> None:
        """Raises RpcError for a version that is no semver with a leading v, or an unspecified subsystem."""
        if not _SEMVER.fullmatch(startup.version):
            raise RpcError(0, f'invalid agent semver version "{startup.version}"')
        if 0 in startup.subsystems:
            raise RpcError(0, 'parse agent subsystem: "SUBSYSTEM_UNSPECIFIED"')
        names = {agent_pb2.Startup.Subsystem.Name(value).lower() for value in startup.subsystems}
        values = {
            "version": startup.version,
            "expanded_directory": clean_text(startup.expanded_directory),
            "subsystems": sorted(names),
            "updated_at": self._ctx.clock.now(),
        }
        await self._change("startup", values)

    async def logs(self, source: bytes, lines: Sequence[agent_pb2.Log]) -> bool:
        """Stores a batch. False: the agent's log is full, now and for ever."""
        source_id = uuid_untrusted(source)
        if not lines:
            return True
        now = self._ctx.clock.now()
        rows = [AgentLogLine(now, line.output, _level(line.level)) for line in lines]
        stored = await self._ctx.db.run(_store_logs, self._place, source_id, rows, now)
        self._remember_logs(stored=stored)
        return stored

    def _remember_logs(self, *, stored: bool) -> None:
        """Our row of the agent is as old as the connection; what it says of logs decides who is told of the next."""
        agent = replace(self._place.agent, logs_length=max(1, self._place.agent.logs_length))
        self._place = replace(self._place, agent=agent if stored else replace(agent, logs_overflowed=True))

    async def metadata(self, results: Sequence[agent_pb2.Metadata]) -> None:
        """Stores what fits; raises RpcError afterwards when keys were dropped."""
        kept: dict[str, tuple[str, str]] = {}
        size = 0
        dropped = False
        for item in results:
            size += len(item.key.encode())
            if size > MAX_KEYS:
                dropped = True
                continue
            kept[clean_text(item.key)] = _trimmed_result(item.result)
        await self._ctx.db.run(_store_metadata, self._place, kept, self._ctx.clock.now())
        if dropped:
            raise RpcError(0, f"metadata keys of {size} bytes exceeded {MAX_KEYS} bytes")

    async def app_healths(self, updates: Sequence[agent_pb2.BatchUpdateAppHealthRequest.HealthUpdate]) -> None:
        """Raises RpcError for an app that is not this agent's or has no health check."""
        wanted: dict[UUID, str] = {}
        for update in updates:
            if update.health not in agent_pb2.AppHealth.values() or not update.health:
                raise RpcError(0, f"unknown health status: {update.health}")
            wanted[uuid_untrusted(update.id)] = agent_pb2.AppHealth.Name(update.health).lower()
        await self._ctx.db.run(_store_app_healths, self._place, wanted)

    async def stats(self, stats: agent_pb2.Stats) -> None:
        """One report; use of the workspace moves its deadline."""
        now = self._ctx.clock.now()
        if await self._ctx.db.run(_store_stats, self._place, stats, now):
            self._ctx.part(LastUse).note(self._place.workspace_id, now)
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
            self._ctx.part(Metrics).forwarded.take(self._place.agent.id, await self._names(), samples, now)

    async def _names(self) -> tuple[str, str, str, str]:
        """The agent's, its template's, its owner's and its workspace's."""
        if self._template_name is None:
            template = await self._ctx.db.read(template_store.get_template, self._place.template_id)
            self._template_name = template.name if template else ""
        return self._place.agent.name, self._template_name, self._place.owner_username, self._place.workspace_name

    async def script_completed(self, timing: agent_pb2.Timing) -> None:
        """Raises RpcError for a script that is not this agent's."""
        script_id = uuid_untrusted(timing.script_id)
        if not timing.HasField("start") or not timing.HasField("end"):
            raise RpcError(0, "script start and end time are required")
        if time_of(timing.start) > time_of(timing.end):
            raise RpcError(0, "script start time cannot be after end time")
        await self._ctx.db.run(_store_timing, self._place, script_id, timing)

    async def connection(self, connection_id: UUID, connection: agent_pb2.Connection) -> None:
        """A session to the agent began or ended."""
        kind = agent_pb2.Connection.Type.Name(connection.type).lower()
        at = time_of(connection.timestamp) if connection.HasField("timestamp") else self._ctx.clock.now()
        ip = "127.0.0.1" if connection.ip == "localhost" else address_untrusted(connection.ip)
        if connection.action == agent_pb2.Connection.CONNECT:
            await self._ctx.db.run(connection_log.record_began, self._place, connection_id, kind, ip, at)
            return
        reason = clean_text(connection.reason)
        code = connection.status_code
        await self._ctx.db.run(_record_ended, self._place, connection_id, kind, ip, at, code, reason)

    async def app_status(self, request: agent_pb2.UpdateAppStatusRequest) -> None:
        """Raises Invalid for a message over 160 characters or an app that is not there."""
        state = agent_pb2.UpdateAppStatusRequest.AppStatusState.Name(request.state).lower()
        report = AppReport(request.slug, state, request.message, request.uri)
        await report_app_status(self._ctx, self._place, report)

    async def _change(self, kind: Change, values: dict[str, Any]) -> None:
        await self._ctx.db.run(_update_agent, self._place, kind, values)


# ---- transactions


async def _update_agent(tx: Tx, place: AgentPlace, kind: Change, values: dict[str, Any]) -> None:
    await agent_store.update_agent(tx, place.agent.id, **values)
    await _tell(tx, place, kind)


async def _end_start(
    tx: Tx, place: AgentPlace, values: dict[str, Any], ended_at: datetime
) -> ready_times.ReadyTime | None:
    await _update_agent(tx, place, "lifecycle", values)
    return await ready_times.measure(tx, place, ended_at)


async def _store_logs(tx: Tx, place: AgentPlace, source_id: UUID, rows: list[AgentLogLine], now: datetime) -> bool:
    if source_id.int == 0:
        source_id = EXTERNAL_SOURCE
        source = LogSourceRow(place.agent.id, source_id, now, "External", "/emojis/1f310.png")
        await agent_store.add_log_source(tx, source)
    return await store_logs(tx, place, source_id, rows)


async def _store_metadata(tx: Tx, place: AgentPlace, results: dict[str, tuple[str, str]], now: datetime) -> None:
    await metadata_store.update_metadata(tx, place.agent.id, results, now)
    await _tell(tx, place, "metadata")


async def _store_app_healths(tx: Tx, place: AgentPlace, wanted: dict[UUID, str]) -> None:
    known = await app_store.list_app_owners(tx, list(wanted))
    for app_id, health in wanted.items():
        owner = known.get(app_id)
        if owner is None or owner[0] != place.agent.id:
            raise RpcError(0, f'workspace app ID "{app_id}" not found')
        if not owner[1]:
            raise RpcError(0, f'workspace app "{app_id}" does not have healthchecks enabled')
        await app_store.update_app_health(tx, app_id, health)
    await _tell(tx, place, "app_health")


async def _store_stats(tx: Tx, place: AgentPlace, stats: agent_pb2.Stats, now: datetime) -> bool:
    """Whether somebody uses the workspace."""
    sessions = _session_counts(stats)
    latency = stats.connection_median_latency_ms
    await stats_store.insert_stats(
        tx,
        created_at=now,
        user_id=place.owner_id,
        workspace_id=place.workspace_id,
        template_id=place.template_id,
        agent_id=place.agent.id,
        connections_by_proto={clean_text(name): count for name, count in stats.connections_by_proto.items()},
        connection_count=stats.connection_count,
        connection_median_latency_ms=latency if math.isfinite(latency) else _UNMEASURED,
        rx_packets=stats.rx_packets,
        rx_bytes=stats.rx_bytes,
        tx_packets=stats.tx_packets,
        tx_bytes=stats.tx_bytes,
        usage=False,
        **{f"session_count_{name}": count for name, count in sessions.items()},
    )
    is_used = stats.connection_count > 0 or any(sessions.values())
    if is_used:
        await move_deadline(tx, place.build_id, now)
        await _tell(tx, place, "stats")
    return is_used


async def _record_ended(
    tx: Tx, place: AgentPlace, connection_id: UUID, kind: str, ip: str, at: datetime, code: int, reason: str
) -> None:
    await connection_log.record_ended(tx, place, connection_id, kind, ip, at, code=code, reason=reason)


async def _store_timing(tx: Tx, place: AgentPlace, script_id: UUID, timing: agent_pb2.Timing) -> None:
    scripts = await script_store.list_scripts(tx, [place.agent.id])
    if script_id not in {script.id for script in scripts}:
        raise RpcError(0, f'script "{script_id}" is not one of this agent')
    await script_store.insert_script_timing(
        tx,
        script_id,
        started_at=time_of(timing.start),
        ended_at=time_of(timing.end),
        exit_code=timing.exit_code,
        stage=agent_pb2.Timing.Stage.Name(timing.stage).lower(),
        status=agent_pb2.Timing.Status.Name(timing.status).lower(),
    )
    await _tell(tx, place, "lifecycle")


async def _tell(tx: Tx, place: AgentPlace, kind: Change) -> None:
    await notify_change(tx, kind, owner_id=place.owner_id, workspace_id=place.workspace_id, agent_id=place.agent.id)


# ---- conversions


def uuid_untrusted(raw: bytes) -> UUID:
    """Raises RpcError for anything but 16 bytes."""
    if len(raw) != 16:
        raise RpcError(0, f"invalid UUID (got {len(raw)} bytes)")
    return UUID(bytes=raw)


def time_of(stamp: Timestamp) -> datetime:
    """A protobuf time; out-of-range ones become 1970, as missing ones are."""
    try:
        return stamp.ToDatetime(UTC)
    except (ValueError, OverflowError):
        return datetime(1970, 1, 1, tzinfo=UTC)


def address_untrusted(text: str) -> str:
    """An IP address in its usual form; empty for anything else."""
    try:
        return str(ip_address(text))
    except ValueError:
        return ""


def clean_text(text: str) -> str:
    """What Postgres can hold: no NUL (invalid UTF-8 does not pass protobuf)."""
    return text.replace("\x00", "❌")


def _level(level: int) -> str:
    names = {1: "trace", 2: "debug", 3: "info", 4: "warn", 5: "error"}
    return names.get(level, "info")


def _trimmed_result(result: agent_pb2.WorkspaceAgentMetadata.Result) -> tuple[str, str]:
    value, error = clean_text(result.value).strip(), clean_text(result.error)
    if len(value.encode()) > MAX_VALUE:
        error = f"value of {len(value.encode())} bytes exceeded {MAX_VALUE} bytes"
        value = value.encode()[:MAX_VALUE].decode(errors="ignore")
    if len(error.encode()) > MAX_VALUE:
        error = f"error of {len(error.encode())} bytes exceeded {MAX_VALUE} bytes"
    return value, error


def _session_counts(stats: agent_pb2.Stats) -> dict[str, int]:
    """The four kinds the database knows, from the map of newer agents or the old fields."""
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
        counts[kind] = min(counts[kind] + count, _MOST)
    return counts
