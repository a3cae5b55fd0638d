"""An agent without a machine: all connections and periodic reports of a real one, and nothing to connect to.

Thousands fit into one process. Intervals and documents are those of `coder/agent`; readings are constant.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache, partial
from typing import TypeVar
from uuid import UUID

import trio
from google.protobuf.empty_pb2 import Empty
from google.protobuf.wrappers_pb2 import StringValue

from coder.agent.reconnect_delays import ReconnectDelays
from coder.base.errors import CoderError, explain_error
from coder.base.exception_groups import leaves
from coder.base.retry import spread
from coder.base.version import BUILD_VERSION
from coder.domain.agents.reporting import API_VERSION, BANNER_INTERVAL, VITALS_INTERVAL
from coder.mesh.derp_map import DerpRegion
from coder.mesh.errors import MeshError
from coder.mesh.keys import PrivateKey
from coder.mesh.relay import keep_link
from coder.net.errors import requested_delay
from coder.net.policy import DialPolicy
from coder.net.websocket import connect_websocket
from coder.rpc.durations import seconds
from coder.rpc.errors import RpcError
from coder.rpc.proto import agent_pb2, tailnet_pb2
from coder.rpc.services import AGENT, AGENT_REPORTS, TAILNET
from coder.rpc.session import Session, open_session
from coder.tailnet import derpmap
from coder.tailnet.addresses import agent_address, node_id
from coder.tailnet.relay import RelayDialer

Reply = TypeVar("Reply")

_MIB = 1 << 20
_READING = {
    "disk_used": 20_000 * _MIB,
    "disk_total": 100_000 * _MIB,
    "memory_used": 2_000 * _MIB,
    "memory_total": 8_000 * _MIB,
    "memory_pressure": 0.0,
    "load": 0.1,
    "cores": 4,
    "uptime_s": 86_400.0,
    "direct": 0,
    "relayed": 0,
}


@dataclass(slots=True)
class FleetFigures:
    """Counts of all simulated agents of a process."""

    connected: int = 0
    peak: int = 0
    attempts: int = 0
    lost: int = 0
    calls: int = 0
    failed_calls: int = 0
    connect_seconds: list[float] = field(default_factory=list)
    """Seconds of each return: from the start or the loss of a connection until both are open."""
    errors: dict[str, int] = field(default_factory=dict)
    """Count of each error message."""

    def note_error(self, error: BaseException) -> None:
        """Count an error by its message."""
        text = explain_error(error) if isinstance(error, CoderError) else repr(error)
        self.errors[text[:200]] = self.errors.get(text[:200], 0) + 1


@lru_cache(maxsize=8)
def _first_region(relays: bytes, url: str) -> DerpRegion | None:
    """Return the first region with a relay of an encoded map, which is the same for all agents."""
    regions = derpmap.with_embedded(derpmap.from_proto(tailnet_pb2.DERPMap.FromString(relays)), url).regions
    return next((region for region in regions.values() if region.nodes), None)


class SimulatedAgent:
    """An agent with a token, which connects again whenever it loses its connection."""

    def __init__(
        self, policy: DialPolicy, figures: FleetFigures, *, uses_relay: bool = True, logs: bool = False
    ) -> None:
        self._policy = policy
        self._figures = figures
        self._uses_relay = uses_relay
        self._logs = logs
        self._key = PrivateKey.generate(os.urandom)
        self._disco = PrivateKey.generate(os.urandom)
        self._has_link = False
        "A relay link, which outlives sessions; it begins with the first manifest."
        self._is_served = self._is_linked = self._is_connected = False
        self._away_since = 0.0

    async def run(self) -> None:
        """Stay connected until cancelled."""
        async with trio.open_nursery() as nursery:
            self._away_since = trio.current_time()
            await self._keep_session(nursery)

    async def _keep_session(self, nursery: trio.Nursery) -> None:
        delays = ReconnectDelays()
        while True:
            began, requested = trio.current_time(), 0.0
            self._figures.attempts += 1
            try:
                await self._connect(nursery)
            except* (CoderError, MeshError, OSError, trio.BrokenResourceError, trio.EndOfChannel) as group:
                self._figures.note_error(next(leaves(group)))
                requested = requested_delay(group)
            was_served = self._is_served
            self._note(is_served=False)
            await trio.sleep(delays.after(began, trio.current_time(), was_served=was_served, requested=requested))

    def _note(self, *, is_served: bool | None = None, is_linked: bool | None = None) -> None:
        """Count the agent as connected while it has both connections."""
        self._is_served = self._is_served if is_served is None else is_served
        self._is_linked = self._is_linked if is_linked is None else is_linked
        was_connected, figures = self._is_connected, self._figures
        self._is_connected = self._is_served and (self._is_linked or not self._uses_relay)
        if self._is_connected and not was_connected:
            figures.connected += 1
            figures.peak = max(figures.peak, figures.connected)
            figures.connect_seconds.append(trio.current_time() - self._away_since)
        elif was_connected and not self._is_connected:
            figures.connected -= 1
            figures.lost += 1
            self._away_since = trio.current_time()

    async def _connect(self, nursery: trio.Nursery) -> None:
        path = f"/api/v2/workspaceagents/me/rpc?version={API_VERSION}&role=agent"
        socket = await connect_websocket(self._policy, path)
        try:
            async with open_session(socket, "client", patient=True) as session:
                await self._serve(session, nursery)
        finally:
            with trio.CancelScope(shield=True):
                await trio.aclose_forcefully(socket)

    async def _serve(self, session: Session, for_link: trio.Nursery) -> None:
        manifest = await session.call(AGENT + "GetManifest", agent_pb2.GetManifestRequest(), agent_pb2.Manifest)
        startup = agent_pb2.Startup(version=BUILD_VERSION, expanded_directory="/home/coder")
        await session.call(AGENT + "UpdateStartup", agent_pb2.UpdateStartupRequest(startup=startup), agent_pb2.Startup)
        for state in (agent_pb2.Lifecycle.STARTING, agent_pb2.Lifecycle.READY):
            lifecycle = agent_pb2.Lifecycle(state=state)
            lifecycle.changed_at.FromNanoseconds(time.time_ns())
            request = agent_pb2.UpdateLifecycleRequest(lifecycle=lifecycle)
            await session.call(AGENT + "UpdateLifecycle", request, agent_pb2.Lifecycle)
        async with trio.open_nursery() as nursery:
            if self._uses_relay:
                await self._join(nursery, for_link, session, manifest)
            self._note(is_served=True)
            nursery.start_soon(self._send_stats, session)
            nursery.start_soon(self._every, VITALS_INTERVAL, lambda: self._send_vitals(session))
            nursery.start_soon(self._every, BANNER_INTERVAL, lambda: self._get_banners(session))
            for description in manifest.metadata:
                # Quirk of the wire format: the nanoseconds are seconds (docs/protocol/agents.md#limits).
                seconds = float(description.interval.nanos or 0)
                nursery.start_soon(self._send_metadata, session, description.key, seconds)
            if self._logs:
                nursery.start_soon(self._every, 1.0, lambda: self._send_log(session, manifest))
            await session.wait_closed()
            raise trio.BrokenResourceError(session.reason or "the server closed the connection")

    async def _join(
        self, nursery: trio.Nursery, for_link: trio.Nursery, session: Session, manifest: agent_pb2.Manifest
    ) -> None:
        """Connect to the first relay of the map and announce the node, as an agent without UDP would."""
        region = _first_region(manifest.derp_map.SerializeToString(deterministic=True), self._policy.url)
        if region is None:
            raise CoderError("scaletest", "the deployment has no relay", "Run with --no-relay.")
        if not self._has_link:
            self._has_link = True
            dial = partial(RelayDialer(self._policy), region, region.nodes[0])
            for_link.start_soon(
                keep_link, dial, self._key, lambda is_linked: self._note(is_linked=is_linked), self._figures.note_error
            )
        await nursery.start(self._coordinate, session, UUID(bytes=manifest.agent_id), region.region_id)

    async def _coordinate(
        self,
        session: Session,
        agent_id: UUID,
        region: int,
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        prefix = f"{agent_address(agent_id)}/128"
        node = tailnet_pb2.Node(
            id=node_id(agent_id),
            key=self._key.public.binary,
            disco=self._disco.public.disco_text,
            preferred_derp=region,
            addresses=[prefix],
            allowed_ips=[prefix],
        )
        node.as_of.FromNanoseconds(time.time_ns())
        update = tailnet_pb2.CoordinateRequest(update_self=tailnet_pb2.CoordinateRequest.UpdateSelf(node=node))
        kinds = (tailnet_pb2.CoordinateRequest, tailnet_pb2.CoordinateResponse)
        async with session.open_stream(TAILNET + "Coordinate", *kinds) as stream:
            await stream.send(update)
            task_status.started()
            async for response in stream:
                if response.error:
                    raise trio.BrokenResourceError(response.error)

    async def _send_stats(self, session: Session) -> None:
        method = AGENT + "UpdateStats"
        answer = await session.call(method, agent_pb2.UpdateStatsRequest(), agent_pb2.UpdateStatsResponse)
        request = agent_pb2.UpdateStatsRequest(stats=agent_pb2.Stats(connection_median_latency_ms=-1))

        async def report_stats() -> agent_pb2.UpdateStatsResponse:
            return await session.call(method, request, agent_pb2.UpdateStatsResponse)

        while True:
            await trio.sleep(spread(max(1.0, seconds(answer.report_interval))))
            answer = await self._counted(report_stats) or answer

    async def _send_vitals(self, session: Session) -> None:
        text = json.dumps({"sent_at": datetime.now(UTC).isoformat(), "events": [], **_READING})
        await self._counted(lambda: session.call(AGENT_REPORTS + "ReportVitals", StringValue(value=text), Empty))

    async def _get_banners(self, session: Session) -> None:
        request, reply = agent_pb2.GetAnnouncementBannersRequest(), agent_pb2.GetAnnouncementBannersResponse
        await self._counted(lambda: session.call(AGENT + "GetAnnouncementBanners", request, reply))

    async def _send_metadata(self, session: Session, key: str, seconds: float) -> None:
        async def send() -> None:
            result = agent_pb2.WorkspaceAgentMetadata.Result(value=str(random.randrange(100)))
            result.collected_at.FromNanoseconds(time.time_ns())
            request = agent_pb2.BatchUpdateMetadataRequest(metadata=[agent_pb2.Metadata(key=key, result=result)])
            reply = agent_pb2.BatchUpdateMetadataResponse
            await self._counted(lambda: session.call(AGENT + "BatchUpdateMetadata", request, reply))

        await send()
        if seconds:
            await self._every(seconds, send)

    async def _send_log(self, session: Session, manifest: agent_pb2.Manifest) -> None:
        log = agent_pb2.Log(level=agent_pb2.Log.INFO, output="a line of a simulated agent")
        log.created_at.FromNanoseconds(time.time_ns())
        source = manifest.scripts[0].log_source_id if manifest.scripts else bytes(16)
        request = agent_pb2.BatchCreateLogsRequest(log_source_id=source, logs=[log])
        reply = agent_pb2.BatchCreateLogsResponse
        await self._counted(lambda: session.call(AGENT + "BatchCreateLogs", request, reply))

    async def _every(self, seconds: float, send: Callable[[], Awaitable[None]]) -> None:
        await trio.sleep(random.uniform(0, seconds))
        while True:
            await send()
            await trio.sleep(spread(seconds))

    async def _counted(self, call: Callable[[], Awaitable[Reply]]) -> Reply | None:
        """Return the answer of a call; count it, and an error of the server, which ends no connection."""
        self._figures.calls += 1
        try:
            return await call()
        except RpcError as error:
            self._figures.failed_calls += 1
            self._figures.note_error(error)
            return None
