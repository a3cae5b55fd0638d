"""Readings of memory and volumes for the server, which notifies users when either runs short.

Source: docs/protocol/agents.md#limits: readings fill a window; a full window is pushed, and again with every reading.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import trio

from coder.agent.disk import in_thread
from coder.agent.reports.volumes import read_volumes
from coder.base.host import container_memory
from coder.base.log import get_logger
from coder.rpc.errors import RpcError
from coder.rpc.proto import agent_pb2
from coder.rpc.services import AGENT
from coder.rpc.session import Session

log = get_logger("agent")
Datapoint = agent_pb2.PushResourcesMonitoringUsageRequest.Datapoint
Configuration = agent_pb2.GetResourcesMonitoringConfigurationResponse
MAX_VOLUMES = 64
"Volumes (ours) that are read; each may hold a thread."
MAX_DATAPOINTS = 1024
"Readings (ours) in a window: as many as a server accepts, and it has twenty."


async def push_loop(session: Session, rest: Callable[[float], Awaitable[None]] = trio.sleep) -> None:
    """Push readings for the life of the connection; return when nothing is monitored or the server does not support
    monitoring."""
    try:
        configuration = await session.call(
            AGENT + "GetResourcesMonitoringConfiguration",
            agent_pb2.GetResourcesMonitoringConfigurationRequest(),
            Configuration,
        )
    except RpcError as error:
        log.debug("the server does not monitor resources", error=error)
        return
    volumes = [volume.path for volume in configuration.volumes if volume.enabled]
    if len(volumes) > MAX_VOLUMES:
        log.warn("too many volumes to monitor; the first are monitored", volumes=len(volumes), monitored=MAX_VOLUMES)
        del volumes[MAX_VOLUMES:]
    memory = configuration.HasField("memory") and configuration.memory.enabled
    size = min(configuration.config.num_datapoints, MAX_DATAPOINTS)
    if size <= 0 or not (memory or volumes):
        return
    window: deque[Datapoint] = deque(maxlen=size)
    while True:
        window.append(await read(memory, volumes))
        if len(window) == size:
            await _push(session, window)
        await rest(max(configuration.config.collection_interval_seconds, 1))


async def _push(session: Session, window: deque[Datapoint]) -> None:
    request = agent_pb2.PushResourcesMonitoringUsageRequest(datapoints=window)
    try:
        await session.call(
            AGENT + "PushResourcesMonitoringUsage", request, agent_pb2.PushResourcesMonitoringUsageResponse
        )
    except RpcError as error:
        log.warn("the server rejected readings", error=error)


async def read(memory: bool, volumes: list[str]) -> Datapoint:
    """Take one reading; values that cannot be read are left out."""
    point = Datapoint()
    point.collected_at.GetCurrentTime()
    if memory:
        with suppress(OSError):  # no free thread
            used, total = await in_thread(container_memory)
            if used is not None and total is not None:
                point.memory.used, point.memory.total = used, total
    usages = await read_volumes({Path(path) for path in volumes})
    for path in volumes:
        used, total = usages[Path(path)]
        if used is not None and total is not None:
            point.volumes.add(volume=path, used=used, total=total)
    return point
