"""Public API of the mesh: open a node, install peers, dial, listen, ping.

Further public modules are `keys`, `derp_map`, `relay`, `netcheck`, `gateway`, `description`, `trace` and `errors`; code
outside of `coder/mesh` imports nothing else of it (a contract in pyproject.toml).

Lives here: the public verbs and the composition of core and drivers. A node knows only the peers that `set_peer`
installs; their origin (a coordinator, a test) does not matter here.
"""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import trio

from coder.mesh.announced import PublishedValue
from coder.mesh.core.crypto.batches import LIBRARY
from coder.mesh.core.crypto.keys import PrivateKey, PublicKey
from coder.mesh.core.endpoint import Endpoint
from coder.mesh.core.errors import CryptoError
from coder.mesh.core.paths.candidates import Address
from coder.mesh.core.paths.derpmap import DerpMap, DerpNode, DerpRegion
from coder.mesh.core.paths.probing import SESSION_ACTIVE, PingAnswered
from coder.mesh.core.paths.selector import PathState
from coder.mesh.core.peers.peer import Peer
from coder.mesh.core.stack.interface import Stack
from coder.mesh.core.wire import ip4
from coder.mesh.core.wire.address import UdpAddress
from coder.mesh.description import (
    NodeConfig,
    NodeStatus,
    OverlayAddress,
    PeerConfig,
    PeerStatus,
    PingResult,
    SelfInfo,
    TraceValue,
)
from coder.mesh.drivers.derp_client import RelayPool, RelayStatus
from coder.mesh.drivers.memory import keep_freed_memory, release_freed_memory
from coder.mesh.drivers.netcheck import Netcheck
from coder.mesh.drivers.overlay import Forward, Overlay, TcpListener, UdpFlow, UdpForward, UdpPort
from coder.mesh.drivers.pipe import pipe_pair
from coder.mesh.drivers.pump import Pump
from coder.mesh.drivers.streams import TcpStream
from coder.mesh.drivers.transport import DerpDialer, DerpTransport, LatencyProbe
from coder.mesh.errors import NodeClosedError, UnknownPeerError, UnreachableError
from coder.mesh.peer_config import peer_parameters
from coder.mesh.peer_status import status_of
from coder.mesh.waiting_pings import WaitingPings

__all__ = [
    "DerpDialer",
    "DerpMap",
    "DerpNode",
    "DerpRegion",
    "DerpTransport",
    "LatencyProbe",
    "Node",
    "NodeConfig",
    "NodeStatus",
    "PeerConfig",
    "PeerStatus",
    "PingResult",
    "RelayStatus",
    "SelfInfo",
    "TcpListener",
    "TcpStream",
    "UdpFlow",
    "UdpPort",
    "open_node",
    "pipe_pair",
    "release_freed_memory",
]

PING_TIMEOUT = 5.0
MIN_PING_INTERVAL = 0.05
MAX_PING_INTERVAL = 30.0


