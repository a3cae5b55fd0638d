"""Reaching agents from a node that serves many people: the server's or a proxy's.

Source: docs/protocol/agent-services.md#the-servers-own-node.

A tunnel is asked for on first use of an agent and given up after half an hour without connections.
"""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import trio

from coder.domain.network.overlay import agent_address
from coder.mesh.errors import MeshError
from coder.mesh.node import Node, TcpStream
from coder.net.stream_wrapper import StreamWrapper
from coder.tailnet.controller import Controller

IDLE_TIMEOUT = 1800.0
IDLE_CHECK = 300.0
"Seconds without a connection after which a tunnel goes, and between the looks."


class AgentDialer:
    """Dials ports of agents."""

    def __init__(self, node: Node, controller: Controller) -> None:
        self.node = node
        self.controller = controller
        self._used: dict[UUID, float] = {}
        self._open: dict[UUID, int] = {}

    async def dial(self, agent_id: UUID, port: int) -> AgentStream:
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
        return AgentStream(stream, lambda: self._release(agent_id))

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

    def connections(self) -> dict[UUID, int]:
        """How many are open to each agent there is a tunnel to."""
        return {agent_id: self._open.get(agent_id, 0) for agent_id in self._used}

    async def drop_idle(self) -> None:
        """Gives up unused tunnels for ever."""
        while True:
            await trio.sleep(IDLE_CHECK)
            oldest = trio.current_time() - IDLE_TIMEOUT
            for agent_id in [agent for agent, used in self._used.items() if used < oldest and agent not in self._open]:
                del self._used[agent_id]
                self.controller.remove_tunnel(agent_id)


class AgentStream(StreamWrapper):
    """A stream to a port of an agent. Tells its dialer when it is closed."""

    def __init__(self, stream: TcpStream, on_close: Callable[[], None]) -> None:
        super().__init__(stream)
        self._transport = stream
        self._on_close: Callable[[], None] | None = on_close

    @property
    def unacknowledged(self) -> int:
        """Bytes sent that the agent has not acknowledged."""
        return self._transport.unacknowledged

    def abort(self) -> None:
        """Reset the connection: what is on its way is of no use any more. `aclose` would go on delivering it."""
        self._closed()
        self._transport.abort()

    async def aclose(self) -> None:
        self._closed()
        await super().aclose()

    def _closed(self) -> None:
        on_close, self._on_close = self._on_close, None
        if on_close is not None:
            on_close()
