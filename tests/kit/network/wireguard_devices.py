"""Plain WireGuard devices: a pair with a wire and a manual clock, and a phone on a loopback socket.

The phone has the gateway as its only peer.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from hashlib import blake2s
from typing import Any

import trio

from coder.mesh.core.crypto.keys import PrivateKey
from coder.mesh.core.tunnel.device import Device, Received
from coder.mesh.core.tunnel.events import Event, Source
from coder.mesh.core.tunnel.peer import Tunnel
from coder.mesh.core.wire import icmp, rewrite
from coder.mesh.drivers.wireguard_gateway import GatewayClient, WireguardGateway
from tests.kit.network.overlay_pair import address

WALL = 1_800_000_000.0


class Seeded:
    """Unpredictable enough for tests, the same in every run."""

    def __init__(self, seed: bytes) -> None:
        self.state = blake2s(seed).digest()

    def __call__(self, size: int) -> bytes:
        out = b""
        while len(out) < size:
            self.state = blake2s(self.state).digest()
            out += self.state
        return out[:size]


def ip_packet(source: bytes, destination: bytes, payload: bytes = b"") -> bytes:
    """An IPv6 packet of an unused protocol."""
    return b"\x60\0\0\0" + len(payload).to_bytes(2, "big") + b"\xfd\x40" + source + destination + payload


class Side:
    """One device and what happened to it."""

    def __init__(self, name: str, key: PrivateKey, place: Source, address: bytes) -> None:
        self.name = name
        self.place = place
        self.address = address
        self.device = Device(key, Seeded(name.encode()), wall_offset=WALL)
        self.tunnel: Tunnel
        self.peer: Side
        self.events: list[Event] = []
        self.inbox: list[bytes] = []
        self.behind = 0.0
        "Seconds this side's clock stood still, as those of sleeping machines do."

    def kinds(self) -> list[str]:
        """Names of the events so far."""
        return [type(event).__name__ for event in self.events]


class Pair:
    """`a` and `b`. `lose(sender name, datagram)` decides what the wire swallows; `log` holds what it saw."""

    def __init__(self, **peer_options: Any) -> None:
        a, b = (PrivateKey.generate(Seeded(name)) for name in (b"key a", b"key b"))
        self.a = Side("a", a, ("192.0.2.1", 1000), b"\xfd" + bytes(14) + b"a")
        self.b = Side("b", b, ("192.0.2.2", 2000), b"\xfd" + bytes(14) + b"b")
        self.now = 0.0
        self.log: list[tuple[float, str, bytes]] = []
        self.lose: Callable[[str, bytes], bool] = lambda _name, _datagram: False
        self.a.peer, self.b.peer = self.b, self.a
        for side in (self.a, self.b):
            remote = side.peer.device.local.public
            side.tunnel = side.device.add_peer(remote, 0.0, allowed=[side.peer.address], **peer_options)

    def packet(self, side: Side, payload: bytes = b"") -> bytes:
        """From this side to the other."""
        return ip_packet(side.address, side.peer.address, payload)

    def send(self, side: Side, payload: bytes = b"data") -> None:
        """Seal one packet and let the wire carry what comes of it."""
        self.carry(side, side.tunnel.seal([self.packet(side, payload)], self.now - side.behind))

    def carry(self, side: Side, datagrams: list[bytes]) -> None:
        """Deliver datagrams, and everything said in answer, at once."""
        for datagram in datagrams:
            self.log.append((self.now, side.name, datagram))
            if self.lose(side.name, datagram):
                continue
            self.take(side.peer, side.peer.device.receive_untrusted(datagram, side.place, self.now - side.peer.behind))

    def take(self, side: Side, received: Received) -> None:
        """What a device made of something."""
        side.events += received.events
        side.inbox += [packet for _, packets in received.deliveries for packet in packets]
        self.carry(side, [datagram for _, datagram in received.sends] + received.replies)

    def run(self, until: float) -> None:
        """Serve timers in order up to a time."""
        while True:
            wakes = [
                (w + s.behind, s)
                for s in (self.a, self.b)
                if (w := s.device.next_wake()) is not None and w + s.behind <= until
            ]
            if not wakes:
                break
            at, side = min(wakes, key=lambda pair: pair[0])
            self.now = max(self.now, at)
            self.take(side, side.device.on_timer(self.now - side.behind))
        self.now = until

    def sent(self, name: str, kind: int) -> list[float]:
        """When this side sent messages of a type."""
        return [at for at, sender, datagram in self.log if sender == name and datagram[0] == kind]


PHONE, ALIAS, STABLE = (address(number).packed for number in (0x50, 0x51, 0x99))
ELSEWHERE = address(0x77).packed
"""Where no client may go."""


class Phone:
    """Plain WireGuard with one peer; `packets` is what came out of the tunnel."""

    def __init__(self, gateway: WireguardGateway, own: bytes = PHONE) -> None:
        self.key = PrivateKey.generate(os.urandom)
        self.own = own
        self._hub = gateway
        self._device = Device(self.key, os.urandom, wall_offset=time.time() - trio.current_time())
        everywhere = (address(2).packed, STABLE, ELSEWHERE)
        self._tunnel = self._device.add_peer(gateway.public_key, trio.current_time(), allowed=everywhere)
        self._send, self.packets = trio.open_memory_channel[bytes](256)
        self._sock = trio.socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        await self._sock.bind(("127.0.0.1", 0))
        task_status.started()
        with self._sock:
            while True:
                datagram, source = await self._sock.recvfrom(65_535)
                await self._take(self._device.receive_untrusted(datagram, source, trio.current_time()))

    async def _take(self, received: Received) -> None:
        for _, packets in received.deliveries:
            for packet in packets:
                self._send.send_nowait(rewrite.trimmed(packet))
        for _, datagram in received.sends:
            await self._out([datagram])

    async def _out(self, datagrams: list[bytes]) -> None:
        for datagram in datagrams:
            await self._sock.sendto(datagram, ("127.0.0.1", self._hub.port))

    async def send(self, *packets: bytes) -> None:
        await self._out(self._tunnel.seal(list(packets), trio.current_time()))

    def config(self, hub_peers: frozenset[bytes] = frozenset({address(2).packed})) -> GatewayClient:
        return GatewayClient(self.key.public, self.own, ALIAS, hub_peers, {STABLE: address(2).packed})


def echo(destination: bytes, text: bytes, source: bytes = PHONE) -> bytes:
    return icmp.Message(icmp.ECHO_REQUEST, 0, 1, text).encode(source, destination)