class Node:
    """A running node; created by `open_node`."""

    def __init__(self, config: NodeConfig, nursery: trio.Nursery) -> None:
        self._config = config
        self._nursery = nursery
        self._private = config.private_key or PrivateKey.generate(os.urandom)
        self._disco_private = PrivateKey.generate(os.urandom)
        self._pump = Pump(self)
        if config.direct:
            self._pump.open_sockets(config.listen_port)
        addresses = [address.packed for address in config.addresses]
        self._stack = Stack(addresses, os.urandom, config.mtu)
        self._stack.burst_limit = self._pump.burst_bytes
        self.endpoint = self._pump.endpoint = Endpoint(
            self._private,
            self._disco_private,
            self._stack,
            self._pump,
            os.urandom,
            wall_offset=time.time() - trio.current_time(),
            mtu=config.mtu,
            direct=config.direct,
        )
        self.endpoint.tap = config.tap
        self._relays = self._pump.relays = RelayPool(
            nursery, config.derp_dialer, self._private, config.derp_map, self._pump
        )
        self._netcheck = Netcheck(
            config.derp_map,
            config.latency_probe or getattr(config.derp_dialer, "probe", None),
            lambda datagram, to: self._pump.udp([datagram], to),
            self._ports,
            direct=config.direct,
            seed=int.from_bytes(self._private.public[:8], "big"),
            is_active=self._is_active,
            on_home=self._set_home,
            on_endpoints=self._set_endpoints,
            on_rebind=self._rebind,
        )
        self._overlay = Overlay(self._stack, self._pump.kick, nursery)
        self._info = PublishedValue(self._make_info())
        self._pings = WaitingPings()
        self._is_closed = False

    # -- this node -----------------------------------------------------------------------------------------------------
    @property
    def self_info(self) -> SelfInfo:
        """Information about this node for the coordinator."""
        return self._info.current

    def self_changed(self) -> trio.MemoryReceiveChannel[SelfInfo]:
        """Return a channel of new values of `self_info`; only the latest unread one is kept. Close it when done."""
        return self._info.watch()

    def _make_info(self) -> SelfInfo:
        latencies = {f"{region}-v4": seconds for region, seconds in self._netcheck.latencies.items()}
        return SelfInfo(
            public_key=self._private.public,
            disco_key=self._disco_private.public,
            preferred_derp=self._netcheck.home,
            derp_latency=latencies,
            endpoints=tuple(UdpAddress(*address) for address in self._netcheck.endpoints),
            forced_websocket=self._relays.forced_websockets(),
            addresses=self._config.addresses,
        )

    def _publish(self) -> None:
        self._info.publish(self._make_info())

    # -- peers ------------------------------------------------------------------------------------------------------
    def set_derp_map(self, derp_map: DerpMap) -> None:
        """Use another relay map."""
        self._relays.set_map(derp_map)
        self._netcheck.set_map(derp_map)

    def set_peer(self, config: PeerConfig) -> bool:
        """Install a peer or change it; a session with the same key continues.

        Returns False for an invalid peer: its key is unusable, or it claims more than single addresses. A coordinator's
        data about other nodes must not be able to stop us, hence no exception.
        """
        try:
            self.endpoint.set_peer(peer_parameters(config), trio.current_time())
        except (CryptoError, ValueError) as error:
            self._trace("peer refused", peer=config.public_key.hex(), reason=str(error))
            return False
        self._pump.kick()
        return True

    def remove_peer(self, public_key: PublicKey) -> None:
        """Remove a peer; does nothing when there is none."""
        self.endpoint.remove_peer(public_key, trio.current_time())
        self._pump.kick()

    def peers(self) -> list[PublicKey]:
        """Return the keys of the installed peers."""
        return [peer.config.public_key for peer in self.endpoint.peers.values()]

    def last_handshake(self, public_key: PublicKey) -> float | None:
        """Return when the last WireGuard handshake with a peer completed (trio.current_time); None: never."""
        peer = self.endpoint.peers.get(public_key)
        return peer.tunnel.stats.last_handshake if peer else None

    # -- traffic ----------------------------------------------------------------------------------------------------
    async def tcp_connect(self, address: OverlayAddress, port: int) -> TcpStream:
        """Connect to a peer's TCP port. Raises UnknownPeerError, UnreachableError (refused or no answer)."""
        self._peer(address)
        return await self._overlay.tcp_connect(ip4.address16(address.packed), port)

    def tcp_listen(self, port: int) -> TcpListener:
        """Accept connections of peers to a port of ours. Raises OSError when the port is taken."""
        return self._overlay.tcp_listen(port)

    def set_tcp_forward(self, forward: Forward | None) -> None:
        """Set the handler of connections to ports without a listener.

        `forward(port)` dials a target and returns the stream to join, or None to refuse; the peer's SYN is answered
        only then. Without a forward such connections are reset.
        """
        self._overlay.set_tcp_forward(forward)

    def udp_bind(self, port: int = 0) -> UdpPort:
        """Bind a UDP port of ours (0: any). Raises OSError when it is taken."""
        return self._overlay.udp_bind(port)

    def set_udp_forward(self, forward: UdpForward | None) -> None:
        """Set the handler of datagrams to unbound ports: `forward(flow)` runs once per peer's port and port of ours."""
        self._overlay.set_udp_forward(forward)

    # -- routing for others (a gateway) -------------------------------------------------------------------------------
    def set_router(self, route: Callable[[list[bytes]], list[bytes]] | None) -> None:
        """Call `route` with every arrived inner packet; it keeps packets for other hosts and returns ours."""
        self.endpoint.route = route

    def set_addresses(self, others: tuple[OverlayAddress, ...]) -> None:
        """Claim these addresses in addition to our own: peers answer them, `set_router` gets packets to them."""
        own_addresses = self._config.addresses[:1]
        self._config = replace(self._config, addresses=own_addresses + others)
        self._publish()

    def send_packets(self, address: bytes, packets: list[bytes]) -> bool:
        """Queue whole inner packets for the peer that owns the address; `kick` sends them.

        Return False without such a peer. They are dropped, as by any router, while the peer's queue is full.
        """
        if self.endpoint.peer_of(address) is None:
            return False
        if not self._stack.is_paused(address):
            self._stack.send_packets(address, packets)
        return True

    def kick(self) -> None:
        """Send queued packets."""
        self._pump.kick()

    # -- reachability -----------------------------------------------------------------------------------------------
    async def wait_reachable(self, address: OverlayAddress) -> float:
        """Return the round trip of the first answered in-tunnel ping (seconds). Raises UnknownPeerError."""
        peer = self._peer(address)
        began = trio.current_time()
        answered = self._overlay.expect_pong()
        try:
            delay = MIN_PING_INTERVAL
            while True:
                self._overlay.send_ping(ip4.address16(address.packed), answered)
                with trio.move_on_after(delay):
                    await answered.event.wait()
                    return answered.latency
                if self.endpoint.peers.get(peer.config.public_key) is not peer:
                    raise UnreachableError(
                        f"the peer of {address} was removed after {trio.current_time() - began:.1f} s"
                    )
                delay = min(2 * delay, MAX_PING_INTERVAL)
        finally:
            self._overlay.forget_pong(answered)

    async def ping(self, target: OverlayAddress | PublicKey, timeout: float = PING_TIMEOUT) -> PingResult:
        """Disco-ping a peer by the current path (relay and candidates when none is trusted); return the first answer.

        Raises UnknownPeerError; UnreachableError when no answer arrived in time.
        """
        peer = self.endpoint.peers.get(target) if isinstance(target, PublicKey) else self._peer(target)
        if peer is None:
            raise UnknownPeerError(f"no peer has the key {target}")
        with self._pings.expect() as waiting:
            self.endpoint.ping(peer, waiting.token, trio.current_time())
            self._pump.kick()
            with trio.move_on_after(timeout):
                return await waiting.wait_answer()
        raise UnreachableError(f"{target} did not answer a ping within {timeout:g} s")

    def candidates_of(self, public_key: PublicKey) -> int:
        """Return how many UDP addresses a peer claims; 0 for an unknown peer."""
        peer = self.endpoint.peers.get(public_key)
        return len(peer.paths.candidates) if peer else 0

    def status(self) -> NodeStatus:
        """Return the status of the node."""
        mapper = self._netcheck.mapper
        return NodeStatus(
            self_info=self._info.current,
            udp_ports=self._ports(),
            udp_works=self._netcheck.mappings.udp_works,
            mapping_varies=self._netcheck.mappings.varies,
            stun_answers=self._netcheck.mappings.answers,
            port_mapping=mapper.speaks or ("none" if mapper.was_asked else ""),
            mapped_endpoint=str(UdpAddress(*mapper.external)) if mapper.external else "",
            relays=tuple(self._relays.status()),
            peers=tuple(self.peer_status(key) for key in self.peers()),
            dropped_strangers=self.endpoint.dropped_strangers,
            cipher=LIBRARY,
        )

    def peer_status(self, public_key: PublicKey) -> PeerStatus:
        """Return the status of a peer's path. Raises UnknownPeerError."""
        peer = self.endpoint.peers.get(public_key)
        if peer is None:
            raise UnknownPeerError(f"no peer has the key {public_key}")
        return status_of(peer, self.endpoint.routes.region(public_key, peer.config.home_derp))

    def _peer(self, address: OverlayAddress) -> Peer:
        if self._is_closed:
            raise NodeClosedError
        peer = self.endpoint.peer_of(ip4.address16(address.packed))
        if peer is None:
            raise UnknownPeerError(f"no peer has the address {address}")
        return peer

    # -- PumpEvents and netcheck ------------------------------------------------------------------------------------
    def on_stun(self, datagram: bytes) -> None:
        """Process a STUN message."""
        self._netcheck.on_stun_untrusted(datagram)

    def on_ping_answered(self, answer: PingAnswered, peer: PublicKey, region: int) -> None:
        """Pass the answer to the caller that waits for it."""
        self._trace("pong", peer=peer.hex(), latency=answer.latency, to=answer.to, region=region)
        known = self._netcheck.derp_map.regions.get(region)
        self._pings.answered(answer, region, known.region_code if known else "")

    def on_needs_endpoints(self) -> None:
        """Refresh our endpoints: a peer waits for them."""
        self._netcheck.refresh_endpoints()

    def on_peer_alive(self, peer: PublicKey) -> None:
        """Record a completed handshake."""
        self._trace("handshake", peer=peer.hex())

    def on_path_changed(self, peer: PublicKey, state: PathState, address: Address | None) -> None:
        """Record a new path of a peer's data."""
        self._trace("path", peer=peer.hex(), state=state.value, to=address)

    def on_relay_connected(self, region: int, connected: bool) -> None:
        """Record that a relay connection was opened or lost."""
        self._trace("relay", region=region, connected=connected)
        self._publish()

    def _set_home(self, region: int) -> None:
        self._relays.set_home(region)
        self._publish()

    def _set_endpoints(self, endpoints: list[Address], fresh_for: float) -> None:
        self.endpoint.set_own_endpoints(endpoints, trio.current_time(), fresh_for)
        self._pump.kick()
        self._publish()

    def _rebind(self, slept: float) -> None:
        self._trace("rebind", slept=round(slept, 3))
        self._pump.reopen_sockets()
        self._relays.check()
        self.endpoint.rebind(trio.current_time(), slept)
        self._pump.kick()

    def _ports(self) -> tuple[int, int]:
        import socket

        return self._pump.port(socket.AF_INET), self._pump.port(socket.AF_INET6)

    def _is_active(self) -> bool:
        now = trio.current_time()
        return any(
            peer.paths.last_send is not None and now - peer.paths.last_send < SESSION_ACTIVE
            for peer in self.endpoint.peers.values()
        )

    def _trace(self, fact: str, **fields: TraceValue) -> None:
        if self._config.trace is not None:
            self._config.trace(fact, fields)

    # -- life -------------------------------------------------------------------------------------------------------
    def _start(self) -> None:
        self._nursery.start_soon(self._pump.run)
        self._nursery.start_soon(self._relays.close_idle)
        self._nursery.start_soon(self._netcheck.run)

    def _close(self) -> None:
        self._is_closed = True
        self._overlay.close()
        self._pump.kick()
        self._info.close()


@asynccontextmanager
async def open_node(config: NodeConfig) -> AsyncIterator[Node]:
    """Open a node until the block is left; connections still open then are aborted.

    Raises UdpUnavailableError when direct paths are enabled and no UDP socket can be opened.
    """
    node: Node | None = None
    keep_freed_memory()
    try:
        async with trio.open_nursery() as nursery:
            node = Node(config, nursery)
            try:
                node._start()
                yield node
            finally:
                node._close()
                nursery.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        # The nursery wraps the exception of the caller's block; the caller expects it unwrapped. Raise the exception
        # the nursery kept, not the block's: when a task of the node failed, the block raised the nursery's own
        # Cancelled, and an outer nursery would absorb that and continue as if its block had succeeded.
        if len(group.exceptions) > 1:
            raise
        only = group.exceptions[0]
        raise only from only.__cause__
    finally:
        # Not earlier: a task may be waiting for the sockets.
        if node is not None:
            node._pump.close_sockets()
