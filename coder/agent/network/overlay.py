"""Overlay membership of the agent: one mesh node for the whole process, its services on fixed ports, its coordination.

The node opens with the first manifest and survives every reconnect to the server, so running SSH sessions are not
interrupted. Its code is loaded then, too: the server counts the agent as connected, and its log begins, much earlier.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING
from uuid import UUID

import trio

from coder.agent.config import AgentConfig
from coder.agent.failure_isolation import isolate_failures
from coder.agent.network.lazy_http_api import LazyHttpApi
from coder.agent.network.reconnecting_pty import PtyService
from coder.agent.network.speedtest import serve_speedtest
from coder.agent.ssh.acceptor import SshAcceptor
from coder.agent.state import AgentState
from coder.base.log import get_logger
from coder.base.threads import in_thread_or_here
from coder.mesh.errors import MeshError
from coder.rpc.proto import agent_pb2
from coder.rpc.session import Session
from coder.tailnet.addresses import agent_address, node_id, service_address

if TYPE_CHECKING:
    from coder.mesh.node import Node
    from coder.tailnet.controller import Controller
    from coder.tailnet.relay import RelayDialer

log = get_logger("agent.network")

SSH_PORTS = (1, 22)
PTY_PORT, SPEEDTEST_PORT, HTTP_PORT = 2, 3, 4

Serve = Callable[[trio.abc.HalfCloseableStream], Awaitable[None]]


def _import_mesh() -> None:
    """Import the mesh's modules; in a thread, so that the connection to the server stays responsive."""
    for name in ("coder.mesh.node", "coder.tailnet.controller", "coder.tailnet.relay"):
        import_module(name)


class Traffic:
    """Counters of overlay traffic since the last report."""

    def __init__(self) -> None:
        self._total = self._pending = self._reported = (0, 0, 0, 0)

    def count(self, rx_packets: int, rx_bytes: int, tx_packets: int, tx_bytes: int) -> None:
        self._total = (rx_packets, rx_bytes, tx_packets, tx_bytes)

    def since_report(self) -> tuple[int, int, int, int]:
        """Return (packets in, bytes in, packets out, bytes out); `reported` marks them as reported."""
        now, then = self._total, self._reported
        self._pending = now
        return now[0] - then[0], now[1] - then[1], now[2] - then[2], now[3] - then[3]

    def reported(self) -> None:
        self._reported = self._pending


