"""A hostile server for an agent: manifest, coordination, answers. The agent is the real one, in this process.

Each connection takes the next `Script`; those after the last are genuine. `HostileServer.attack` judges by what must
hold after any answer: the agent lives, its next connection works, its socket for scripts answers, other tasks run.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock
from uuid import UUID

import trio
import trio.testing
from google.protobuf.empty_pb2 import Empty

from coder.agent import agent as agent_module
from coder.agent import connection
from coder.agent.agent import AgentRole
from coder.agent.config import AgentConfig
from coder.agent.reconnect_delays import ReconnectDelays
from coder.base.secret import Secret
from coder.net.policy import DialPolicy
from coder.rpc.calls import Bidi, Handlers, ServerCall, ServerStream, Unary
from coder.rpc.proto import agent_pb2, tailnet_pb2
from coder.rpc.session import open_session

TOKEN = "agent-SecretSecretSecret"
AGENT_ID = UUID("00000000-0000-4000-8000-00000000a9e7")
LIMIT = 30.0
LONGEST_STALL = 2.0
"Seconds for which no other task of the agent may run; far above what is expected, because tests share processors."
_AGENT, _TAILNET = "/coder.agent.v2.Agent/", "/coder.tailnet.v2.Tailnet/"

Answer = Callable[[Any], Awaitable[Any]]


def good_manifest() -> agent_pb2.Manifest:
    """A manifest without relays and direct paths: nothing leaves this machine."""
    return agent_pb2.Manifest(
        agent_id=AGENT_ID.bytes,
        agent_name="main",
        owner_username="ana",
        workspace_id=bytes(15) + b"\1",
        workspace_name="dev",
        disable_direct_connections=True,
    )


@dataclass
class Script:
    """What one connection does."""

    manifest: Callable[[agent_pb2.Manifest], None] = lambda _: None
    answers: Mapping[str, Any] = field(default_factory=dict)
    "Answers of calls by method, in place of empty ones."
    coordinate: Callable[[ServerCall[Any, Any]], Awaitable[None]] | None = None
    maps: tuple[tailnet_pb2.DERPMap, ...] = ()
    raw: tuple[bytes, ...] = ()
    "Bytes sent after the agent's first ones, instead of everything else."


@dataclass
class HostileServer:
    scripts: deque[Script] = field(default_factory=deque)
    connections: int = 0
    served: set[int] = field(default_factory=set)
    "Numbers of the connections whose manifest was taken."
    states: list[int] = field(default_factory=list)
    delays: list[float] = field(default_factory=list)
    agent: AgentRole | None = None
    ended: list[BaseException | None] = field(default_factory=list)
    "How the agent ended; empty while it runs."
    longest: float = 0.0

    def __post_init__(self) -> None:
        self._changed = trio.Event()
        self._scope = trio.CancelScope()

    async def wait_for(self, condition: Callable[[], bool]) -> None:
        with trio.fail_after(LIMIT):
            while not condition():
                await self._changed.wait()

    def note(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    async def connect(self, *_: Any, **__: Any) -> trio.abc.Stream:
        """In place of `connect_websocket` of the agent."""
        self.connections += 1
        script = self.scripts.popleft() if self.scripts else Script()
        ours, theirs = trio.testing.memory_stream_pair()
        self._scope = trio.CancelScope()
        trio.lowlevel.spawn_system_task(self._serve, ours, script, self.connections, self._scope)
        self.note()
        await trio.lowlevel.checkpoint()
        return theirs

    async def _serve(self, stream: Any, script: Script, number: int, scope: trio.CancelScope) -> None:
        with contextlib.suppress(Exception), scope:
            try:
                if script.raw:
                    await stream.receive_some()
                    for piece in script.raw:
                        await stream.send_all(piece)
                else:
                    await self._genuine(stream, script, number)
            finally:
                stream.send_stream.close()

    async def _genuine(self, stream: Any, script: Script, number: int) -> None:
        async with open_session(stream, role="server") as session:
            try:
                await session.serve(self._handlers(script, number))
            finally:
                stream.send_stream.close()  # now, without what a session still would send

    def _handlers(self, script: Script, number: int) -> Handlers:
        manifest = good_manifest()
        script.manifest(manifest)

        def empty(kind: type[Any]) -> Answer:
            async def answer(_request: Any) -> Any:
                await trio.lowlevel.checkpoint()
                return kind()

            return answer

        async def get_manifest(_request: Any) -> Any:
            await trio.lowlevel.checkpoint()
            return manifest

        async def startup(_request: Any) -> Any:
            await trio.lowlevel.checkpoint()
            self.served.add(number)
            self.note()
            return agent_pb2.Startup()

        async def lifecycle(request: Any) -> Any:
            await trio.lowlevel.checkpoint()
            self.states.append(request.lifecycle.state)
            self.note()
            return agent_pb2.Lifecycle()

        async def coordinate(call: ServerCall[Any, Any]) -> None:
            if script.coordinate is not None:
                await script.coordinate(call)
            async for request in call:
                if request.HasField("disconnect"):
                    return

        async def maps(_request: Any, send: Any) -> None:
            for message in script.maps:
                await send(message)
            await trio.sleep_forever()

        pb = agent_pb2
        unary: dict[str, tuple[Answer, type[Any]]] = {
            "GetManifest": (get_manifest, pb.GetManifestRequest),
            "UpdateStartup": (startup, pb.UpdateStartupRequest),
            "UpdateLifecycle": (lifecycle, pb.UpdateLifecycleRequest),
        }
        for name, kind, reply in (
            ("GetAnnouncementBanners", pb.GetAnnouncementBannersRequest, pb.GetAnnouncementBannersResponse),
            ("UpdateStats", pb.UpdateStatsRequest, pb.UpdateStatsResponse),
            ("BatchCreateLogs", pb.BatchCreateLogsRequest, pb.BatchCreateLogsResponse),
            ("BatchUpdateMetadata", pb.BatchUpdateMetadataRequest, pb.BatchUpdateMetadataResponse),
            ("BatchUpdateAppHealths", pb.BatchUpdateAppHealthRequest, pb.BatchUpdateAppHealthResponse),
            ("ScriptCompleted", pb.WorkspaceAgentScriptCompletedRequest, pb.WorkspaceAgentScriptCompletedResponse),
            ("ReportConnection", pb.ReportConnectionRequest, Empty),
            (
                "GetResourcesMonitoringConfiguration",
                pb.GetResourcesMonitoringConfigurationRequest,
                pb.GetResourcesMonitoringConfigurationResponse,
            ),
            (
                "PushResourcesMonitoringUsage",
                pb.PushResourcesMonitoringUsageRequest,
                pb.PushResourcesMonitoringUsageResponse,
            ),
        ):
            unary[name] = (empty(reply), kind)
        for name, value in script.answers.items():
            if name == "StreamDERPMaps":
                continue

            async def scripted(request: Any, value: Any = value) -> Any:
                await trio.lowlevel.checkpoint()
                return await value(request) if callable(value) else value

            unary[name] = (scripted, unary[name][1])
        handlers: dict[str, Any] = {_AGENT + name: Unary(*row) for name, row in unary.items()}
        handlers[_TAILNET + "Coordinate"] = Bidi(coordinate, tailnet_pb2.CoordinateRequest)
        handlers[_TAILNET + "StreamDERPMaps"] = ServerStream(maps, tailnet_pb2.StreamDERPMapsRequest)
        return handlers

    async def attack(self, *scripts: Script, settle: float = 0.0) -> str:
        """Make one try; return what is wrong, empty if nothing. `settle`: seconds that the last script has.

        Without scripts: the current connection ends, and a genuine one follows.
        """
        self.longest = 0.0
        self.scripts.extend(scripts)
        last = self.connections + len(scripts)
        if scripts:
            self._scope.cancel()
            await self.wait_for(lambda: bool(self.ended) or self.connections >= last)
        with trio.move_on_after(settle):
            await self.wait_for(lambda: bool(self.ended) or self.connections > last)
        if self.connections == last:
            self._scope.cancel()
        await self.wait_for(lambda: bool(self.ended) or any(number > last for number in self.served))
        if self.ended:
            return f"the agent ended: {self.ended[0]!r}"
        if self.longest > LONGEST_STALL:
            return f"nothing else ran for {self.longest:.1f} s"
        return "" if await self._pings() else "its socket does not answer"

    async def _pings(self) -> bool:
        path = self.agent.state.socket_path if self.agent is not None else None
        assert path is not None
        with trio.move_on_after(LIMIT):
            async with await trio.open_unix_socket(path) as stream:
                await stream.send_all(b'{"verb":"ping"}\n')
                return bool(b"pong" in await stream.receive_some())
        return False

    async def watch_loop(self) -> None:
        while True:
            before = trio.current_time()
            await trio.sleep(0.01)
            self.longest = max(self.longest, trio.current_time() - before)


@asynccontextmanager
async def open_agent(folder: Path, url: str = "http://127.0.0.1:1", *scripts: Script) -> AsyncIterator[HostileServer]:
    """An agent whose first connections are `scripts`; without any it is connected when the block begins."""
    server = HostileServer(deque(scripts))
    folder.mkdir(parents=True, exist_ok=True)
    policy = DialPolicy(url, token=Secret(TOKEN), proxies={})
    config = AgentConfig(policy, Secret(TOKEN), folder, folder, executable="coder", state_dir=folder / "state")
    server.agent = agent = AgentRole(config)

    class Delays(ReconnectDelays):
        def after(self, *args: Any, **options: Any) -> float:
            server.delays.append(super().after(*args, **options))
            return 0.0

    async def run() -> None:
        try:
            await agent.run()
            server.ended.append(None)
        except Exception as error:
            server.ended.append(error)
        server.note()

    with (
        mock.patch.object(connection, "connect_websocket", server.connect),
        mock.patch.object(agent_module, "ReconnectDelays", Delays),
    ):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run)
            nursery.start_soon(server.watch_loop)
            if not scripts:
                await server.wait_for(lambda: bool(server.ended) or bool(server.served))
            yield server
            agent.stop()
            with trio.move_on_after(LIMIT):
                await server.wait_for(lambda: bool(server.ended))
            nursery.cancel_scope.cancel()
