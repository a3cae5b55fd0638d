"""Connection to the server: the RPC session and everything that runs on it. Any failure ends all of it.

Order and gates follow docs/protocol/agents.md#order: reports and logs immediately, app health after the manifest,
coordination and statistics after the network.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Protocol, TypeVar

import trio
from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import Message

from coder.agent.network.overlay import AgentNetwork
from coder.agent.reports.resources import push_loop
from coder.agent.reports.stats import Statistics
from coder.agent.reports.vitals import report_loop
from coder.base.log import get_logger
from coder.base.retry import spread
from coder.base.version import BUILD_VERSION
from coder.domain.agents.reporting import API_VERSION, BANNER_INTERVAL
from coder.net.websocket import connect_websocket
from coder.rpc.errors import RpcClosed, RpcError
from coder.rpc.mux import KEEPALIVE_TIMEOUT
from coder.rpc.proto import agent_pb2
from coder.rpc.services import AGENT
from coder.rpc.session import Session, open_session

if TYPE_CHECKING:
    from coder.agent.config import AgentConfig
    from coder.agent.devcontainers.table import Devcontainers
    from coder.agent.lifecycle import Lifecycle
    from coder.agent.reports.app_health import AppHealth
    from coder.agent.reports.connection_reports import ReportQueue
    from coder.agent.reports.flight_recorder import FlightRecorder
    from coder.agent.reports.metadata import MetadataCollector
    from coder.agent.reports.ordered_reports import OrderedReports
    from coder.agent.state import AgentState
    from coder.agent.workspace.logs import LogQueue

log = get_logger("agent")

Reply = TypeVar("Reply", bound=Message)

MOVED_TIMEOUT = 5.0
"Seconds for an answer after the machine's addresses changed (ours); the old path may take minutes to fail."
_SUBSYSTEMS = {"envbox": 1, "envbuilder": 2, "exectrace": 3}


class Connected(Protocol):
    """Parts of an agent that take part in its connection to the server."""

    config: AgentConfig
    state: AgentState
    lifecycle: Lifecycle
    logs: LogQueue
    reports: ReportQueue
    metadata: MetadataCollector
    app_health: AppHealth
    timings: OrderedReports[agent_pb2.WorkspaceAgentScriptCompletedRequest]

    recorder: FlightRecorder
    devcontainers: Devcontainers | None

    async def exchange_token(self) -> None: ...


def record_name(manifest: agent_pb2.Manifest) -> str:
    """Return the base name of this agent's files on a machine that may run several agents; the same after a build."""
    plain = "".join(char for char in manifest.agent_name if char.isascii() and (char.isalnum() or char in "-_"))[:64]
    return f"{manifest.workspace_id.hex() or manifest.agent_id.hex()}-{plain}"


