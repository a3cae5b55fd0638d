"""A gateway for plain WireGuard clients: phones and routers with a single server, routed into the mesh.

Lives here: one WireGuard device with its UDP socket, and routing between its clients and a mesh node. Does not live
here: the list of clients and their permitted peers (the caller sets both with `set_clients`), the clients' keys.
Obeys: the WireGuard paper (through core/tunnel); routing as in RFC 8200 and RFC 4443 (errors, packet too big).

Packets are routed, not proxied: the node claims the clients' addresses as its own towards the mesh, so that a peer
answers them like any other node; TCP, UDP and ICMP run end to end. About connections the gateway knows only which side
opened them: peers answer clients and open none themselves (core/stack/flow_table). Why not otherwise:
docs/decisions/plain-wireguard-clients.md.

A client reaches a peer by the peer's own address, or by a stable address that the caller maps to the current one. The
second kind of traffic uses the client's alias in the mesh: answers to the alias go through the same translation,
without a table of flows.
"""

from __future__ import annotations

import os
import socket
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import IPv6Address
from math import inf
from typing import TYPE_CHECKING, Protocol

import trio

from coder.mesh.core.crypto.keys import PrivateKey, PublicKey
from coder.mesh.core.errors import CryptoError, WireError
from coder.mesh.core.paths.candidates import Address
from coder.mesh.core.stack import fragments
from coder.mesh.core.stack.flow_table import FlowTable
from coder.mesh.core.tunnel.device import Device, Received
from coder.mesh.core.tunnel.peer import Tunnel
from coder.mesh.core.wire import ip, rewrite
from coder.mesh.core.wire.address import UdpAddress
from coder.mesh.drivers.udp import DatagramSocket
from coder.mesh.errors import UdpUnavailableError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

CLIENT_MTU = ip.MIN_MTU
"""Inner packets to clients: the size in their configuration, which every path of the mesh carries."""
MAX_STAGED = 64
"""Packets kept for a peer that is not installed yet."""
STAGED_LIFE = 10.0
"""Seconds after which staged packets are useless."""
REFUSALS_A_SECOND = 10
"""Per client: enough for a person to see the reason, useless for flooding."""


class MeshNode(Protocol):
    """The part of `coder.mesh.node.Node` that is needed here."""

    def set_router(self, route: Callable[[list[bytes]], list[bytes]] | None) -> None: ...
    def set_addresses(self, others: tuple[IPv6Address, ...]) -> None: ...
    def send_packets(self, address: bytes, packets: list[bytes]) -> bool: ...
    def kick(self) -> None: ...


@dataclass(frozen=True, slots=True)
class GatewayClient:
    """A client and the peers it may reach."""

    public_key: PublicKey
    address: bytes
    """16 bytes: the only source address its packets may have."""
    alias: bytes
    """16 bytes: its address in the mesh for traffic to stable addresses."""
    peers: frozenset[bytes]
    """Overlay addresses of the peers it may reach."""
    stable: Mapping[bytes, bytes] = field(default_factory=dict)
    """Stable address -> the peer's current address."""


@dataclass(frozen=True, slots=True)
class ClientStatus:
    """Status of a client."""

    endpoint: str
    """Source of its last datagram; empty: none yet."""
    last_handshake: float | None
    """trio.current_time."""
    rx_bytes: int
    tx_bytes: int


@dataclass(slots=True)
class GatewayStats:
    """Counts of dropped packets by reason."""

    refused: int = 0
    """Packets to or from a peer the client may not reach."""
    unsolicited: int = 0
    """Packets from a peer, without a flow that the client opened."""
    malformed: int = 0
    dropped: int = 0
    """Queues were full, or the peer was never installed."""
    too_big: int = 0


class _Client:
    """A client with its tunnel and its translations."""

    __slots__ = ("back", "config", "flows", "refusals", "refusals_since", "there", "tunnel")

    def __init__(self, config: GatewayClient, tunnel: Tunnel) -> None:
        self.tunnel = tunnel
        self.flows = FlowTable()
        self.refusals = 0
        self.refusals_since = -inf
        self.configure(config)

    def configure(self, config: GatewayClient) -> None:
        self.config = config
        self.there: dict[bytes, tuple[bytes, int]] = {}
        """Stable address -> (peer's address, checksum difference of the translation)."""
        self.back: dict[bytes, tuple[bytes, int]] = {}
        for stable, real in config.stable.items():
            added = rewrite.difference(config.address + stable, config.alias + real)
            self.there[stable] = (real, added)
            self.back[real] = (stable, (0xFFFF - added) % 0xFFFF)

    def may_refuse(self, now: float) -> bool:
        if now - self.refusals_since >= 1.0:
            self.refusals_since, self.refusals = now, 0
        self.refusals += 1
        return self.refusals <= REFUSALS_A_SECOND


