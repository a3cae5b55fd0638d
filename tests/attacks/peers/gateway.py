"""The gateway for plain WireGuard devices as the victim; attackers are a device, an agent behind it, and strangers.

The gateway is the product's; its sockets and its node are simulated. The witness is another device with a conversation.
"""

from __future__ import annotations

import random
import socket
import time
from collections import Counter
from collections.abc import Callable, Sequence
from ipaddress import IPv6Address
from types import SimpleNamespace
from typing import Any, cast

from coder.mesh.core.crypto.keys import PrivateKey
from coder.mesh.core.paths.candidates import Address
from coder.mesh.core.tunnel.device import Device
from coder.mesh.core.wire import icmp, rewrite, tcp
from coder.mesh.drivers.udp import DatagramSocket
from coder.mesh.drivers.wireguard_gateway import GatewayClient, WireguardGateway
from tests.attacks.peers.conn import Conn
from tests.attacks.peers.place import STRANGER, Attack, Place

AGENT, OTHER_AGENT, MISSING = (bytes([0xFD, 0x7A, *bytes(13), last]) for last in (0x81, 0x82, 0x83))
"Peers of the mesh; the third is permitted and not installed."
DEVICE: Address = ("203.0.113.3", 1003)
WITNESS: Address = ("203.0.113.2", 1002)


class Socket:
    """The gateway's UDP socket: counts what goes out, and hands it to the devices."""

    family = socket.AF_INET
    port = 51820

    def __init__(self, place: GatewayPlace) -> None:
        self._place = place

    def send_many(self, datagrams: Sequence[bytes], to: Address) -> None:
        victim = self._place.victim
        victim.packets_out += len(datagrams)
        victim.to[to] += len(datagrams)
        for datagram in datagrams:
            self._place.arrived(datagram, to)


class MeshNode:
    """The gateway's node: remembers what the gateway routed."""

    def __init__(self) -> None:
        self.routed: list[tuple[bytes, bytes]] = []

    def set_router(self, route: Callable[[list[bytes]], list[bytes]] | None) -> None:
        pass

    def set_addresses(self, others: tuple[IPv6Address, ...]) -> None:
        pass

    def send_packets(self, address: bytes, packets: list[bytes]) -> bool:
        self.routed += [(address, packet) for packet in packets]
        return address != MISSING

    def kick(self) -> None:
        pass


class WireguardDevice:
    """A plain device: one tunnel, to the gateway."""

    def __init__(self, number: int, gateway: WireguardGateway, at: Address) -> None:
        self.private = PrivateKey(bytes([number]) * 32)
        self.key = self.private.public
        self.overlay = bytes([0xFD, 0x7A, *bytes(13), number])
        self.alias = bytes([0xFD, 0x7A, *bytes(13), 0x40 + number])
        self.udp_address = at
        self.device = Device(self.private, random.Random(number).randbytes, wall_offset=1.7e9)
        everything = (AGENT, OTHER_AGENT, MISSING)
        self.tunnel = self.device.add_peer(gateway.public_key, 0.0, allowed=everything)
        self.received: list[bytes] = []

    def config(self) -> GatewayClient:
        return GatewayClient(self.key, self.overlay, self.alias, frozenset({AGENT, OTHER_AGENT, MISSING}))


class GatewayAttack(Attack):
    """The device's means, and those of the agent AGENT."""

    place: Any

    @property
    def own(self) -> bytes:
        return self.machine.overlay

    @property
    def target(self) -> bytes:
        return AGENT

    @property
    def peer(self) -> Any:
        return SimpleNamespace(tunnel=self.place.device.tunnel)

    def inner(self, *packets: bytes) -> None:
        self.udp(*self.sealed(*packets), source=DEVICE)

    def relay(self, *packets: bytes, source: bytes | None = None, region: int = 0) -> None:
        raise AssertionError("devices have no relay")

    def udp(self, *datagrams: bytes, source: Address = STRANGER) -> None:
        gateway = self.place.gateway

        def receive() -> None:
            for datagram in datagrams:
                if datagram:
                    gateway._on_batch(bytearray(datagram), len(datagram), len(datagram), source)

        self._spend(datagrams, receive)

    def _spend(self, packets: Sequence[bytes], receive: Callable[[], None]) -> None:
        began = time.thread_time()
        receive()
        self.seconds += time.thread_time() - began
        self.sent += len(packets)
        self.bytes_sent += sum(map(len, packets))

    def answers(self, seconds: float = 0.05) -> list[bytes]:
        received, self.place.device.received = self.place.device.received, []
        return cast("list[bytes]", received)

    def wait(self, seconds: float) -> None:
        self.place.run(self.place.now + seconds)

    def into_devices(self, *packets: bytes) -> None:
        """The agent sends these packets: its own in the attacker's place, to the attacked device."""
        swapped = [self.turned(packet) for packet in packets]
        gateway = self.place.gateway
        self._spend(swapped, lambda: gateway._route(swapped))
        self.place.device.received.clear()

    def turned(self, packet: bytes) -> bytes:
        """The packet with the roles exchanged: from the agent to the device. Another source stays forged."""
        source, destination = packet[8:24], packet[24:40]
        if source == self.own:
            source = AGENT
        if destination == AGENT:
            destination = self.own
        return packet[:8] + source + destination + packet[40:] if len(packet) >= 40 else packet

    def segment_of_device(self, play: Callable[[Conn], None]) -> None:
        play(self._connection())

    def segment_into_devices(self, play: Callable[[Conn], None]) -> None:
        """On a connection that the device opened."""
        conn = self._connection()
        inner, self.inner = self.inner, self.into_devices  # type: ignore[method-assign]
        try:
            play(conn)
        finally:
            self.inner = inner  # type: ignore[method-assign]

    def _connection(self) -> Conn:
        conn = Conn(self)
        conn.send(tcp.SYN)
        conn.ack = 9000
        return conn


