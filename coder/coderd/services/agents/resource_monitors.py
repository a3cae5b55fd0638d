"""Monitoring of memory and volumes by agents' readings: their state is stored, and owners are notified of problems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from coder.base.json_types import Json, as_object
from coder.coderd.services.notifications import notifications
from coder.coderd.services.notifications.notifications import Notification, NotificationSite
from coder.coderd.store.agents import resource_monitors as store
from coder.coderd.store.agents.resource_monitors import MonitorRow
from coder.domain.agents.resource_monitors import QUIET, Reading, State, next_state, reading
from coder.domain.notifications.notification_templates import WORKSPACE_OUT_OF_DISK, WORKSPACE_OUT_OF_MEMORY
from coder.rpc.proto import agent_pb2

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.agents.agents import CurrentAgent
    from coder.coderd.store.engine.database import Tx

Datapoint = agent_pb2.PushResourcesMonitoringUsageRequest.Datapoint
MEMORY = ""
"""Path that stands for the memory."""
MAX_DATAPOINTS = 60
"""Readings of three windows; a genuine agent sends fewer."""
MAX_VOLUMES = 256
"""Volumes of a reading: agents read the volumes of the template, but a message has room for half a million."""


async def take_readings(ctx: Context, current: CurrentAgent, datapoints: Sequence[Datapoint]) -> None:
    """Store a window of an agent's readings, and notify its owner of problems."""
    thresholds = watched(current.agent.resources_monitoring or {})
    if thresholds:
        readings = readings_of(thresholds, datapoints[-MAX_DATAPOINTS:])
        await ctx.db.run(_take, current, thresholds, readings, notifications.site_of(ctx), ctx.clock.now())


def watched(monitoring: Mapping[str, Json]) -> dict[str, int]:
    """Return thresholds in percent by path, for the monitors that the template enables."""
    thresholds: dict[str, int] = {}
    memory, volumes = monitoring.get("memory"), monitoring.get("volumes")
    if isinstance(memory, dict) and memory.get("enabled"):
        thresholds[MEMORY] = _percent(memory)
    for volume in volumes if isinstance(volumes, list) else ():
        monitor = as_object(volume)
        if monitor.get("enabled") and monitor.get("path"):
            thresholds[str(monitor["path"])] = _percent(monitor)
    return thresholds


def _percent(monitor: Mapping[str, Json]) -> int:
    threshold = monitor.get("threshold")
    return int(threshold) if isinstance(threshold, int | float | str) and threshold else 0


def readings_of(thresholds: Mapping[str, int], datapoints: Sequence[Datapoint]) -> dict[str, list[Reading]]:
    """Return the readings of each path; a value that the agent could not read is unknown."""
    readings: dict[str, list[Reading]] = {path: [] for path in thresholds}
    for datapoint in datapoints:
        # The first of equal paths counts.
        volumes = {volume.volume: volume for volume in reversed(datapoint.volumes[:MAX_VOLUMES])}
        for path, threshold in thresholds.items():
            usage = datapoint.memory if path == MEMORY else volumes.get(path)
            readings[path].append("unknown" if usage is None else reading(usage.used, usage.total, threshold))
    return readings


async def _take(
    tx: Tx,
    current: CurrentAgent,
    thresholds: Mapping[str, int],
    readings: Mapping[str, Sequence[Reading]],
    site: NotificationSite,
    now: datetime,
) -> None:
    stored = await store.list_monitors(tx, current.agent.id)
    short: list[str] = []
    for path in thresholds:
        before = stored.get(path) or MonitorRow(path, "OK", None)
        state: State = "NOK" if before.state == "NOK" else "OK"
        after = next_state(state, readings[path])
        notifies = after == "NOK" and state == "OK" and (before.quiet_until is None or before.quiet_until <= now)
        if notifies:
            short.append(path)
        if notifies or after != state:
            await store.put_monitor(
                tx, current.agent.id, MonitorRow(path, after, now + QUIET if notifies else before.quiet_until)
            )
    for notice in _notices(current, thresholds, short):
        await notifications.enqueue(tx, site, notice, now)


def _notices(current: CurrentAgent, thresholds: Mapping[str, int], short: Sequence[str]) -> list[Notification]:
    about: tuple[UUID, ...] = (current.workspace_id, current.owner_id, current.template_id, current.organization_id)
    notices = []
    if MEMORY in short:
        labels = {"workspace": current.workspace_name, "threshold": f"{thresholds[MEMORY]}%"}
        notices.append(Notification(WORKSPACE_OUT_OF_MEMORY, current.owner_id, labels, about))
    volumes = [f"{path} ({thresholds[path]}%)" for path in short if path != MEMORY]
    if volumes:
        labels = {"workspace": current.workspace_name, "volumes": ", ".join(volumes)}
        notices.append(Notification(WORKSPACE_OUT_OF_DISK, current.owner_id, labels, about))
    return notices