class WireguardGateway:
    """Created by `open_gateway`.

    `on_missing_peer(address)` is called for a client's packet to a peer the node does not have.
    """

    def __init__(
        self,
        node: MeshNode,
        private_key: PrivateKey,
        on_missing_peer: Callable[[bytes], None],
        sockets: Iterable[DatagramSocket],
    ) -> None:
        self.public_key = private_key.public
        self.stats = GatewayStats()
        self._node = node
        self._on_missing_peer = on_missing_peer
        self._sockets = {sock.family: sock for sock in sockets}
        self._device = Device(private_key, os.urandom, wall_offset=time.time() - trio.current_time(), mtu=CLIENT_MTU)
        self._clients: dict[bytes, _Client] = {}
        self._by_address: dict[bytes, tuple[_Client, bool]] = {}
        """Mesh address -> client, and whether it is the alias."""
        self._staged: dict[bytes, deque[tuple[float, _Client, bytes]]] = {}
        self._timer = trio.CancelScope()

    # -- configuration by the caller -----------------------------------------------------------------------------------
    @property
    def port(self) -> int:
        """The bound UDP port."""
        return next(iter(self._sockets.values())).port

    def set_clients(self, clients: Iterable[GatewayClient]) -> None:
        """Replace the table of clients. A removed client is cut off immediately: keys discarded, packets dropped.

        A client whose key is unusable is left out.
        """
        now = trio.current_time()
        by_key = {client.public_key: client for client in clients}
        for key in [key for key in self._clients if key not in by_key]:
            del self._clients[key]
            self._device.remove_peer(PublicKey(key))
        for key, config in by_key.items():
            known = self._clients.get(key)
            if known is not None:
                known.configure(config)
                self._device.set_allowed(known.tunnel, [config.address])
                continue
            try:
                tunnel = self._device.add_peer(key, now, allowed=[config.address])
            except CryptoError:
                continue
            self._clients[key] = _Client(config, tunnel)
        self._by_address = {}
        for client in self._clients.values():
            self._by_address[client.config.address] = (client, False)
            self._by_address[client.config.alias] = (client, True)
        self._node.set_addresses(tuple(IPv6Address(address) for address in self._by_address))
        self._set_timer()

    def peer_ready(self, address: bytes) -> None:
        """Send staged packets for a peer that the node has now, as far as they are still permitted."""
        staged = self._staged.pop(address, None)
        now = trio.current_time()
        for at, client, packet in staged or ():
            is_current = self._clients.get(client.config.public_key) is client
            if is_current and now - at < STAGED_LIFE and self._may_reach(client, address):
                self._node.send_packets(address, [packet])
            else:
                self.stats.dropped += 1
        self._node.kick()

    def peer_lost(self, address: bytes) -> None:
        """Drop packets staged for a peer that will not be installed."""
        self.stats.dropped += len(self._staged.pop(address, ()))

    def status(self, public_key: bytes) -> ClientStatus | None:
        """Return a client's status; None for a client outside of the table."""
        client = self._clients.get(public_key)
        if client is None:
            return None
        source, stats = client.tunnel.source, client.tunnel.stats
        endpoint = str(UdpAddress(source[0], source[1])) if isinstance(source, tuple) else ""
        return ClientStatus(endpoint, stats.last_handshake, stats.rx_bytes, stats.tx_bytes)

    @staticmethod
    def _may_reach(client: _Client, peer: bytes) -> bool:
        return peer in client.config.peers or peer in client.back

    # -- from clients into the mesh -----------------------------------------------------------------------------------
    def _on_batch(self, buffer: bytearray, size: int, segment: int, source: Address) -> None:
        now = trio.current_time()
        with memoryview(buffer) as view:
            received = self._device.receive_batch_untrusted(view[:size], size, segment, source, now)
        for tunnel, packets in received.deliveries:
            client = self._clients.get(tunnel.remote)
            if client is not None:
                self._from_client(client, packets, now)
        for reply in received.replies:
            self._send([reply], source)
        self._dispatch(received)

    def _from_client(self, client: _Client, packets: list[bytes], now: float) -> None:
        routed: dict[bytes, list[bytes]] = {}
        for padded in packets:
            packet = rewrite.trimmed(padded)
            if not packet:
                self.stats.malformed += 1
                continue
            destination = packet[24:40]
            translation = client.there.get(destination)
            if translation is None and destination not in client.config.peers:
                self.stats.refused += 1
                self._answer(client, packet, rewrite.prohibited, now)
                continue
            if len(packet) > CLIENT_MTU:
                self.stats.too_big += 1
                self._answer(client, packet, lambda big: rewrite.too_big(big, CLIENT_MTU), now)
                continue
            packet = rewrite.clamp_mss(packet, CLIENT_MTU)
            if translation is not None:
                destination, added = translation
                packet = rewrite.readdress(packet, client.config.alias, destination, added)
            client.flows.sent(packet, now)
            routed.setdefault(destination, []).append(packet)
        for destination, batch in routed.items():
            self._into_mesh(client, destination, batch, now)

    def _into_mesh(self, client: _Client, destination: bytes, packets: list[bytes], now: float) -> None:
        if self._node.send_packets(destination, packets):
            return
        is_new = destination not in self._staged
        staged = self._staged.setdefault(destination, deque())
        for packet in packets:
            if len(staged) >= MAX_STAGED:
                # Of the client with the most, which is often this one: a flood must not drop another client's SYN.
                largest = Counter(owner for _, owner, _ in staged).most_common(1)[0][0]
                del staged[next(at for at, (_, owner, _) in enumerate(staged) if owner is largest)]
                self.stats.dropped += 1
            staged.append((now, client, packet))
        if is_new:
            self._on_missing_peer(destination)

    def _answer(self, client: _Client, packet: bytes, make: Callable[[bytes], bytes], now: float) -> None:
        if rewrite.may_answer(packet) and client.may_refuse(now):
            self._to_client(client, [make(packet)], now)

    # -- from the mesh to clients -------------------------------------------------------------------------------------
    def _route(self, packets: list[bytes]) -> list[bytes]:
        """Take the packets for clients out of the node's input."""
        now = trio.current_time()
        own_packets: list[bytes] = []
        outgoing: dict[_Client, list[bytes]] = {}
        for padded in packets:
            entry = self._by_address.get(padded[24:40])
            if entry is None:
                own_packets.append(padded)
                continue
            client, is_alias = entry
            outgoing.setdefault(client, []).extend(self._for_client(client, is_alias, padded, now))
        for client, batch in outgoing.items():
            self._to_client(client, batch, now)
        return own_packets

    def _for_client(self, client: _Client, is_alias: bool, padded: bytes, now: float) -> list[bytes]:
        packet = rewrite.trimmed(padded)
        if not packet:
            self.stats.malformed += 1
            return []
        source = packet[8:24]
        translation = client.back.get(source) if is_alias else None
        if translation is None and (is_alias or source not in client.config.peers):
            self.stats.refused += 1
            return []
        if not client.flows.may_enter(packet, now):
            self.stats.unsolicited += 1
            return []
        packet = rewrite.clamp_mss(packet, CLIENT_MTU)
        if translation is not None:
            packet = rewrite.readdress(packet, translation[0], client.config.address, translation[1])
        # Our own agents send datagrams of any size over the relay, and fragments as large as a direct path carries.
        try:
            return fragments.split(packet, CLIENT_MTU, int.from_bytes(os.urandom(4), "big"))
        except WireError:
            self.stats.malformed += 1
            return []

    def _to_client(self, client: _Client, packets: list[bytes], now: float) -> None:
        if not packets:
            return
        datagrams = client.tunnel.seal(packets, now)
        if datagrams and isinstance(client.tunnel.source, tuple):
            self._send(datagrams, client.tunnel.source)
        self._set_timer()

    # -- sockets and time ---------------------------------------------------------------------------------------------
    def _send(self, datagrams: list[bytes], to: Address) -> None:
        sock = self._sockets.get(socket.AF_INET6 if ":" in to[0] else socket.AF_INET)
        if sock is not None:
            sock.send_many(datagrams, to)

    def _dispatch(self, received: Received) -> None:
        for tunnel, datagram in received.sends:
            if isinstance(tunnel.source, tuple):
                self._send([datagram], tunnel.source)
        self._set_timer()

    def _set_timer(self) -> None:
        wake = self._device.next_wake()
        self._timer.deadline = inf if wake is None else wake

    async def _read(self, sock: DatagramSocket) -> None:
        while True:
            await trio.lowlevel.wait_readable(sock.sock)
            sock.drain(self._on_batch)
            self._node.kick()

    async def _keep_time(self) -> None:
        while True:
            with self._timer:
                self._set_timer()
                await trio.sleep_forever()
            self._timer = trio.CancelScope()
            self._dispatch(self._device.on_timer(trio.current_time()))

    async def run(self) -> None:
        """Run until cancelled."""
        self._node.set_router(self._route)
        try:
            async with trio.open_nursery() as nursery:
                for sock in self._sockets.values():
                    nursery.start_soon(self._read, sock)
                nursery.start_soon(self._keep_time)
        finally:
            self._node.set_router(None)


@asynccontextmanager
async def open_gateway(
    node: MeshNode, private_key: PrivateKey, host: str, port: int, on_missing_peer: Callable[[bytes], None]
) -> AsyncIterator[WireguardGateway]:
    """Open a gateway on a UDP address (host empty: all addresses of both families) until the block is left.

    Raises UdpUnavailableError when the address cannot be bound.
    """
    sockets = _bind(host, port)
    try:
        gateway = WireguardGateway(node, private_key, on_missing_peer, sockets)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(gateway.run)
            yield gateway
            nursery.cancel_scope.cancel()
    finally:
        for sock in sockets:
            sock.close()


def _bind(host: str, port: int) -> list[DatagramSocket]:
    families = [socket.AF_INET6 if ":" in host else socket.AF_INET] if host else [socket.AF_INET, socket.AF_INET6]
    sockets: list[DatagramSocket] = []
    for family in families:
        try:
            sock = DatagramSocket(family, port, host)
        except OSError as error:
            if sockets:
                continue  # a machine without IPv6
            address_text = f"{host or '*'}:{port}"
            raise UdpUnavailableError(f"the WireGuard address {address_text} cannot be bound: {error}") from error
        port = sock.port
        sockets.append(sock)
    return sockets