class AgentNetwork:
    """Overlay of one agent: call `update` with each manifest, `coordinate` with each session."""

    def __init__(
        self, config: AgentConfig, state: AgentState, ssh: SshAcceptor, pty: PtyService, nursery: trio.Nursery
    ) -> None:
        self._config, self._state, self._ssh, self._pty, self._nursery = config, state, ssh, pty, nursery
        self._node: Node | None = None
        self._controller: Controller | None = None
        self._relay: RelayDialer | None = None
        self._listening = trio.CancelScope()
        self._connections = 0
        self._agent_id = b""
        self._running, self._ended = trio.CancelScope(), trio.Event()
        self.traffic = Traffic()
        state.overlay = lambda: self._node.status() if self._node is not None else None

    async def update(self, manifest: agent_pb2.Manifest) -> None:
        """Open the node at the first manifest. A rebuild with another agent id opens a new node, because addresses
        derive from the id.

        Other manifests change its relays and whether direct paths are used.
        """
        if self._agent_id not in {b"", manifest.agent_id}:
            self._running.cancel()
            await self._ended.wait()
        self._agent_id = manifest.agent_id
        if self._controller is None or self._relay is None:
            self._running, self._ended, self._listening = trio.CancelScope(), trio.Event(), trio.CancelScope()
            await in_thread_or_here(_import_mesh)
            await self._nursery.start(self._run, manifest)
            return
        from coder.tailnet import derpmap

        self._relay.force_websockets(manifest.derp_force_websockets)
        self._controller.set_direct(not manifest.disable_direct_connections)
        self._controller.set_derp_map(derpmap.from_proto(manifest.derp_map))

    async def coordinate(self, session: Session) -> None:
        """Synchronize the node with the coordinator until the session ends."""
        if self._controller is None:
            raise trio.BrokenResourceError("no manifest yet")
        await self._controller.run(session)

    async def _run(
        self, manifest: agent_pb2.Manifest, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        try:
            with self._running:
                await self._serve(manifest, task_status)
        finally:
            self._node = self._controller = None
            self._ended.set()

    async def _serve(self, manifest: agent_pb2.Manifest, task_status: trio.TaskStatus[None]) -> None:
        from coder.agent.network import forward
        from coder.mesh.node import NodeConfig, open_node
        from coder.tailnet import derpmap
        from coder.tailnet.controller import open_controller
        from coder.tailnet.relay import RelayDialer

        ident = UUID(bytes=manifest.agent_id)
        self._relay = relay = RelayDialer(self._config.policy)
        relay.force_websockets(manifest.derp_force_websockets)
        url = self._config.policy.url
        direct = not manifest.disable_direct_connections
        config = NodeConfig(
            addresses=(agent_address(ident), service_address(ident)),
            derp_map=derpmap.with_embedded(derpmap.from_proto(manifest.derp_map), url),
            derp_dialer=relay,
            latency_probe=relay.probe,
            direct=direct,
            listen_port=self._config.listen_port,
        )
        async with (
            open_node(config) as node,
            open_controller(node, "destination", number=node_id(ident), server_url=url, direct=direct) as controller,
            trio.open_nursery() as nursery,
        ):
            self._node, self._controller = node, controller
            node.set_tcp_forward(forward.dial_loopback)
            node.set_udp_forward(forward.relay_datagrams)
            self._listen(node, nursery)
            log.info("joined the overlay", address=str(config.addresses[0]))
            task_status.started()
            await trio.sleep_forever()

    def _listen(self, node: Node, nursery: trio.Nursery) -> None:
        services: dict[int, Serve] = dict.fromkeys(SSH_PORTS, self._ssh.serve)
        services |= {
            PTY_PORT: self._pty.serve,
            SPEEDTEST_PORT: serve_speedtest,
            HTTP_PORT: LazyHttpApi(self._state).serve,
        }
        nursery.start_soon(self._accept, node, services, nursery)

    async def _accept(self, node: Node, services: dict[int, Serve], handlers: trio.Nursery) -> None:
        """Accept connections until `close_listeners`; connections run in `handlers`, which outlives the listeners."""
        with self._listening:
            async with trio.open_nursery() as accepting:
                for port, serve in services.items():
                    handler = isolate_failures(partial(self._counted, serve))
                    serve_port = partial(trio.serve_listeners, handler_nursery=handlers)
                    accepting.start_soon(serve_port, handler, [node.tcp_listen(port)])

    async def _counted(self, serve: Serve, stream: trio.abc.HalfCloseableStream) -> None:
        self._connections += 1
        try:
            await serve(stream)
        finally:
            self._connections -= 1

    def refresh_traffic(self) -> None:
        """Copy the node's counters into `traffic`."""
        if self._node is not None:
            peers = self._node.status().peers
            self.traffic.count(0, sum(peer.rx_bytes for peer in peers), 0, sum(peer.tx_bytes for peer in peers))

    def connection_count(self) -> int:
        return self._connections

    def peers_in_use(self, seconds: float) -> dict[str, int | None]:
        """Return the number of peers with a handshake within `seconds` on a direct path, and through a relay."""
        if self._node is None:
            return {"direct": None, "relayed": None}
        since = trio.current_time() - seconds
        peers = [
            peer
            for peer in self._node.status().peers
            if peer.last_handshake is not None and peer.last_handshake > since
        ]
        direct = sum(1 for peer in peers if peer.path == "direct")
        return {"direct": direct, "relayed": len(peers) - direct}

    async def latencies(self) -> list[float]:
        """Return the latency to each connected peer in seconds, by disco ping."""
        if self._node is None:
            return []
        latencies_s: list[float] = []
        for key in self._node.peers():
            try:
                latencies_s.append((await self._node.ping(key)).latency_s)
            except MeshError:
                continue
        return latencies_s

    async def close_listeners(self) -> None:
        """Stop accepting connections; open ones stay until the process ends."""
        self._listening.cancel()

    async def leave(self) -> None:
        if self._controller is not None:
            await self._controller.disconnect()

    async def aclose(self) -> None:
        self._node = self._controller = None