class ServerConnection:
    """Single use: every dial creates a new one."""

    def __init__(self, agent: Connected, network: AgentNetwork) -> None:
        self._agent, self._network = agent, network
        self._moves = agent.recorder.moves
        "Number of times the machine had moved before it dialled."
        self.got_no_answer = False
        "Whether the connection ended because the server did not answer."

    async def run(self, on_manifest: Callable[[agent_pb2.Manifest], None]) -> None:
        """Dial and serve until something fails. Raises the failure."""
        await self._agent.exchange_token()
        policy = self._agent.config.policy
        path = f"/api/v2/workspaceagents/me/rpc?version={API_VERSION}&role=agent"
        socket = await connect_websocket(policy, path)
        try:
            async with open_session(socket, "client", patient=True) as session:
                try:
                    await self._serve(session, on_manifest)
                finally:
                    self.got_no_answer = session.is_silent
        finally:
            with trio.CancelScope(shield=True):
                await trio.aclose_forcefully(socket)

    async def _serve(self, session: Session, on_manifest: Callable[[agent_pb2.Manifest], None]) -> None:
        agent = self._agent
        async with trio.open_nursery() as nursery:
            nursery.start_soon(
                agent.logs.send_loop, self._caller(session, "BatchCreateLogs", agent_pb2.BatchCreateLogsResponse)
            )
            nursery.start_soon(self._report_lifecycle, session)
            nursery.start_soon(
                agent.timings.send_loop,
                self._tolerant(session, "ScriptCompleted", agent_pb2.WorkspaceAgentScriptCompletedResponse),
            )
            nursery.start_soon(agent.reports.send_loop, self._caller(session, "ReportConnection", Empty))
            nursery.start_soon(self._banners, session)
            nursery.start_soon(push_loop, session)
            nursery.start_soon(self._ping_after_moves, session)
            await self._take_manifest(session, on_manifest)
            if agent.devcontainers is not None:  # not before: the agent of another build has other sub-agents
                nursery.start_soon(agent.devcontainers.calls.loop, session)
            log.info("connected", url=agent.config.policy.url)
            nursery.start_soon(
                agent.metadata.loop, self._caller(session, "BatchUpdateMetadata", agent_pb2.BatchUpdateMetadataResponse)
            )
            nursery.start_soon(
                agent.app_health.loop,
                self._tolerant(session, "BatchUpdateAppHealths", agent_pb2.BatchUpdateAppHealthResponse),
            )
            manifest = agent.state.manifest
            if manifest is not None:
                agent.recorder.name(record_name(manifest))
                await self._network.update(manifest)
            nursery.start_soon(Statistics(agent.state, self._network).loop, session)
            nursery.start_soon(self._network.coordinate, session)
            home = agent.state.identity.home
            nursery.start_soon(report_loop, session, agent.config.policy, agent.recorder, self._network, home)
            await session.wait_closed()
            raise trio.BrokenResourceError(session.reason)

    async def _ping_after_moves(self, session: Session) -> None:
        """Ping the server after the machine moved. A machine in another network has lost its connections without
        notice; only a ping detects it. A machine that was suspended may answer slowly although its path is good, so it
        gets the usual deadline."""
        recorder = self._agent.recorder
        while True:
            moves = await recorder.wait_moved(self._moves)
            try:
                await session.ping(MOVED_TIMEOUT if recorder.last_move == "network_changed" else KEEPALIVE_TIMEOUT)
            except RpcClosed as error:
                session.close(error.message, silent=True)
                raise
            recorder.mark_survived(self._moves, moves)
            self._moves = moves

    async def _take_manifest(self, session: Session, on_manifest: Callable[[agent_pb2.Manifest], None]) -> None:
        manifest = await session.call(AGENT + "GetManifest", agent_pb2.GetManifestRequest(), agent_pb2.Manifest)
        if len(manifest.agent_id) != 16:
            raise trio.BrokenResourceError("the server sent a manifest without an agent id")
        on_manifest(manifest)
        # A manifest without a directory means the home directory, which the server does not need to know.
        directory = str(self._agent.state.directory or "") if manifest.directory else ""
        startup = agent_pb2.Startup(version=BUILD_VERSION, expanded_directory=directory)
        for name in self._agent.config.subsystems:
            if name in _SUBSYSTEMS:
                startup.subsystems.append(agent_pb2.Startup.Subsystem.ValueType(_SUBSYSTEMS[name]))
        request = agent_pb2.UpdateStartupRequest(startup=startup)
        await session.call(AGENT + "UpdateStartup", request, agent_pb2.Startup)

    async def _report_lifecycle(self, session: Session) -> None:
        lifecycle = self._agent.lifecycle
        while True:
            state = await lifecycle.next_unreported()
            request = agent_pb2.UpdateLifecycleRequest(lifecycle=state)
            await session.call(AGENT + "UpdateLifecycle", request, agent_pb2.Lifecycle)
            lifecycle.confirm()

    async def _banners(self, session: Session) -> None:
        request = agent_pb2.GetAnnouncementBannersRequest()
        while True:
            answer = await session.call(
                AGENT + "GetAnnouncementBanners", request, agent_pb2.GetAnnouncementBannersResponse
            )
            self._agent.state.banners = list(answer.announcement_banners)
            await trio.sleep(spread(BANNER_INTERVAL))

    def _caller(self, session: Session, method: str, reply: type[Reply]) -> Callable[[Message], Awaitable[Reply]]:
        async def call(request: Message) -> Reply:
            return await session.call(AGENT + method, request, reply)

        return call

    def _tolerant(self, session: Session, method: str, reply: type[Reply]) -> Callable[[Message], Awaitable[Reply]]:
        """Return a call whose rejection is only logged (docs/protocol/agents.md#calls)."""

        async def call(request: Message) -> Reply:
            try:
                return await session.call(AGENT + method, request, reply)
            except RpcError as error:
                log.warn("the server refused a report", method=method, error=error)
                return reply()

        return call
