"""Readings of agents' machines, and the three health indicators (`domain/agents/health_indicators.py`)."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from coder.api.agents.agent_health import AgentLight, AgentLights, AgentVitals, LightValue
from coder.api.base.refusals import Invalid
from coder.base.json_types import JsonObject
from coder.base.version import BUILD_VERSION
from coder.coderd.services.agents.agent_access import load_agent
from coder.coderd.services.agents.report_batches import VitalsReport
from coder.coderd.store.agents import disconnects as store
from coder.domain.agents.agents import agent_status
from coder.domain.agents.flight_events import KINDS
from coder.domain.agents.health_indicators import (
    HealthIndicator,
    HostReading,
    PathReading,
    agent_indicator,
    host_indicator,
    path_indicator,
)

if TYPE_CHECKING:
    from uuid import UUID

    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.agents.agents import CurrentAgent
    from coder.coderd.store.agents.disconnects import VitalsRow
    from coder.coderd.store.engine.database import Tx
    from coder.domain.access.policy import Subject

MAX_EVENTS = 200
_NEW_PROCESS = {"stopped", "rebooted", "out_of_memory", "killed"}
_READINGS = ("disk_used", "disk_total", "memory_used", "memory_total", "memory_pressure", "load", "cores", "uptime_s")
_PEERS = ("direct", "relayed")


async def report(ctx: Context, current: CurrentAgent, vitals: AgentVitals) -> None:
    """Store a reading and the events since the last one. Raises Invalid."""
    if len(vitals.events) > MAX_EVENTS:
        raise Invalid("Too many events.", f"At most {MAX_EVENTS} in one report.")
    unknown = [event.kind for event in vitals.events if event.kind not in KINDS]
    if unknown:
        raise Invalid("Unknown kind of event.", f"Kinds are {', '.join(KINDS)}.")
    now = ctx.clock.now()
    reading: JsonObject = {name: _finite(getattr(vitals, name)) for name in (*_READINGS, *_PEERS)}
    reading["reboot_pending"] = vitals.reboot_pending
    reading["clock_off_s"] = round((vitals.sent_at - now).total_seconds(), 1)
    batch = ctx.services.api.report_batches.vitals
    await batch.add(VitalsReport(current, reading, vitals.events, vitals.sent_at, now))


def _finite(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) and 0 <= number < 2**63 else None


async def get_lights(ctx: Context, subject: Subject, agent_id: UUID) -> AgentLights:
    """Return the health indicators of a machine. Raises NotFound."""
    current = await load_agent(ctx, subject, agent_id)
    now = ctx.clock.now()
    row, restarts = await ctx.db.read(_load, current, now)
    agent = current.agent
    status = agent_status(
        now,
        created_at=agent.created_at,
        first_connected_at=agent.first_connected_at,
        last_connected_at=agent.last_connected_at,
        disconnected_at=agent.disconnected_at,
        connection_timeout_seconds=agent.connection_timeout_seconds,
    )
    connected = status == "connected"
    host = row.host or {}
    between = row.path or {}
    path = PathReading(
        between.get("round_trip_ms"), between.get("loss_percent"), host.get("direct"), host.get("relayed")
    )
    known = _host_reading(host) if row.host else None
    return AgentLights(
        host=_present(host_indicator(known, row.host_at, now), now),
        agent=_present(
            agent_indicator(
                version=agent.version,
                server_version=BUILD_VERSION,
                connected=connected,
                last_seen=agent.last_connected_at,
                restarts=restarts,
                now=now,
            ),
            now,
        ),
        path=_present(path_indicator(path, row.path_at, row.host_at, now, connected=connected), now),
    )


def _host_reading(stored: store.HostVitals) -> HostReading:
    return HostReading(
        disk_used=stored.get("disk_used"),
        disk_total=stored.get("disk_total"),
        memory_used=stored.get("memory_used"),
        memory_total=stored.get("memory_total"),
        memory_pressure=stored.get("memory_pressure"),
        load=stored.get("load"),
        cores=stored.get("cores"),
        uptime_s=stored.get("uptime_s"),
        clock_off_s=stored.get("clock_off_s"),
        reboot_pending=stored.get("reboot_pending"),
    )


async def _load(tx: Tx, current: CurrentAgent, now: datetime) -> tuple[VitalsRow, int]:
    row = await store.get_vitals(tx, current.agent.id)
    since = now - timedelta(days=1)
    return row, await store.count_causes(tx, current.workspace_id, current.agent.name, _NEW_PROCESS, since)


def _present(light: HealthIndicator, now: datetime) -> AgentLight:
    return AgentLight(
        status=light.standing,
        values=[
            LightValue(
                name=value.name,
                value=value.text,
                status=value.standing,
                at=value.at,
                age_seconds=max((now - value.at).total_seconds(), 0.0) if value.at else None,
            )
            for value in light.values
        ],
    )
