"""Dialler of agents from a node shared by many users: the server's or a proxy's.

Source: docs/protocol/agent-services.md#the-servers-own-node. A tunnel is requested at the first use of an agent and
removed after half an hour without connections.
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
"Seconds without a connection after which a tunnel is removed, and between the checks."


class AgentDialer:
    """Dialler of agents' ports."""

    def __init__(self, node: Node, controller: Controller) -> None:
        self.node = node
        self.controller = controller
        self._last_used: dict[UUID, float] = {}
        self._open: dict[UUID, int] = {}

    async def dial(self, agent_id: UUID, port: int) -> AgentStream:
        """Return a TCP stream to a port of the agent. Raises ConnectionError; waits until the caller's deadline."""
        self._last_used[agent_id] = trio.current_time()
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
        self._last_used[agent_id] = trio.current_time()

    def forget(self, agent_id: UUID) -> None:
        """Remove the tunnel of a peer that left and will not be dialled again under this id."""
        if agent_id not in self._open:
            self._last_used.pop(agent_id, None)
            self.controller.remove_tunnel(agent_id)

    def connections(self) -> dict[UUID, int]:
        """Return the number of open connections for each agent with a tunnel."""
        return {agent_id: self._open.get(agent_id, 0) for agent_id in self._last_used}

    async def drop_idle(self) -> None:
        """Remove unused tunnels, forever."""
        while True:
            await trio.sleep(IDLE_CHECK)
            oldest = trio.current_time() - IDLE_TIMEOUT
            for agent_id in [
                agent for agent, used in self._last_used.items() if used < oldest and agent not in self._open
            ]:
                del self._last_used[agent_id]
                self.controller.remove_tunnel(agent_id)


class AgentStream(StreamWrapper):
    """Stream to a port of an agent. Notifies its dialler when it is closed."""

    def __init__(self, stream: TcpStream, on_close: Callable[[], None]) -> None:
        super().__init__(stream)
        self._transport = stream
        self._on_close: Callable[[], None] | None = on_close

    @property
    def unacknowledged(self) -> int:
        """Bytes sent that the agent has not acknowledged."""
        return self._transport.unacknowledged

    def abort(self) -> None:
        """Reset the connection and discard the data in flight, which `aclose` would still deliver."""
        self._closed()
        self._transport.abort()

    async def aclose(self) -> None:
        self._closed()
        await super().aclose()

    def _closed(self) -> None:
        on_close, self._on_close = self._on_close, None
        if on_close is not None:
            on_close()
