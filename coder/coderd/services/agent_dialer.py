"""This server's own node on the overlay: how it reaches agents (agent-services section 6).

A tunnel is asked for on first use of an agent and given up after half an hour without connections. Coordination runs
over a pipe into our own coordinator, relaying over a pipe into our own relay.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

import trio

from coder.base.log import get_logger
from coder.base.secret import Secret
from coder.coderd.services.derp_map import current_map
from coder.coderd.services.relay import Relay
from coder.coderd.services.tailnet_rpc import TailnetPeer, TailnetService
from coder.domain.coordination import FullAccess
from coder.domain.overlay import agent_address
from coder.mesh.core.paths.derpmap import DerpNode, DerpRegion
from coder.mesh.drivers.pipe import pipe_pair
from coder.mesh.drivers.transport import DerpDialer, DerpTransport
from coder.mesh.errors import MeshError
from coder.mesh.node import Node, NodeConfig, open_node
from coder.net.policy import DialPolicy
from coder.rpc.session import Session, open_session
from coder.tailnet.addresses import random_address
from coder.tailnet.controller import Controller, keep_coordinated, open_controller, random_number
from coder.tailnet.relay import RelayDialer

if TYPE_CHECKING:
    from coder.coderd.services.context import Context

IDLE_TIMEOUT = 1800.0
IDLE_CHECK = 300.0
"Seconds without a connection after which a tunnel goes, and between the looks."

_log = get_logger("dialer")


class AgentDialer:
    """Dials ports of agents. `ctx.agent_dialer` once the server runs."""

    def __init__(self, node: Node, controller: Controller) -> None:
        self.node = node
        self.controller = controller
        self._used: dict[UUID, float] = {}
        self._open: dict[UUID, int] = {}

    async def dial(self, agent_id: UUID, port: int) -> trio.abc.HalfCloseableStream:
        """A TCP stream to a port of the agent. Raises ConnectionError; waits as long as the caller lets it."""
        self._used[agent_id] = trio.current_time()
        self._open[agent_id] = self._open.get(agent_id, 0) + 1
        try:
            self.controller.add_tunnel(agent_id)
            await self.controller.wait_reachable(agent_id)
            stream = await self.node.tcp_connect(agent_address(agent_id), port)
        except MeshError as error:
            self._release(agent_id)
            raise ConnectionError(error.message) from error
        except BaseException:
            self._release(agent_id)
            raise
        return _CountedStream(stream, lambda: self._release(agent_id))

    def _release(self, agent_id: UUID) -> None:
        self._open[agent_id] -= 1
        if not self._open[agent_id]:
            del self._open[agent_id]
        self._used[agent_id] = trio.current_time()

    def forget(self, agent_id: UUID) -> None:
        """Gives up the tunnel of a peer that left and will not be dialled again under this id."""
        if agent_id not in self._open:
            self._used.pop(agent_id, None)
            self.controller.remove_tunnel(agent_id)

    async def drop_idle(self) -> None:
        """Gives up unused tunnels for ever."""
        while True:
            await trio.sleep(IDLE_CHECK)
            oldest = trio.current_time() - IDLE_TIMEOUT
            for agent_id in [agent for agent, used in self._used.items() if used < oldest and agent not in self._open]:
                del self._used[agent_id]
                self.controller.remove_tunnel(agent_id)


class _CountedStream(trio.abc.HalfCloseableStream):
    """Tells when it is closed."""

    def __init__(self, stream: trio.abc.HalfCloseableStream, on_close: Callable[[], None]) -> None:
        self._stream = stream
        self._on_close: Callable[[], None] | None = on_close

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        return await self._stream.receive_some(max_bytes)

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self._stream.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def send_eof(self) -> None:
        await self._stream.send_eof()

    async def aclose(self) -> None:
        on_close, self._on_close = self._on_close, None
        if on_close is not None:
            on_close()
        await self._stream.aclose()


async def run(ctx: Context, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
    """Part: our node. Needs the relay and the coordinator."""
    async with trio.open_nursery() as nursery:
        config = NodeConfig(
            addresses=(random_address(),),
            derp_map=current_map(ctx),
            derp_dialer=relay_dialer(ctx, nursery),
            direct=not ctx.config.block_direct_connections,
        )
        async with (
            open_node(config) as node,
            open_controller(node, "source", number=random_number(), direct=config.direct) as controller,
        ):
            dialer = ctx.agent_dialer = AgentDialer(node, controller)
            nursery.start_soon(dialer.drop_idle)
            nursery.start_soon(coordinate_inside, ctx, controller)
            task_status.started()
            await ctx.stopping.wait()
            nursery.cancel_scope.cancel()


async def coordinate_inside(ctx: Context, controller: Controller) -> None:
    """Keeps a node of this process coordinated, over a pipe into our own coordinator, until cancelled."""
    peer = TailnetPeer(uuid4(), FullAccess())

    @asynccontextmanager
    async def connect(_resume_token: str) -> AsyncIterator[Session]:
        ours, theirs = pipe_pair()
        async with (
            open_session(theirs, role="server") as server,
            open_session(ours, role="client") as client,
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(server.serve, TailnetService(ctx, peer).handlers())
            yield client
            nursery.cancel_scope.cancel()

    await keep_coordinated(controller, connect)


def relay_dialer(ctx: Context, nursery: trio.Nursery) -> DerpDialer:
    """Our own relay through memory, others over the network."""
    relay: Relay = ctx.part(Relay)
    others = RelayDialer(DialPolicy(ctx.access_url, Secret("")))
    inside = relay.server.in_memory_dialer(nursery) if relay.server is not None else None

    class Dialer:
        async def __call__(self, region: DerpRegion, node: DerpNode) -> DerpTransport:
            if region.embedded_relay and inside is not None:
                return await inside(region, node)
            return await others(region, node)

        async def probe(self, region: DerpRegion, node: DerpNode) -> float:
            if region.embedded_relay and inside is not None:
                await trio.lowlevel.checkpoint()
                return 0.0001  # memory: nearer than anything that can be measured
            return await others.probe(region, node)

    return Dialer()