class GatewayPlace:
    """Two devices at a gateway. Has what the judge asks of a place; trio's clock must run."""

    def __init__(self) -> None:
        self.now = 0.0
        self.role = "edge"
        self.node = MeshNode()
        private = PrivateKey(b"\x21" * 32)
        self.gateway = _Gateway(self, private)
        self.device = WireguardDevice(3, self.gateway, DEVICE)
        self.witness = WireguardDevice(2, self.gateway, WITNESS)
        self.victim = SimpleNamespace(
            packets_out=0,
            to=Counter[Address | bytes](),
            key=private.public,
            overlay=AGENT,
            endpoint=SimpleNamespace(device=self.gateway._device),
        )
        self.gateway.set_clients([self.device.config(), self.witness.config()])
        self.attack = GatewayAttack(cast(Place, self), cast(Any, self.device))
        self.line = SimpleNamespace(local_port=7, remote_port=7)
        self.attack.inner(b"")
        assert self.echo(b"works"), "the witness was not reached before the attack"
        self.attack.inner(icmp.Message(icmp.ECHO_REQUEST, 0, 1, b"x").encode(self.device.overlay, AGENT))

    def arrived(self, datagram: bytes, to: Address) -> None:
        side = {DEVICE: self.device, WITNESS: self.witness}.get(to)
        if side is None:
            return
        received = side.device.receive_untrusted(datagram, ("192.0.2.1", 51820), self.now)
        for _, packets in received.deliveries:
            side.received += packets
        for _, answer in received.sends:
            self.gateway._on_batch(bytearray(answer), len(answer), len(answer), to)

    def echo(self, text: bytes) -> int:
        """The witness asks the other agent through the gateway; the packets it took, 0: no answer."""
        self.node.routed.clear()
        self.witness.received.clear()
        request = icmp.Message(icmp.ECHO_REQUEST, 0, 5, text).encode(self.witness.overlay, OTHER_AGENT)
        before = self.victim.to[WITNESS]
        for _ in range(2):  # the first may be staged until the handshake is done
            for datagram in self.witness.tunnel.seal([request], self.now):
                self.gateway._on_batch(bytearray(datagram), len(datagram), len(datagram), WITNESS)
            if self.node.routed:
                break
        if not any(packet == request for _, packet in self.node.routed):
            return 0
        answer = icmp.Message(icmp.ECHO_REPLY, 0, 5, text).encode(OTHER_AGENT, self.witness.overlay)
        self.gateway._route([answer])
        heard = [rewrite.trimmed(packet) for packet in self.witness.received]
        return 1 + self.victim.to[WITNESS] - before if answer in heard else 0

    def run(self, until: float) -> None:
        while (wake := self.gateway._device.next_wake()) is not None and wake <= until:
            self.now = max(self.now, wake)
            self.gateway._dispatch(self.gateway._device.on_timer(self.now))
        self.now = until

    @property
    def known(self) -> tuple[object, ...]:
        return DEVICE, WITNESS

    def tables(self) -> dict[str, int]:
        gateway, device = self.gateway, self.gateway._device
        clients = gateway._clients.values()
        return {
            "flows": sum(len(client.flows) for client in clients),
            "flow fragments": max((len(client.flows._fragments) for client in clients), default=0),
            "staged for peers": sum(map(len, gateway._staged.values())),
            "staged": sum(len(tunnel._staged) for tunnel in device.peers.values()),
            "sessions": len(device._indices.sessions),
            "handshakes": len(device._indices.handshakes),
            "heap": len(device._heap),
            "sources": len(device._limiter._buckets),
        }

    def evict(self) -> None:
        self.gateway.set_clients([self.witness.config()])


class _Gateway(WireguardGateway):
    """With a simulated socket."""

    def __init__(self, place: GatewayPlace, private: PrivateKey) -> None:
        sockets = cast("list[DatagramSocket]", [Socket(place)])
        super().__init__(place.node, private, lambda address: None, sockets)
