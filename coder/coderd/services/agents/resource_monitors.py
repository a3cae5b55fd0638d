"""What an agent's readings of memory and volumes mean: their standing is kept, its owner told when one turns bad."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from coder.coderd.services.notifications import notifications
from coder.coderd.services.notifications.notifications import Notification, NotificationSite
from coder.coderd.store.agents import resource_monitors as store
from coder.coderd.store.agents.resource_monitors import MonitorRow
from coder.domain.agents.resource_monitors import QUIET, Reading, State, next_state, reading
from coder.domain.notifications.notification_templates import WORKSPACE_OUT_OF_DISK, WORKSPACE_OUT_OF_MEMORY
from coder.rpc.proto import agent_pb2

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.agents.agents import AgentPlace
    from coder.coderd.store.engine.database import Tx

Datapoint = agent_pb2.PushResourcesMonitoringUsageRequest.Datapoint
MEMORY = ""
"""The path that stands for the memory."""
MAX_DATAPOINTS = 60
"""Three windows; more is no agent's."""
MAX_VOLUMES = 256
"""Of one reading: an agent reads what its template names, but a message has room for half a million."""


async def take_readings(ctx: Context, place: AgentPlace, datapoints: Sequence[Datapoint]) -> None:
    """A window of readings of one agent."""
    thresholds = watched(place.agent.resources_monitoring or {})
    if thresholds:
        readings = readings_of(thresholds, datapoints[-MAX_DATAPOINTS:])
        await ctx.db.run(_take, place, thresholds, readings, notifications.site_of(ctx), ctx.clock.now())


def watched(wanted: Mapping[str, object]) -> dict[str, int]:
    """Thresholds in per cent by path, of what the template switched on."""
    found: dict[str, int] = {}
    memory, volumes = wanted.get("memory"), wanted.get("volumes")
    if isinstance(memory, dict) and memory.get("enabled"):
        found[MEMORY] = int(memory.get("threshold") or 0)
    for volume in volumes if isinstance(volumes, list) else ():
        if volume.get("enabled") and volume.get("path"):
            found[str(volume["path"])] = int(volume.get("threshold") or 0)
    return found


def readings_of(thresholds: Mapping[str, int], datapoints: Sequence[Datapoint]) -> dict[str, list[Reading]]:
    """The window of each path; a value the agent could not read is unknown."""
    found: dict[str, list[Reading]] = {path: [] for path in thresholds}
    for one in datapoints:
        volumes = {volume.volume: volume for volume in reversed(one.volumes[:MAX_VOLUMES])}  # of two the first counts
        for path, threshold in thresholds.items():
            read = one.memory if path == MEMORY else volumes.get(path)
            found[path].append("unknown" if read is None else reading(read.used, read.total, threshold))
    return found


async def _take(
    tx: Tx,
    place: AgentPlace,
    thresholds: Mapping[str, int],
    readings: Mapping[str, Sequence[Reading]],
    site: NotificationSite,
    now: datetime,
) -> None:
    stored = await store.list_monitors(tx, place.agent.id)
    short: list[str] = []
    for path in thresholds:
        before = stored.get(path) or MonitorRow(path, "OK", None)
        state: State = "NOK" if before.state == "NOK" else "OK"
        after = next_state(state, readings[path])
        tells = after == "NOK" and state == "OK" and (before.quiet_until is None or before.quiet_until <= now)
        if tells:
            short.append(path)
        if tells or after != state:
            await store.put_monitor(
                tx, place.agent.id, MonitorRow(path, after, now + QUIET if tells else before.quiet_until)
            )
    for notice in _notices(place, thresholds, short):
        await notifications.enqueue(tx, site, notice, now)


def _notices(place: AgentPlace, thresholds: Mapping[str, int], short: Sequence[str]) -> list[Notification]:
    about: tuple[UUID, ...] = (place.workspace_id, place.owner_id, place.template_id, place.organization_id)
    found = []
    if MEMORY in short:
        labels = {"workspace": place.workspace_name, "threshold": f"{thresholds[MEMORY]}%"}
        found.append(Notification(WORKSPACE_OUT_OF_MEMORY, place.owner_id, labels, about))
    volumes = [f"{path} ({thresholds[path]}%)" for path in short if path != MEMORY]
    if volumes:
        labels = {"workspace": place.workspace_name, "volumes": ", ".join(volumes)}
        found.append(Notification(WORKSPACE_OUT_OF_DISK, place.owner_id, labels, about))
    return found
